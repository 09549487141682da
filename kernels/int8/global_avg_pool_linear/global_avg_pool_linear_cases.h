// Cases for the tests of int8.global_avg_pool_linear, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_GLOBAL_AVG_POOL_LINEAR_GLOBAL_AVG_POOL_LINEAR_CASES_H_
#define FUSELAGE_KERNELS_INT8_GLOBAL_AVG_POOL_LINEAR_GLOBAL_AVG_POOL_LINEAR_CASES_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/avg_pool2d/avg_pool2d.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::global_avg_pool_linear {

using kernels::Codes;
using kernels::Kernel;
using kernels::KernelDesc;

struct Case {
  Shape input = {2, 24, 7, 5};
  int64_t classes = 10;
  DType input_type = DType::kU8, pooled_type = DType::kU8, output_type = DType::kF32;
  int32_t input_zero_point = 3, pooled_zero_point = 0;
  bool relu = false, bias = true;
};

inline std::string ToString(const Case& c) {
  return absl::StrCat(DTypeName(c.input_type), fuselage::ToString(c.input), " through ", DTypeName(c.pooled_type),
                      " to ", DTypeName(c.output_type), " ", c.classes);
}

// Every combination of types.
inline std::vector<Case> TypeCases() {
  std::vector<Case> cases;
  for (const DType input : {DType::kU8, DType::kI8}) {
    for (const DType pooled : {DType::kU8, DType::kI8}) {
      for (const DType output : {DType::kU8, DType::kI8, DType::kF32}) {
        for (const bool relu : {false, true}) {
          Case c;
          c.input_type = input, c.pooled_type = pooled, c.output_type = output, c.relu = relu;
          c.input_zero_point = input == DType::kU8 ? 255 : -128;
          c.pooled_zero_point = pooled == DType::kU8 ? 131 : -9;
          cases.push_back(std::move(c));
        }
      }
    }
  }
  return cases;
}

inline std::vector<Case> RandomCases() {
  std::mt19937 random(5);
  const auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  std::vector<Case> cases(60);
  for (Case& c : cases) {
    c.input = {between(0, 4), between(1, 150), between(1, 9), between(1, 9)};
    c.classes = between(1, 80);
    c.bias = between(0, 1) == 1;
  }
  return cases;
}

struct Layer {
  explicit Layer(const Case& c, uint64_t seed = 1)
      : weight(SeededTensor(Codes(DType::kI8, {c.classes, c.input[1]}, 0.01f, 0), seed)),
        bias(SeededTensor(kernels::Floats({c.classes}), seed + 1)) {
    const Shape rows = {c.input[0], c.input[1]}, result = {c.input[0], c.classes};
    whole.op = "int8.global_avg_pool_linear";
    whole.inputs = {Codes(c.input_type, c.input, 0.02f, c.input_zero_point, Layout::kNhwc)};
    whole.outputs = {c.output_type == DType::kF32 ? kernels::Floats(result)
                                                  : Codes(c.output_type, result, 0.01f, c.output_type == DType::kU8)};
    whole.attributes = {{"activation", c.relu ? "relu" : "none"},
                        {"pool_out_dtype", c.pooled_type},
                        {"pool_out_scale", Attribute(0.005)},
                        {"pool_out_zero_point", int64_t{c.pooled_zero_point}}};
    whole.parameters["weight"] = &weight;
    if (c.bias) whole.parameters["bias"] = &bias;
    pool = linear = whole;
    pool.op = "int8.global_avg_pool";
    pool.outputs = {Codes(c.pooled_type, {rows[0], rows[1], 1, 1}, 0.005f, c.pooled_zero_point, Layout::kNhwc)};
    linear.inputs = {Codes(c.pooled_type, rows, 0.005f, c.pooled_zero_point)};
  }
  Layer(const Layer&) = delete;

  Tensor Run(const absl::StatusOr<std::unique_ptr<Kernel>>& kernel, const Tensor& x, int threads = 1) const {
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    if (!kernel.ok()) return Tensor();
    kernels::TestThreads parallel(threads);
    absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x}, &parallel);
    EXPECT_TRUE(y.ok()) << y.status();
    return y.ok() ? *std::move(y) : Tensor();
  }
  Tensor Reference(const Tensor& x) const {
    Tensor rows = Run(avg_pool2d::Create(pool), x);
    rows.set_type(*linear.inputs[0]);
    return Run(linear::Create(linear), rows);
  }

  Tensor weight, bias;
  KernelDesc whole, pool, linear;
};

}  // namespace fuselage::int8::global_avg_pool_linear

#endif  // FUSELAGE_KERNELS_INT8_GLOBAL_AVG_POOL_LINEAR_GLOBAL_AVG_POOL_LINEAR_CASES_H_
