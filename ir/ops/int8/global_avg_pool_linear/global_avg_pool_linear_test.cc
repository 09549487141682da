#include "ir/ops/int8/global_avg_pool_linear/global_avg_pool_linear.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"
#include "ir/ops/int8/linear/linear.h"
#include "ir/ops/int8/pool/pool.h"

namespace fuselage::ops::int8::global_avg_pool_linear {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

constexpr char kOp[] = "int8.global_avg_pool_linear";

TensorType Codes(DType dtype, Shape shape, QuantParams params) {
  return {dtype, std::move(shape), std::move(params), Layout::kRowMajor};
}

class Int8GlobalAvgPoolLinearTest : public ::testing::Test {
 protected:
  const OpTester whole_{Register}, pool_{pool::Register}, linear_{linear::Register};
  const Tensor x_ = SeededTensor(Codes(DType::kU8, {2, 5, 7, 3}, PerTensor(0.04f, 131)), 1);
  const Tensor w_ = SeededTensor(Codes(DType::kI8, {6, 5}, PerAxis(0, std::vector<float>(6, 0.01f))), 2);
  const Tensor b_ = SeededTensor({DType::kF32, {6}, std::nullopt, Layout::kRowMajor}, 3);
  AttributeMap pool_attributes_ = {{"out_dtype", DType::kI8}, {"out_scale", Attribute(0.007)}, {"out_zero_point", -3}};

  AttributeMap WholeAttributes(AttributeMap attributes) const {
    for (const auto& [name, value] : pool_attributes_) attributes.emplace("pool_" + name, value);
    return attributes;
  }
};

TEST_F(Int8GlobalAvgPoolLinearTest, IsTheLinearOfTheFlattenedMean) {
  for (const DType dtype : {DType::kF32, DType::kU8, DType::kI8}) {
    const AttributeMap layer = {{"out_dtype", dtype}, {"activation", "relu"}, {"out_scale", Attribute(0.01)}};
    Tensor rows = pool_.Run("int8.global_avg_pool", {x_}, pool_attributes_);
    TensorType type = rows.type();
    type.shape = {2, 5};
    rows.set_type(type);
    for (const bool bias : {true, false}) {
      OpTester::Operands operands = {x_, w_}, of_rows = {rows, w_};
      if (bias) operands.push_back(b_), of_rows.push_back(b_);
      const Tensor y = whole_.Run(kOp, operands, WholeAttributes(layer));
      const Tensor wanted = linear_.Run("int8.linear", of_rows, layer);
      EXPECT_EQ(ToString(y.type()), ToString(wanted.type()));
      EXPECT_TRUE(y.SameBytes(wanted)) << DTypeName(dtype);
    }
  }
}

TEST_F(Int8GlobalAvgPoolLinearTest, Errors) {
  const auto error = [&](const Tensor& x, const AttributeMap& layer = {}) {
    return whole_.Infer(kOp, {x.type(), w_.type(), b_.type()}, WholeAttributes(layer));
  };
  EXPECT_EQ(error(x_, {{"out_dtype", DType::kF32}}), "f32[2,6]");
  EXPECT_THAT(error(SeededTensor(Codes(DType::kU8, {2, 4, 7, 3}, PerTensor(1)), 1)),
              HasSubstr("int8.linear: input i8[2,4]<scale=0.007, zp=-3>: 4 features, wanted 5"));
  EXPECT_THAT(error(b_), HasSubstr("int8.global_avg_pool: "));
  pool_attributes_.insert_or_assign("out_zero_point", 128);
  EXPECT_THAT(error(x_), HasSubstr("int8.global_avg_pool: out_zero_point=128: wanted a value in [-128, 127]"));
}

}  // namespace
}  // namespace fuselage::ops::int8::global_avg_pool_linear
