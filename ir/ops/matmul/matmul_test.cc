#include "ir/ops/matmul/matmul.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::matmul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class MatmulTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(MatmulTest, MatricesAndVectors) {
  const Tensor a = Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), b = Tensor::Of<float>({3, 2}, {1, 0, 0, 1, 1, 1});
  EXPECT_THAT(ops_.Run("matmul", {a, b}).values<float>(), ElementsAre(4, 5, 10, 11));
  const Tensor v = Tensor::Of<float>({3}, {1, 10, 100});
  EXPECT_THAT(ops_.Run("matmul", {a, v}).values<float>(), ElementsAre(321, 654));
  EXPECT_EQ(ops_.Run("matmul", {a, v}).shape(), (Shape{2}));
  EXPECT_THAT(ops_.Run("matmul", {v, b}).values<float>(), ElementsAre(101, 110));
  const Tensor dot = ops_.Run("matmul", {v, v});
  EXPECT_EQ(dot.rank(), 0);
  EXPECT_EQ(dot.At(0), 10101);
}

TEST_F(MatmulTest, BatchesBroadcast) {
  const Tensor a = Iota({2, 1, 1, 2}), b = Iota({3, 2, 1});
  const Tensor y = ops_.Run("matmul", {a, b});
  EXPECT_EQ(y.shape(), (Shape{2, 3, 1, 1}));
  EXPECT_THAT(y.values<float>(), ElementsAre(1, 3, 5, 3, 13, 23));
}

TEST_F(MatmulTest, EmptyInnerDimensionGivesZeros) {
  EXPECT_THAT(ops_.Run("matmul", {Iota({1, 0}), Iota({0, 2})}).values<float>(), ElementsAre(0, 0));
}

TEST_F(MatmulTest, Integers) {
  const Tensor a = Tensor::Of<int32_t>({1, 2}, {65536, -1}), b = Tensor::Of<int32_t>({2, 1}, {65536, 7});
  EXPECT_THAT(ops_.Run("matmul", {a, b}).values<int32_t>(), ElementsAre(-7));  // Modulo 2^32.
}

TEST_F(MatmulTest, CodesLessTheirZeroPoints) {
  const Tensor a = Tensor::Of<uint8_t>({2, 2}, {255, 3, 0, 4}), b = Tensor::Of<int8_t>({2, 2}, {1, -128, 2, 127});
  const Tensor rows = Tensor::Of<uint8_t>({2, 1}, {3, 4}), columns = Tensor::Of<int8_t>({2}, {0, -1});
  EXPECT_THAT(ops_.Run("matmul_integer", {a, b, rows, columns}).values<int32_t>(),
              ElementsAre(252, 252 * -127, -4, -4 * -127));
  EXPECT_THAT(ops_.Run("matmul_integer", {a, b}).values<int32_t>(), ElementsAre(261, 255 * -128 + 3 * 127, 8, 508));
  EXPECT_THAT(ops_.Infer("matmul_integer", {F32({2, 2}), F32({2, 2})}), HasSubstr("wanted u8 or i8"));
}

TEST_F(MatmulTest, Errors) {
  EXPECT_THAT(ops_.Infer("matmul", {F32({2, 3}), F32({2, 3})}), HasSubstr("inner dimensions 3 and 2 differ"));
  EXPECT_THAT(ops_.Infer("matmul", {F32({2, 2, 3}), F32({3, 3, 3})}), HasSubstr("do not broadcast: 2 against 3"));
  EXPECT_THAT(ops_.Infer("matmul", {F32({}), F32({3, 3})}), HasSubstr("rank 0, wanted at least 1"));
  EXPECT_THAT(ops_.Infer("matmul", {F32({3}), {{DType::kF64, {3}, std::nullopt, Layout::kRowMajor}}}),
              HasSubstr("other f64[3]: wanted element type f32"));
}

