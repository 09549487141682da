// A fast hash of what a graph is made of. The same on every machine of one byte order; guards against no adversary.
#ifndef FUSELAGE_IR_HASHER_H_
#define FUSELAGE_IR_HASHER_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/base/attribute.h"
#include "ir/type.h"

namespace fuselage::ir {

class Hasher {
 public:
  uint64_t value() const { return state_; }

  // For a fixed word a bijection of the state, and the other way round: one differing word is never lost.
  void Add(uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15u;
    state_ ^= state_ >> 32;
  }
  // Lengths go in front of what varies in length, so that neighbours cannot trade characters.
  void Add(absl::string_view text) {
    Add(text.size());
    uint64_t word;
    for (; text.size() >= sizeof(word); text.remove_prefix(sizeof(word))) {
      std::memcpy(&word, text.data(), sizeof(word));
      Add(word);
    }
    if (text.empty()) return;
    word = 0;
    std::memcpy(&word, text.data(), text.size());
    Add(word);
  }
  void Add(double value) {
    uint64_t word;
    std::memcpy(&word, &value, sizeof(word));
    Add(word);
  }
  template <typename T>
  void AddAll(const std::vector<T>& values) {
    Add(uint64_t{values.size()});
    for (const T& value : values) AddOne(value);
  }

  void Add(const TensorType& type) {
    Add(static_cast<uint64_t>(type.dtype) << 8 | static_cast<uint64_t>(type.layout) << 1 | uint64_t{!!type.quant});
    AddAll(type.shape);
    if (!type.quant) return;
    Add(static_cast<uint64_t>(type.quant->axis));
    AddAll(type.quant->scales);
    AddAll(type.quant->zero_points);
  }
  void Add(const Type& type) {
    Add(static_cast<uint64_t>(type.is_tuple()) << 32 | type.elements().size());
    for (const TensorType& element : type.elements()) Add(element);
  }
  void Add(const Attribute& attribute) {
    Add(static_cast<uint64_t>(attribute.kind()));
    switch (attribute.kind()) {
      case AttributeKind::kBool: Add(uint64_t{attribute.as_bool()}); break;
      case AttributeKind::kInt: AddOne(attribute.as_int()); break;
      case AttributeKind::kFloat: Add(attribute.as_float()); break;
      case AttributeKind::kString: Add(absl::string_view(attribute.as_string())); break;
      case AttributeKind::kDType: Add(static_cast<uint64_t>(attribute.as_dtype())); break;
      case AttributeKind::kInts: AddAll(attribute.as_ints()); break;
      case AttributeKind::kFloats: AddAll(attribute.as_floats()); break;
      case AttributeKind::kStrings: AddAll(attribute.as_strings()); break;
    }
  }
  void Add(const AttributeMap& attributes) {
    Add(uint64_t{attributes.size()});
    for (const auto& [name, attribute] : attributes) {
      Add(absl::string_view(name));
      Add(attribute);
    }
  }

 private:
  void AddOne(int64_t value) { Add(static_cast<uint64_t>(value)); }
  void AddOne(int32_t value) { Add(static_cast<uint64_t>(value)); }
  void AddOne(double value) { Add(value); }
  void AddOne(float value) { Add(static_cast<double>(value)); }
  void AddOne(const std::string& value) { Add(absl::string_view(value)); }

  uint64_t state_ = 0x2545f4914f6cdd1du;
};

}  // namespace fuselage::ir

#endif  // FUSELAGE_IR_HASHER_H_
