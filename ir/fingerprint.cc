#include "ir/fingerprint.h"

#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace fuselage::ir {
namespace {

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

void AddNode(const Node& node, Hasher& hasher) {
  hasher.Add(static_cast<uint64_t>(node.kind()));
  hasher.Add(absl::string_view(node.name()));
  hasher.Add(absl::string_view(node.target()));
  hasher.Add(node.type());
  hasher.Add(static_cast<uint64_t>(node.num_operands()));
  for (int i = 0; i < node.num_operands(); ++i) {
    const Node* operand = node.operand(i);
    hasher.Add(operand == nullptr ? absl::string_view() : absl::string_view(operand->name()));
  }
  if (node.module() == nullptr) hasher.Add(node.attributes());  // A module's are in the table.
  hasher.AddAll(node.sources());
}

}  // namespace

uint64_t ValueFingerprint(const Tensor& tensor) {
  Hasher hasher;
  hasher.Add(tensor.type());
  hasher.Add(absl::string_view(static_cast<const char*>(tensor.raw_data()), tensor.byte_size()));
  return hasher.value();
}

uint64_t Fingerprint(const Graph& graph) {
  Hasher hasher;
  hasher.Add(absl::string_view(graph.name()));
  hasher.Add(uint64_t{graph.parameters().size()});
  for (const auto& [name, parameter] : graph.parameters()) {
    hasher.Add(absl::string_view(name));
    hasher.Add(parameter.fingerprint);
    hasher.Add(uint64_t{parameter.seed.has_value()});
    hasher.Add(parameter.seed.value_or(0));
  }
  hasher.Add(uint64_t{graph.modules().size()});
  for (const auto& [path, module] : graph.modules()) {
    hasher.Add(absl::string_view(path));
    hasher.Add(absl::string_view(module->op->name));
    hasher.Add(module->attributes);
    hasher.Add(uint64_t{module->parameters.size()});
    for (const auto& [operand, parameter] : module->parameters) {
      hasher.Add(absl::string_view(operand));
      hasher.Add(absl::string_view(parameter));
    }
  }
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) AddNode(*node, hasher);
  return hasher.value();
}

}  // namespace fuselage::ir
