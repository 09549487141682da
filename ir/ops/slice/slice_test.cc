#include "ir/ops/slice/slice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::slice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class SliceTest : public ::testing::Test {
 protected:
  std::vector<double> Slice(const Tensor& x, Ints starts, Ints ends, Ints axes = {}, Ints steps = {}) {
    return ToDoubles(ops_.Run("slice", {x}, {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}}));
  }
  const OpTester ops_{Register};
};

TEST_F(SliceTest, Slices) {
  const Tensor x = Iota({2, 4});
  EXPECT_THAT(Slice(x, {1, 0}, {2, 3}, {0, 1}, {1, 2}), ElementsAre(4, 6));
  EXPECT_THAT(Slice(x, {0, 1}, {-1, 1000}), ElementsAre(1, 2, 3));
  EXPECT_THAT(Slice(x, {-2}, {INT64_MAX}, {-1}), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(Slice(x, {-1}, {INT64_MIN}, {1}, {-1}), ElementsAre(3, 2, 1, 0, 7, 6, 5, 4));
  EXPECT_THAT(Slice(x, {1000}, {0}, {1}, {-2}), ElementsAre(3, 1, 7, 5));
  EXPECT_THAT(Slice(x, {3}, {1}, {1}), ElementsAre());
  EXPECT_THAT(Slice(x, {0}, {4}, {1}, {INT64_MAX}), ElementsAre(0, 4));
  EXPECT_THAT(Slice(x, {3}, {INT64_MIN}, {1}, {INT64_MIN}), ElementsAre(3, 7));
  EXPECT_THAT(Slice(Iota({0, 2}), {0}, {5}, {0}, {-1}), ElementsAre());
}

TEST_F(SliceTest, SliceErrors) {
  const auto error = [&](Ints starts, Ints ends, Ints axes = {}, Ints steps = {}) {
    return ops_.Infer("slice", {F32({2, 3})}, {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}});
  };
  EXPECT_THAT(error({0}, {1}, {0}, {0}), HasSubstr("steps=[0]: wanted no 0"));
  EXPECT_THAT(error({0}, {1, 2}), HasSubstr("ends=[1, 2]: wanted 1 values"));
  EXPECT_THAT(error({0, 0, 0}, {1, 1, 1}), HasSubstr("starts=[0, 0, 0]: wanted at most 2 values"));
  EXPECT_THAT(error({0}, {1}, {0, 1}), HasSubstr("starts=[0]: wanted 2 values"));
  EXPECT_THAT(error({0, 0}, {1, 1}, {0, -2}), HasSubstr("each axis once"));
  EXPECT_THAT(error({0}, {1}, {2}), HasSubstr("axis 2 not in"));
}

TEST_F(SliceTest, Split) {
  const auto parts = ops_.RunAll("split", {Iota({2, 3})}, {{"sizes", Ints{1, 2}}, {"dim", -1}});
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2);
  EXPECT_THAT((*parts)[0].values<float>(), ElementsAre(0, 3));
  EXPECT_THAT((*parts)[1].values<float>(), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(ops_.Infer("split", {F32({2, 3})}, {{"sizes", Ints{1, 2}}}),
              HasSubstr("sizes=[1, 2]: wanted sizes >= 0 that sum to 2, axis 0 of f32[2,3]"));
  EXPECT_THAT(ops_.Infer("split", {F32({2})}, {{"sizes", Ints{3, -1}}}), HasSubstr("sizes >= 0"));
  EXPECT_THAT(ops_.Infer("split", {F32({0})}, {{"sizes", Ints{}}}), HasSubstr("sizes=[]"));
}

TEST_F(SliceTest, CodesKeepTheirScale) {
  const TensorType codes{DType::kU8, {4}, PerTensor(0.5f, 3), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("slice", {codes}, {{"starts", Ints{1}}, {"ends", Ints{3}}}), "u8[2]<scale=0.5, zp=3>");
  EXPECT_EQ(ops_.Infer("split", {codes}, {{"sizes", Ints{1, 3}}}), "(u8[1]<scale=0.5, zp=3>, u8[3]<scale=0.5, zp=3>)");
}

TEST_F(SliceTest, GetItem) {
  const ir::OpSchema& schema = *ops_.registry().FindOrNull("operator.getitem");
  const ir::Type tuple = ir::Type::Tuple({F32({1}), F32({2})});
  std::vector<Tensor> values = {Iota({1}, 5), Iota({2}, 7)};
  const auto infer = [&](int64_t index) { return ir::Infer(schema, {{"index", index}}, {&tuple}); };
  for (int64_t index : {1, -1}) {
    const auto type = infer(index);
    ASSERT_TRUE(type.ok()) << type.status();
    const auto result = ir::Evaluate(schema, {{"index", index}}, {&values}, *type);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT((*result)[0].values<float>(), ElementsAre(7, 8));
  }
  EXPECT_THAT(std::string(infer(2).status().message()), HasSubstr("index=2: wanted [-2, 2)"));
  EXPECT_THAT(std::string(infer(-3).status().message()), HasSubstr("(f32[1], f32[2])"));
  EXPECT_THAT(ops_.Infer("getitem", {F32({2})}, {{"index", 0}}), HasSubstr("wanted a tuple"));
}

}  // namespace
}  // namespace fuselage::ops::slice
