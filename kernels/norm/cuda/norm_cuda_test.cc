#include "kernels/norm/cuda/norm_cuda.h"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/norm/norm.h"
#include "kernels/norm/norm.h"

namespace fuselage::norm::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using kernels::Floats;
using kernels::OpCall;
using NormCuda = ::fuselage::cuda::CudaTest;
using Ints = std::vector<int64_t>;

// layer_norm has one arithmetic on the CPU that is of this folder, whoever registers it.
void RegisterCpu(kernels::KernelRegistry& registry) {
  norm::Register(registry);
  int8::norm::Register(registry);
  registry.Register({"layer_norm", kernels::LayoutRule::kRowMajor, norm::Create});
}

TEST_F(NormCuda, FloatsHaveTheBytesOfTheCpu) {
  struct Case {
    const char* op;
    Shape shape, parameters;
    AttributeMap attributes;
  };
  std::vector<Case> cases = {
      {"layer_norm", {2, 3, 4, 5}, {4, 5}, {{"normalized_shape", Ints{4, 5}}, {"eps", 0.1}}},
      {"rms_norm", {2, 5, 64}, {64}, {{"normalized_shape", Ints{64}}, {"eps", 1e-6}}},
      {"group_norm", {2, 6, 5, 3}, {6}, {{"num_groups", 3}, {"eps", 1e-5}}},
      {"group_norm", {3, 8}, {8}, {{"num_groups", 4}, {"eps", 1e-5}}},
      {"instance_norm", {2, 5, 3, 4}, {5}, {{"eps", 1e-5}}},
      {"instance_norm", {1, 3, 1001}, {3}, {{"eps", 1e-5}}},
      {"group_norm", {2, 6, 5, 3}, {6}, {{"num_groups", 2}, {"activation", "silu, clamp(min=-0.125, max=1)"}}},
      {"group_norm", {2, 6, 5, 3}, {6}, {{"num_groups", 3}, {"activation", "relu"}}},
      {"instance_norm", {2, 5, 3, 4}, {5}, {{"activation", "clamp(min=-0.5, max=0.25)"}}}};
  for (const int64_t n : {1, 15, 16, 17, 33, 768}) {
    cases.push_back({"layer_norm", {7, n}, {n}, {{"normalized_shape", Ints{n}}, {"eps", 1e-5}}});
  }
  for (const Case& c : cases) {
    for (const bool with_parameters : {true, false}) {
      OpCall call{c.op, {SeededTensor(Floats(c.shape), 1), std::nullopt, std::nullopt}, c.attributes};
      if (with_parameters) call.operands[1] = SeededTensor(Floats(c.parameters), 2);
      if (with_parameters) call.operands[2] = SeededTensor(Floats(c.parameters), 3);
      if (kernels::Ops().FindOrNull(c.op)->operands.size() == 2) call.operands.pop_back();
      ExpectBytesOf(RegisterCpu, RegisterCuda, call);
    }
  }
}

// From floats, codes and sums, to codes by one scale and by one for each row.
TEST_F(NormCuda, CodesHaveTheBytesOfTheCpu) {
  const Shape shapes[] = {{1, 1}, {5, 15}, {2, 3, 17}, {40, 65}, {7, 256}, {2, 3, 4, 5}};
  const AttributeMap results[] = {{{"out_scale", 0.02}, {"out_zero_point", 120}},
                                  {{"out_dtype", DType::kI8}, {"out_scale", 0.3}, {"out_zero_point", -128}},
                                  {{"dims", Ints{-1}}}};
  for (const std::string op : {"layer_norm", "rms_norm"}) {
    for (const Shape& shape : shapes) {
      const Shape row = {shape.back()};
      for (const auto& x : {kernels::Codes(DType::kU8, shape, 0.02f, 131), kernels::Codes(DType::kI8, shape, 0.5f, -9),
                            Floats(shape)}) {
        for (const bool adds : {false, true}) {
          if (adds && x.dtype != DType::kF32) continue;
          for (const AttributeMap& to : results) {
            OpCall call{"int8." + op, {SeededTensor(x, 1), SeededTensor(Floats(row), 2)}, to};
            if (op == "layer_norm") call.operands.push_back(SeededTensor(Floats(row), 3));
            if (adds) call.operands.push_back(SeededTensor(Floats(shape), 4));
            call.attributes.emplace("normalized_shape", row);
            call.attributes.emplace("eps", 1e-5);
            ExpectBytesOf(RegisterCpu, RegisterCuda, call);
          }
        }
      }
    }
  }
}

// To codes NaN is the zero point.
TEST_F(NormCuda, WhatIsNotFinite) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    OpCall call{"int8.rms_norm",
                {SeededTensor(Floats({3, 40}), 1), std::nullopt},
                {{"normalized_shape", Ints{40}}, {"eps", 1e-5}, {"out_scale", 0.02}, {"out_zero_point", 120}}};
    call.operands[0]->data<float>()[55] = bad;
    ExpectBytesOf(RegisterCpu, RegisterCuda, call);
  }
}

TEST_F(NormCuda, IsRegisteredAsOnTheCpu) { ::fuselage::cuda::ExpectSameEntries(RegisterCpu, RegisterCuda); }

}  // namespace
}  // namespace fuselage::norm::cuda