TEST_F(MatmulTest, Gemm) {
  const Tensor a = Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), b = Tensor::Of<float>({2, 2}, {1, 10, 100, 1000});
  EXPECT_THAT(ops_.Run("gemm", {a, b}).values<float>(), ElementsAre(201, 2010, 403, 4030));
  EXPECT_THAT(ops_.Run("gemm", {a, b}, {{"trans_a", true}}).values<float>(), ElementsAre(301, 3010, 402, 4020));
  EXPECT_THAT(ops_.Run("gemm", {a, b}, {{"trans_b", true}}).values<float>(), ElementsAre(21, 2100, 43, 4300));
  EXPECT_THAT(ops_.Run("gemm", {a, b, Tensor::Of<float>({2}, {1, 2})}, {{"alpha", 2.0}, {"beta", 0.5}}).values<float>(),
              ElementsAre(402.5, 4021, 806.5, 8061));
  EXPECT_THAT(ops_.Run("gemm", {a, b, Tensor::Of<float>({2, 1}, {1, 2})}).values<float>(),
              ElementsAre(202, 2011, 405, 4032));
  EXPECT_THAT(ops_.Run("gemm", {a, b, Tensor::Scalar(1.0f)}).values<float>(), ElementsAre(202, 2011, 404, 4031));
  EXPECT_EQ(ops_.Run("gemm", {Iota({3, 2}), Iota({4, 3})}, {{"trans_a", true}, {"trans_b", true}}).shape(),
            (Shape{2, 4}));
}

TEST_F(MatmulTest, GemmErrors) {
  EXPECT_THAT(ops_.Infer("gemm", {F32({2, 3}), F32({2, 3})}), HasSubstr("inner dimensions 3 and 2 differ"));
  EXPECT_THAT(ops_.Infer("gemm", {F32({2, 3}), F32({3})}), HasSubstr("b f32[3]: rank 1, wanted 2"));
  EXPECT_THAT(ops_.Infer("gemm", {F32({2, 3}), F32({3, 4}), F32({2})}), HasSubstr("wanted what broadcasts to [2,4]"));
  EXPECT_THAT(ops_.Infer("gemm", {F32({1, 3}), F32({3, 4}), F32({2, 4})}),
              HasSubstr("wanted what broadcasts to [1,4]"));
}

TEST_F(MatmulTest, Addmm) {
  const Tensor a = Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), b = Tensor::Of<float>({2, 2}, {1, 10, 100, 1000});
  const Tensor bias = Tensor::Of<float>({2}, {1, 2});
  EXPECT_THAT(ops_.Run("addmm", {bias, a, b}).values<float>(), ElementsAre(202, 2012, 404, 4032));
  EXPECT_THAT(ops_.Run("addmm", {bias, a, b}, {{"alpha", 2.0}, {"beta", 0.5}}).values<float>(),
              ElementsAre(402.5, 4021, 806.5, 8061));
  const Tensor nan = Tensor::Scalar(std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(ops_.Run("addmm", {nan, a, b}, {{"beta", 0.0}}).values<float>(), ElementsAre(201, 2010, 403, 4030));
}

TEST_F(MatmulTest, AddmmErrors) {
  EXPECT_THAT(ops_.Infer("addmm", {F32({2}), F32({2, 3}), F32({2, 3})}),
              HasSubstr("mat1 f32[2,3]: times f32[2,3]: inner dimensions 3 and 2 differ"));
  EXPECT_THAT(ops_.Infer("addmm", {F32({2}), F32({2, 3}), F32({3})}), HasSubstr("mat2 f32[3]: rank 1, wanted 2"));
  EXPECT_THAT(ops_.Infer("addmm", {F32({3}), F32({2, 3}), F32({3, 4})}),
              HasSubstr("input f32[3]: wanted what broadcasts to [2,4]"));
  EXPECT_THAT(ops_.Infer("addmm", {std::nullopt, F32({2, 3}), F32({3, 4})}), HasSubstr("input"));
}

}  // namespace
}  // namespace fuselage::ops::matmul
