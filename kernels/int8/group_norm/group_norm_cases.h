// Cases for the tests of int8.group_norm and int8.instance_norm, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_GROUP_NORM_GROUP_NORM_CASES_H_
#define FUSELAGE_KERNELS_INT8_GROUP_NORM_GROUP_NORM_CASES_H_

#include <optional>
#include <string>
#include <vector>

#include "kernels/core/testing/testing.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::group_norm {

struct Case {
  Shape shape;
  int64_t groups = 0;  // 0: int8.instance_norm.
  DType from = DType::kU8, to = DType::kU8;
  std::string activation = "none";
  bool parameters = true;
  double eps = 1e-5;

  std::string op() const { return groups == 0 ? "int8.instance_norm" : "int8.group_norm"; }
  TensorType x() const { return kernels::Codes(from, shape, 0.021f, from == DType::kU8 ? 131 : -9); }
  Tensor weight() const { return SeededTensor(kernels::Floats({shape[1]}), 2); }
  Tensor bias() const { return SeededTensor(kernels::Floats({shape[1]}), 3); }
  AttributeMap attributes() const {
    AttributeMap found = {{"eps", eps},
                          {"activation", Attribute(activation)},
                          {"out_dtype", to},
                          {"out_scale", 0.0171},
                          {"out_zero_point", to == DType::kU8 ? 120 : 3}};
    if (groups > 0) found.emplace("num_groups", groups);
    return found;
  }
  kernels::OpCall call() const {
    kernels::OpCall made{op(), {SeededTensor(x(), 1), std::nullopt, std::nullopt}, attributes()};
    if (parameters) {
      made.operands[1] = weight();
      made.operands[2] = bias();
    }
    return made;
  }
};

inline std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const std::string activation : {"none", "relu", "clamp(min=-0.5, max=0.7)", "silu", "gelu", "leaky_relu",
                                       "silu, clamp(min=-0.125, max=0.7)"}) {
    cases.push_back({{2, 32, 5, 7}, 4, DType::kU8, DType::kI8, activation});
    cases.push_back({{1, 12, 3, 3}, 3, DType::kI8, DType::kU8, activation});
  }
  for (const int64_t channels : {1, 3, 4, 15, 16, 17, 36, 64}) {
    cases.push_back({{2, channels, 4, 3}, 1});
    cases.push_back({{1, channels, 9, 9}, channels});
    cases.push_back({{3, channels, 1, 1}, 1});
    cases.push_back({{1, channels, 37}, 0, DType::kI8, DType::kI8, "silu"});
    cases.push_back({{2, channels}, 1});
  }
  cases.push_back({{1, 20, 60, 55}, 5, DType::kU8, DType::kU8, "silu"});  // Work for several threads.
  cases.push_back({{1, 2, 70'001}, 2});                                   // More pixels than 32 bits add up.
  cases.push_back({{1, 2, 261, 260}, 2});
  cases.push_back({{1, 2500, 2, 1}, 50});  // A pixel is more than a tile.
  cases.push_back({{2, 16, 4, 4}, 4, DType::kU8, DType::kU8, "none", false});
  cases.push_back({{2, 16, 4, 4}, 4, DType::kU8, DType::kU8, "none", true, 1e-300});
  return cases;
}

}  // namespace fuselage::int8::group_norm

#endif  // FUSELAGE_KERNELS_INT8_GROUP_NORM_GROUP_NORM_CASES_H_
