#include "ir/ops/indexing/indexing.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::indexing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Tensor I64(Shape shape, std::vector<int64_t> values) { return Tensor::Of<int64_t>(std::move(shape), values); }
Tensor F32(Shape shape, std::vector<float> values) { return Tensor::Of<float>(std::move(shape), values); }
TensorType Of(DType dtype, Shape shape) { return {dtype, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class IndexingTest : public ::testing::Test {
 protected:
  std::string Error(absl::string_view op, const OpTester::Operands& operands, const AttributeMap& attributes = {}) {
    return std::string(ops_.RunAll(op, operands, attributes).status().message());
  }
  const OpTester ops_{Register};
};

TEST_F(IndexingTest, IndexSelect) {
  const Tensor x = Iota({2, 3, 2});
  const Tensor y = ops_.Run("index_select", {x, I64({2, 1}, {-1, 0})}, {{"dim", 1}});
  EXPECT_EQ(y.shape(), (Shape{2, 2, 1, 2}));
  EXPECT_THAT(y.values<float>(), ElementsAre(4, 5, 0, 1, 10, 11, 6, 7));
  EXPECT_THAT(ops_.Run("index_select", {x, I64({}, {1})}).values<float>(), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(ops_.Run("index_select", {x, I64({0}, {})}).values<float>(), IsEmpty());
  EXPECT_THAT(Error("index_select", {x, I64({1}, {3})}, {{"dim", 1}}), HasSubstr("index 3, wanted one in [-3, 3)"));
  EXPECT_THAT(Error("index_select", {x, I64({1}, {-4})}, {{"dim", 1}}), HasSubstr("index -4, wanted"));
  const TensorType codes{DType::kU8, {4, 2}, PerTensor(0.5f), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("index_select", {codes, Of(DType::kI32, {3})}), "u8[3,2]<scale=0.5>");
  EXPECT_THAT(ops_.Infer("index_select", {codes, Of(DType::kF32, {3})}), HasSubstr("wanted i32 or i64"));
  const int64_t huge = int64_t{1} << 62;
  EXPECT_THAT(ops_.Infer("index_select", {Of(DType::kF32, {1, 4}), Of(DType::kI64, {huge})}), HasSubstr("overflow"));
}

TEST_F(IndexingTest, Gather) {
  const Tensor x = Iota({2, 3});
  EXPECT_THAT(ops_.Run("gather", {x, I64({2, 2}, {2, -3, 1, 1})}, {{"dim", 1}}).values<float>(),
              ElementsAre(2, 0, 4, 4));
  EXPECT_THAT(ops_.Run("gather", {x, I64({3, 1}, {1, 0, 1})}).values<float>(), ElementsAre(3, 0, 3));
  EXPECT_THAT(Error("gather", {x, I64({1, 1}, {2})}), HasSubstr("index 2, wanted one in [-2, 2)"));
  EXPECT_THAT(ops_.Infer("gather", {x.type(), Of(DType::kI64, {2, 4})}), HasSubstr("wanted at most 3 on axis 1"));
  EXPECT_THAT(ops_.Infer("gather", {x.type(), Of(DType::kI64, {2})}), HasSubstr("rank 1, wanted 2"));
}

TEST_F(IndexingTest, GatherNd) {
  const Tensor x = Iota({2, 2, 3});
  EXPECT_THAT(ops_.Run("gather_nd", {x, I64({2, 2}, {1, -1, 0, 0})}).values<float>(), ElementsAre(9, 10, 11, 0, 1, 2));
  EXPECT_THAT(ops_.Run("gather_nd", {x, I64({2, 1}, {1, 0})}, {{"batch_dims", 1}}).values<float>(),
              ElementsAre(3, 4, 5, 6, 7, 8));
  EXPECT_THAT(ops_.Run("gather_nd", {Tensor(DType::kF32, {0, 2}), I64({0, 1}, {})}, {{"batch_dims", 1}}).shape(),
              ElementsAre(0));
  EXPECT_THAT(Error("gather_nd", {x, I64({1, 3}, {1, 1, 3})}), HasSubstr("index 3, wanted one in [-3, 3)"));
  EXPECT_THAT(ops_.Infer("gather_nd", {x.type(), Of(DType::kI64, {4})}), HasSubstr("a last axis of 1 to 3 positions"));
  EXPECT_THAT(ops_.Infer("gather_nd", {x.type(), Of(DType::kI64, {3, 1})}, {{"batch_dims", 1}}),
              HasSubstr("wanted 2 on the batch's axis 0"));
  EXPECT_THAT(ops_.Infer("gather_nd", {x.type(), Of(DType::kI64, {2, 1})}, {{"batch_dims", 2}}),
              HasSubstr("more axes than batch_dims"));
}

TEST_F(IndexingTest, Scatter) {
  const Tensor x = F32({1, 4}, {1, 2, 3, 4}), index = I64({1, 3}, {1, -1, 1}), src = F32({1, 3}, {10, 20, 30});
  const auto run = [&](const char* reduce) {
    return ops_.Run("scatter", {x, index, src}, {{"dim", 1}, {"reduce", reduce}});
  };
  EXPECT_THAT(run("none").values<float>(), ElementsAre(1, 30, 3, 20));
  EXPECT_THAT(run("add").values<float>(), ElementsAre(1, 42, 3, 24));
  EXPECT_THAT(run("mul").values<float>(), ElementsAre(1, 600, 3, 80));
  EXPECT_THAT(run("max").values<float>(), ElementsAre(1, 30, 3, 20));
  EXPECT_THAT(run("min").values<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Error("scatter", {x, I64({1, 1}, {4}), F32({1, 1}, {0})}, {{"dim", 1}}), HasSubstr("index 4"));
  EXPECT_THAT(ops_.Infer("scatter", {x.type(), index.type(), x.type()}, {{"dim", 1}}), HasSubstr("wanted shape [1,3]"));
  EXPECT_THAT(ops_.Infer("scatter", {x.type(), index.type(), src.type()}, {{"dim", 1}, {"reduce", "mean"}}),
              HasSubstr("wanted one of \"none\""));
  const TensorType codes{DType::kU8, {1, 4}, PerTensor(0.5f), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("scatter", {codes, Of(DType::kI64, {1, 4}), codes}), "u8[1,4]<scale=0.5>");
  EXPECT_THAT(ops_.Infer("scatter", {codes, Of(DType::kI64, {1, 4}), codes}, {{"reduce", "add"}}),
              HasSubstr("found quantized codes"));
  EXPECT_THAT(ops_.Infer("scatter", {codes, Of(DType::kI64, {1, 4}), Of(DType::kU8, {1, 4})}),
              HasSubstr("wanted the quantization parameters"));
}

// NaN stays, and integers of 64 bits wrap around.
TEST_F(IndexingTest, ScatterReducesAtTheEnds) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor index = I64({2}, {0, 1});
  for (const char* reduce : {"max", "min"}) {
    const Tensor y = ops_.Run("scatter", {F32({2}, {nan, 1}), index, F32({2}, {1, nan})}, {{"reduce", reduce}});
    EXPECT_TRUE(y.At(0) != y.At(0) && y.At(1) != y.At(1)) << reduce;
  }
  const int64_t most = std::numeric_limits<int64_t>::max();
  const Tensor x = I64({2}, {most, most - 1});
  EXPECT_THAT(ops_.Run("scatter", {x, index, I64({2}, {1, 1})}, {{"reduce", "add"}}).values<int64_t>(),
              ElementsAre(std::numeric_limits<int64_t>::min(), most));
}

TEST_F(IndexingTest, ScatterNd) {
  const Tensor x = Iota({3, 2});
  EXPECT_THAT(ops_.Run("scatter_nd", {x, I64({2, 1}, {2, 0}), F32({2, 2}, {9, 8, 7, 6})}).values<float>(),
              ElementsAre(7, 6, 2, 3, 9, 8));
  EXPECT_THAT(
      ops_.Run("scatter_nd", {x, I64({2, 2}, {1, 0, 1, 0}), F32({2}, {10, 20})}, {{"reduce", "add"}}).values<float>(),
      ElementsAre(0, 1, 32, 3, 4, 5));
  EXPECT_THAT(Error("scatter_nd", {x, I64({1, 1}, {3}), F32({1, 2}, {0, 0})}), HasSubstr("index 3"));
  EXPECT_THAT(ops_.Infer("scatter_nd", {x.type(), Of(DType::kI64, {1, 1}), x.type()}), HasSubstr("wanted shape [1,2]"));
}

TEST_F(IndexingTest, OneHot) {
  const Tensor values = F32({2}, {-1, 5});
  const Tensor y = ops_.Run("one_hot", {I64({2}, {-1, 0}), values}, {{"num_classes", 3}});
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_THAT(y.values<float>(), ElementsAre(-1, -1, 5, 5, -1, -1));
  EXPECT_THAT(ops_.Run("one_hot", {I64({2}, {3, -4}), values}, {{"num_classes", 3}, {"dim", 0}}).values<float>(),
              ElementsAre(-1, -1, -1, -1, -1, -1));
  EXPECT_THAT(ops_.Infer("one_hot", {Of(DType::kI64, {2}), values.type()}, {{"num_classes", -1}}),
              HasSubstr("wanted a number >= 0"));
}

TEST_F(IndexingTest, ReverseSequence) {
  const Tensor x = Iota({3, 2});
  EXPECT_THAT(ops_.Run("reverse_sequence", {x, I64({2}, {3, 2})}).values<float>(), ElementsAre(4, 3, 2, 1, 0, 5));
  EXPECT_THAT(
      ops_.Run("reverse_sequence", {x, I64({3}, {0, 1, 2})}, {{"batch_dim", 0}, {"time_dim", 1}}).values<float>(),
      ElementsAre(0, 1, 2, 3, 5, 4));
  EXPECT_THAT(Error("reverse_sequence", {x, I64({2}, {4, 0})}), HasSubstr("length 4, wanted one in [0, 3]"));
  EXPECT_THAT(ops_.Infer("reverse_sequence", {x.type(), Of(DType::kI64, {2})}, {{"batch_dim", -2}}),
              HasSubstr("another axis than batch_dim"));
}

}  // namespace
}  // namespace fuselage::ops::indexing
