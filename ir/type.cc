#include "ir/type.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fuselage::ir {

std::string ToString(const Type& type) {
  if (type.is_none()) return "none";
  if (type.is_tensor()) return fuselage::ToString(type.tensor());
  return absl::StrCat("(",
                      absl::StrJoin(type.elements(), ", ",
                                    [](std::string* out, const TensorType& t) { out->append(fuselage::ToString(t)); }),
                      ")");
}

double NumElements(const Type& type) {
  double elements = 0;
  for (const TensorType& tensor : type.elements()) elements += static_cast<double>(tensor.num_elements());
  return elements;
}

}  // namespace fuselage::ir
