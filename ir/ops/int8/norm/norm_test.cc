#include "ir/ops/int8/norm/norm.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"
#include "ir/ops/dynamic_quantize/dynamic_quantize.h"
#include "ir/ops/int8/quantize/quantize.h"
#include "ir/ops/layer_norm/layer_norm.h"

namespace fuselage::ops::int8::norm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

void RegisterAll(ir::OpRegistry& ops) {
  Register(ops);
  dynamic_quantize::Register(ops);
  layer_norm::Register(ops);
  quantize::Register(ops);
}

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class Int8NormTest : public ::testing::Test {
 protected:
  std::vector<Tensor> Run(const char* op, const OpTester::Operands& operands, AttributeMap attributes) {
    attributes.emplace("eps", 0.25);
    attributes.emplace("normalized_shape", Ints{operands[0]->shape().back()});
    auto results = ops_.RunAll(op, operands, attributes);
    EXPECT_TRUE(results.ok()) << results.status();
    return *std::move(results);
  }

  const OpTester ops_{RegisterAll};
  const AttributeMap norm_ = {{"eps", 0.25}, {"normalized_shape", Ints{2}}};
};

TEST_F(Int8NormTest, ByHand) {
  // Mean 2 and variance 4 - 0.25, without eps: halves of what lies around the mean.
  const float d = std::sqrt(3.75f);
  const Tensor x = Tensor::Of<float>({1, 2}, {2 + d, 2 - d});
  const Tensor weight = Tensor::Of<float>({2}, {2, 4}), bias = Tensor::Of<float>({2}, {0, 1});
  const auto codes = Run("int8.layer_norm", {x, weight, bias}, {{"out_scale", d / 8}, {"out_zero_point", 100}});
  EXPECT_THAT(codes[0].values<uint8_t>(), ElementsAre(108, 92 + std::lround(8 / d) - 8));
  // The root of the mean square of 3.5 and 0.5, and eps: 2.5 + 0.25 * 2.
  const auto rms = Run("int8.rms_norm", {Tensor::Of<float>({1, 2}, {1.5f, -std::sqrt(5.25f)}), weight},
                       {{"out_dtype", DType::kI8}, {"out_scale", 0.25}, {"out_zero_point", -7}});
  EXPECT_EQ(rms[0].data<int8_t>()[0], std::lround(1.5 / std::sqrt(4.0) * 2 / 0.25) - 7);
}

// Each form against the ops that it stands for.
TEST_F(Int8NormTest, HasTheBitsOfItsParts) {
  const Tensor a = SeededTensor(F32({3, 5, 19}), 1), b = SeededTensor(F32({3, 5, 19}), 2);
  const Tensor weight = SeededTensor(F32({19}), 3), bias = SeededTensor(F32({19}), 4);
  const AttributeMap shape = {{"normalized_shape", Ints{19}}, {"eps", 0.25}};
  const AttributeMap output = {{"out_scale", 0.03}, {"out_zero_point", 131}};
  Tensor sum(F32({3, 5, 19}));
  for (int64_t i = 0; i < sum.num_elements(); ++i) sum.data<float>()[i] = a.data<float>()[i] + b.data<float>()[i];
  const Tensor q = ops_.Run("int8.quantize", {a}, {{"out_scale", 0.01}, {"out_zero_point", 99}});
  for (const std::string op : {"layer_norm", "rms_norm"}) {
    OpTester::Operands parameters = {weight, bias};
    if (op == "rms_norm") parameters.pop_back();
    const auto with = [&](const Tensor& x) {
      OpTester::Operands operands = {x};
      operands.insert(operands.end(), parameters.begin(), parameters.end());
      return operands;
    };
    for (const Tensor& x : {a, q, sum}) {
      const bool adds = x.SameBytes(sum);
      const Tensor real = x.type().quant ? ops_.Run("int8.dequantize", {x}) : x;
      const Tensor normalized = ops_.Run(op, with(real), shape);
      OpTester::Operands operands = with(adds ? a : x);
      if (adds) operands.push_back(b);
      for (const bool rows : {false, true}) {
        const auto wanted = rows ? ops_.RunAll("dynamic_quantize_symmetric", {normalized}, {{"dims", Ints{-1}}})
                                 : ops_.RunAll("int8.quantize", {normalized}, output);
        ASSERT_TRUE(wanted.ok());
        const auto found = Run(("int8." + op).c_str(), operands, rows ? AttributeMap{{"dims", Ints{-1}}} : output);
        ASSERT_EQ(found.size(), wanted->size() + (adds ? 1 : 0));
        for (size_t i = 0; i < wanted->size(); ++i) EXPECT_TRUE(found[i].SameBytes((*wanted)[i])) << op << i << rows;
        EXPECT_TRUE(!adds || found.back().SameBytes(sum));
      }
    }
  }
}

TEST_F(Int8NormTest, Types) {
  const auto infer = [&](const OpTester::Types& types, AttributeMap attributes) {
    attributes.insert(norm_.begin(), norm_.end());
    return ops_.Infer("int8.rms_norm", types, attributes);
  };
  const TensorType codes = {DType::kU8, {3, 2}, PerTensor(0.5f, 3), Layout::kRowMajor};
  const AttributeMap rows = {{"dims", Ints{-1}}};
  EXPECT_EQ(infer({F32({3, 2})}, {{"out_scale", 0.5}}), "u8[3,2]<scale=0.5>");
  EXPECT_EQ(infer({codes}, rows), "(i8[3,2], f32[3,1])");
  EXPECT_EQ(infer({F32({3, 2}), std::nullopt, F32({3, 2})}, {}), "(u8[3,2]<scale=1>, f32[3,2])");
  EXPECT_EQ(infer({F32({3, 2}), std::nullopt, F32({3, 2})}, rows), "(i8[3,2], f32[3,1], f32[3,2])");
  EXPECT_THAT(infer({F32({3, 2}), std::nullopt, F32({2})}, {}), HasSubstr("residual f32[2]: wanted f32 as the input"));
  EXPECT_THAT(infer({codes, std::nullopt, codes}, {}), HasSubstr("residual"));
  EXPECT_THAT(infer({F32({3, 4})}, {}), HasSubstr("normalized_shape"));
  EXPECT_THAT(infer({{{DType::kF64, {3, 2}, std::nullopt, Layout::kRowMajor}}}, {}), HasSubstr("f32"));
  EXPECT_THAT(infer({F32({3, 2})}, {{"dims", Ints{-1}}, {"out_scale", 0.5}}), HasSubstr("wanted none beside dims"));
}

}  // namespace
}  // namespace fuselage::ops::int8::norm
