#include "passes/weight_rounding/hessian.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/testing/matchers.h"

namespace fuselage::weight_rounding {
namespace {

Tensor Rows(int64_t rows, int64_t columns, uint64_t seed) {
  return SeededTensor(Tensor(DType::kF32, {rows, columns}).type(), seed);
}

Hessian HessianOf(const Tensor& rows) {
  Hessian hessian(rows.dim(1));
  hessian.Add(rows.values<float>());
  return hessian;
}

TEST(HessianTest, IsTheSumOfOuterProducts) {
  for (const int64_t rows : {1, 3, 4, 7}) {
    const Tensor first = Rows(rows, 5, 1), second = Rows(2, 5, 2);
    Hessian hessian = HessianOf(first);
    hessian.Add(second.values<float>());
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        double sum = 0;
        for (int64_t r = 0; r < rows; ++r) sum += first.At(r * 5 + i) * first.At(r * 5 + j);
        for (int64_t r = 0; r < 2; ++r) sum += second.At(r * 5 + i) * second.At(r * 5 + j);
        EXPECT_NEAR(hessian(i, j), sum, 1e-12);
      }
    }
  }
}

// More columns than rows, and one that no row has: the damping alone determines some of them.
TEST(FactorTest, TimesItsTransposeIsTheDampedHessian) {
  Tensor rows = Rows(6, 9, 3);
  for (int64_t r = 0; r < 6; ++r) rows.data<float>()[r * 9 + 4] = 0;
  const Hessian hessian = HessianOf(rows);
  const Factor factor(hessian, 0.01);
  EXPECT_EQ(factor.order().back(), 4);
  for (int64_t i = 0; i < 9; ++i) {
    for (int64_t k = 0; k < 9; ++k) {
      double sum = 0;
      for (int64_t j = std::max(i, k); j < 9; ++j) sum += factor.column(j)[i] * factor.column(j)[k];
      EXPECT_NEAR(sum, hessian(factor.order()[i], factor.order()[k]) + (i == k ? 0.01 : 0), 1e-12);
    }
  }
}

double OutputError(const Tensor& rows, const Tensor& a, const Tensor& b) {
  const int64_t size = rows.dim(1);
  double error = 0;
  for (int64_t r = 0; r < rows.dim(0); ++r) {
    for (int64_t n = 0; n < a.dim(0); ++n) {
      double sum = 0;
      for (int64_t k = 0; k < size; ++k) sum += rows.At(r * size + k) * (a.At(n * size + k) - b.At(n * size + k));
      error += sum * sum;
    }
  }
  return error;
}

// Inputs with much in common, as those of real layers: outputs move far less, and by what is reported.
TEST(RoundTest, MovesOutputsLess) {
  Tensor rows = Rows(200, 40, 5);
  for (int64_t r = 0; r < 200; ++r) {
    for (int64_t k = 1; k < 40; ++k)
      rows.data<float>()[r * 40 + k] = rows.data<float>()[r * 40 + k] / 4 + rows.At(r * 40);
  }
  const Tensor weight = Rows(12, 40, 6);
  for (const QuantizeOptions::Weights mode :
       {QuantizeOptions::PER_CHANNEL, QuantizeOptions::PER_TENSOR, QuantizeOptions::PER_CHANNEL_7_BITS,
        QuantizeOptions::MXFP4, QuantizeOptions::INT4, QuantizeOptions::INT8_GROUPS}) {
    const quantize::WeightGrid grid(weight, mode);
    const Hessian hessian = HessianOf(rows);
    const Rounding rounding = Round(weight, grid, {Factor(hessian, 0.01 * hessian.MeanOfDiagonal())});
    const Tensor nearest = quantize::Rounded(weight, mode);
    EXPECT_NEAR(rounding.nearest, OutputError(rows, weight, nearest), 1e-6 * rounding.nearest);
    EXPECT_NEAR(rounding.rounded, OutputError(rows, weight, rounding.weight), 1e-6 * rounding.nearest);
    EXPECT_NEAR(rounding.signal, OutputError(rows, weight, Tensor(DType::kF32, {12, 40})), 1e-6 * rounding.signal);
    EXPECT_LT(rounding.rounded, 0.3 * rounding.nearest) << mode;
    // Its weights lie on the grid, and on the one that they would have themselves.
    EXPECT_TRUE(quantize::Rounded(rounding.weight, mode).SameBytes(rounding.weight)) << mode;
    // A second time there is nothing to do.
    const quantize::WeightGrid again(rounding.weight, mode);
    EXPECT_TRUE(Round(rounding.weight, again, {Factor(hessian, 0.5)}).weight.SameBytes(rounding.weight)) << mode;
  }
}

// Output channels of each group by its own inputs.
TEST(RoundTest, GroupsAreRoundedAlone) {
  const Tensor weight = Rows(6, 8, 1);
  const quantize::WeightGrid grid(weight, QuantizeOptions::PER_CHANNEL);
  std::vector<Factor> factors;
  for (const uint64_t seed : {2, 3}) factors.emplace_back(HessianOf(Rows(9, 8, seed)), 0.1);
  const Rounding both = Round(weight, grid, factors);
  double rounded = 0;
  for (int64_t g = 0; g < 2; ++g) {
    const Tensor part = Tensor::Of<float>({3, 8}, {weight.data<float>() + g * 24, weight.data<float>() + g * 24 + 24});
    const Rounding alone = Round(part, quantize::WeightGrid(part, QuantizeOptions::PER_CHANNEL), {factors[g]});
    for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(both.weight.At(g * 24 + i), alone.weight.At(i));
    rounded += alone.rounded;
  }
  EXPECT_EQ(both.rounded, rounded);
}

}  // namespace
}  // namespace fuselage::weight_rounding
