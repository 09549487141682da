#include "ir/ops/int8/conv2d_max_pool2d/conv2d_max_pool2d.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"
#include "ir/ops/int8/conv2d/conv2d.h"
#include "ir/ops/int8/pool/pool.h"

namespace fuselage::ops::int8::conv2d_max_pool2d {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

constexpr char kOp[] = "int8.conv2d_max_pool2d";

TensorType Codes(DType dtype, Shape shape, QuantParams params) {
  return {dtype, std::move(shape), std::move(params), Layout::kRowMajor};
}

class Int8Conv2dMaxPool2dTest : public ::testing::Test {
 protected:
  const OpTester whole_{Register}, conv_{conv2d::Register}, pool_{pool::Register};
  const Tensor x_ = SeededTensor(Codes(DType::kU8, {2, 4, 11, 9}, PerTensor(0.04f, 131)), 1);
  const Tensor w_ = SeededTensor(Codes(DType::kI8, {6, 2, 3, 3}, PerAxis(0, std::vector<float>(6, 0.01f))), 2);
  const Tensor b_ = SeededTensor({DType::kF32, {6}, std::nullopt, Layout::kRowMajor}, 3);
  AttributeMap conv_attributes_ = {
      {"stride", Ints{2, 1}}, {"padding", Ints{1, 0, 2, 1}}, {"dilation", Ints{1, 2}},       {"groups", 2},
      {"activation", "relu"}, {"out_dtype", DType::kI8},     {"out_scale", Attribute(0.03)}, {"out_zero_point", -7}};
  AttributeMap pool_attributes_ = {{"kernel_size", Ints{3, 2}},
                                   {"stride", Ints{2, 2}},
                                   {"padding", Ints{1, 0, 0, 1}},
                                   {"dilation", Ints{1, 2}},
                                   {"ceil_mode", true}};

  AttributeMap WholeAttributes() const {
    AttributeMap attributes = conv_attributes_;
    for (const auto& [name, value] : pool_attributes_) attributes.emplace("pool_" + name, value);
    return attributes;
  }
};

TEST_F(Int8Conv2dMaxPool2dTest, IsThePoolOfTheConvolution) {
  for (const bool bias : {true, false}) {
    OpTester::Operands operands = {x_, w_};
    if (bias) operands.push_back(b_);
    const Tensor y = whole_.Run(kOp, operands, WholeAttributes());
    const Tensor wanted =
        pool_.Run("int8.max_pool2d", {conv_.Run("int8.conv2d", operands, conv_attributes_)}, pool_attributes_);
    EXPECT_EQ(ToString(y.type()), ToString(wanted.type()));
    EXPECT_TRUE(y.SameBytes(wanted));
  }
}

TEST_F(Int8Conv2dMaxPool2dTest, TypeIsThePoolsWithTheConvolutionsParameters) {
  EXPECT_EQ(whole_.Infer(kOp, {x_.type(), w_.type()}, WholeAttributes()), "i8[2,6,3,3]<scale=0.03, zp=-7>");
}

TEST_F(Int8Conv2dMaxPool2dTest, Errors) {
  const auto error = [&] { return whole_.Infer(kOp, {x_.type(), w_.type(), b_.type()}, WholeAttributes()); };
  pool_attributes_.insert_or_assign("kernel_size", Ints{0, 2});
  EXPECT_THAT(error(), HasSubstr("int8.max_pool2d: kernel_size=[0, 2]: wanted 2 values in [1, 2^31)"));
  pool_attributes_.erase(pool_attributes_.find("kernel_size"));
  EXPECT_THAT(error(), HasSubstr("attribute pool_kernel_size is missing"));
  pool_attributes_.emplace("kernel_size", Ints{3, 2});
  conv_attributes_.insert_or_assign("out_dtype", DType::kF32);
  EXPECT_THAT(error(), HasSubstr("wanted u8 or i8 codes"));
  conv_attributes_.insert_or_assign("groups", 3);
  EXPECT_THAT(error(), HasSubstr("int8.conv2d: "));
  EXPECT_THAT(whole_.Infer(kOp, {x_.type(), w_.type(), b_.type(), x_.type()}, WholeAttributes()),
              HasSubstr("3 operands at most"));
}

}  // namespace
}  // namespace fuselage::ops::int8::conv2d_max_pool2d
