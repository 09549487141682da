// What a node produces: nothing, one tensor, or a tuple of tensors.
#ifndef FUSELAGE_IR_TYPE_H_
#define FUSELAGE_IR_TYPE_H_

#include <string>
#include <vector>

#include "ir/base/tensor.h"

namespace fuselage::ir {

class Type {
 public:
  Type() = default;                                          // Nothing: the output node's type.
  Type(TensorType tensor) : elements_{std::move(tensor)} {}  // NOLINT
  static Type Tuple(std::vector<TensorType> elements) {
    Type type;
    type.is_tuple_ = true;
    type.elements_ = std::move(elements);
    return type;
  }

  bool is_none() const { return !is_tuple_ && elements_.empty(); }
  bool is_tensor() const { return !is_tuple_ && elements_.size() == 1; }
  bool is_tuple() const { return is_tuple_; }

  const TensorType& tensor() const {
    FUSELAGE_CHECK(is_tensor());
    return elements_[0];
  }
  // The tuple's elements, or the one tensor.
  const std::vector<TensorType>& elements() const { return elements_; }

  friend bool operator==(const Type& a, const Type& b) {
    return a.is_tuple_ == b.is_tuple_ && a.elements_ == b.elements_;
  }
  friend bool operator!=(const Type& a, const Type& b) { return !(a == b); }

 private:
  bool is_tuple_ = false;
  std::vector<TensorType> elements_;
};

// How many elements all tensors of `type` have together. A double: the sum may overflow 64 bits.
double NumElements(const Type& type);

// "f32[2,3]", "(f32[2], i64[1])", "none".
std::string ToString(const Type& type);

}  // namespace fuselage::ir

#endif  // FUSELAGE_IR_TYPE_H_
