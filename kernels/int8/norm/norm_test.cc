#include "kernels/int8/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::norm {
namespace {

using kernels::Floats;
using kernels::OpCall;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

const kernels::KernelRegistry& Kernels() {
  static const auto* registry = [] {
    auto* created = new kernels::KernelRegistry;
    Register(*created);
    return created;
  }();
  return *registry;
}

enum class From { kFloats, kU8, kI8, kSum };

// The call with parameters, of the last `axes` axes; to codes by `to`.
OpCall CallOf(const std::string& op, const Shape& shape, int axes, From from, const AttributeMap& to) {
  const Shape normalized(shape.end() - axes, shape.end());
  OpCall call{"int8." + op, {SeededTensor(Floats(shape), 1), SeededTensor(Floats(normalized), 2)}, to};
  if (op == "layer_norm") call.operands.push_back(SeededTensor(Floats(normalized), 3));
  if (from == From::kSum) call.operands.push_back(SeededTensor(Floats(shape), 4));
  if (from == From::kU8) call.operands[0] = SeededTensor(kernels::Codes(DType::kU8, shape, 0.02f, 131), 5);
  if (from == From::kI8) call.operands[0] = SeededTensor(kernels::Codes(DType::kI8, shape, 0.5f, -9), 6);
  call.attributes.emplace("normalized_shape", normalized);
  call.attributes.emplace("eps", 1e-5);
  return call;
}

const AttributeMap kScale = {{"out_scale", 0.02}, {"out_zero_point", 120}};

TEST(Norm, HasTheReferencesBits) {
  const std::pair<Shape, int> cases[] = {{{1}, 1},      {{5, 15}, 1},      {{5, 16}, 1},   {{2, 3, 17}, 1},
                                         {{3, 31}, 1},  {{40, 65}, 1},     {{3, 4, 5}, 2}, {{2, 3, 4, 5}, 1},
                                         {{7, 768}, 1}, {{2, 2, 3, 4}, 3}, {{3, 1025}, 1}};
  for (const char* op : {"layer_norm", "rms_norm"}) {
    for (const auto& [shape, axes] : cases) {
      for (const From from : {From::kFloats, From::kU8, From::kI8, From::kSum}) {
        Ints dims;
        for (int axis = 1; axis <= axes; ++axis) dims.push_back(-axis);
        for (const AttributeMap& to : std::vector<AttributeMap>{
                 kScale, {{"out_dtype", DType::kI8}, {"out_scale", 0.3}, {"out_zero_point", -128}}, {{"dims", dims}}}) {
          EXPECT_EQ(DifferenceFromReference(Kernels(), CallOf(op, shape, axes, from, to)), "")
              << ToString(shape) << static_cast<int>(from);
        }
      }
    }
  }
}

// To codes NaN is the zero point; a row has no scale for it.
TEST(Norm, WhatIsNotFinite) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    for (const char* op : {"layer_norm", "rms_norm"}) {
      OpCall call = CallOf(op, {3, 40}, 1, From::kFloats, kScale);
      call.operands[0]->data<float>()[55] = bad;
      EXPECT_EQ(DifferenceFromReference(Kernels(), call), "");
      call.attributes = CallOf(op, {3, 40}, 1, From::kFloats, {{"dims", Ints{-1}}}).attributes;
      EXPECT_THAT(DifferenceFromReference(Kernels(), call), HasSubstr("input holds"));
      const auto found =
          RunCall(*Kernels().FindOrNull(call.op), call, DescOf(call, Layout::kRowMajor, Layout::kRowMajor));
      EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(found.status().message()), HasSubstr("input holds"));
    }
  }
}

TEST(Norm, ARowOfZerosHasScaleOne) {
  OpCall call = CallOf("rms_norm", {3, 20}, 1, From::kFloats, {{"dims", Ints{1}}});
  std::fill_n(call.operands[0]->data<float>() + 20, 20, 0.0f);
  EXPECT_EQ(DifferenceFromReference(Kernels(), call), "");
}

TEST(Norm, Declines) {
  const auto status = [](const OpCall& call) {
    return Create(DescOf(call, Layout::kRowMajor, Layout::kRowMajor)).status();
  };
  EXPECT_EQ(status(CallOf("rms_norm", {0, 4}, 1, From::kFloats, kScale)).code(), absl::StatusCode::kUnimplemented);
  for (const Ints& dims : {Ints{0}, Ints{0, 1}}) {
    EXPECT_THAT(std::string(status(CallOf("rms_norm", {4, 4}, 1, From::kFloats, {{"dims", dims}})).message()),
                HasSubstr("wanted one for each row: [4,1]"));
  }
}

}  // namespace
}  // namespace fuselage::int8::norm
