// What differs by how much: NaN, infinities, shapes, codes.
#include "ir/base/comparison.h"

#include <cmath>

#include "gtest/gtest.h"

namespace fuselage {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

Tensor Floats(const std::vector<float>& values) {
  return Tensor::Of<float>({static_cast<int64_t>(values.size())}, values);
}

TEST(Compare, FiniteValues) {
  const Difference same = Compare(Floats({1, -2}), Floats({1, -2}));
  EXPECT_EQ(same.max_abs_error, 0);
  EXPECT_EQ(same.rms_error, 0);
  EXPECT_EQ(same.magnitude, 2);
  EXPECT_EQ(same.snr_db, kInf);

  // sqrt((0.1^2 + 0.3^2) / 2) over a range of 4.
  const Difference apart = Compare(Floats({1, -3}), Floats({1.1f, -3.3f}));
  EXPECT_NEAR(apart.max_abs_error, 0.3, 1e-6);
  EXPECT_NEAR(apart.rms_error, std::sqrt(0.05), 1e-6);
  EXPECT_NEAR(apart.snr_db, -20 * std::log10(std::sqrt(0.05) / 4), 1e-5);
  EXPECT_NEAR(Compare(Floats({-2}), Floats({-2.2f})).snr_db, 20, 1e-4) << "a single value";
  EXPECT_EQ(Compare(Floats({0, 0}), Floats({0, 2})).snr_db, -kInf) << "no signal, some noise";
  EXPECT_EQ(Compare(Floats({}), Floats({})).max_abs_error, 0);
}

TEST(Compare, WhatIsNotFinite) {
  // The place of the NaN must not matter: a fold by std::max sees it last only.
  for (const Tensor& found : {Floats({kNan, 2, 3}), Floats({1, kNan, 3}), Floats({1, 2, kNan}), Floats({1, kInf, 3}),
                              Floats({1, -kInf, 3}), Floats({kNan, kNan, kNan})}) {
    const Difference difference = Compare(Floats({1, 2, 3}), found);
    EXPECT_EQ(difference.max_abs_error, kInf) << found.At(0) << " " << found.At(1) << " " << found.At(2);
    EXPECT_EQ(difference.rms_error, kInf);
    EXPECT_EQ(difference.snr_db, -kInf);
    EXPECT_EQ(difference.magnitude, 3);
    EXPECT_GT(difference.lost, 0);
    EXPECT_EQ(Compare(found, Floats({1, 2, 3})).max_abs_error, kInf) << "the other way round";
    EXPECT_EQ(Compare(found, Floats({1, 2, 3})).lost, 0);
  }
  EXPECT_EQ(Compare(Floats({kNan, kInf, -kInf, 1}), Floats({kNan, kInf, -kInf, 1})).max_abs_error, 0);
  EXPECT_EQ(Compare(Floats({kInf}), Floats({-kInf})).max_abs_error, kInf);
  // Where infinities agree, they are no part of the signal's range.
  EXPECT_NEAR(Compare(Floats({kInf, 0, 1}), Floats({kInf, 0, 0.9f})).snr_db, 20 * std::log10(std::sqrt(3) / 0.1), 1e-4);
}

TEST(Compare, Shapes) {
  EXPECT_EQ(Compare(Floats({1, 2}), Floats({1})).max_abs_error, kInf);
  EXPECT_EQ(Compare(Tensor::Of<float>({1, 2}, {1, 2}), Floats({1, 2})).snr_db, -kInf);
  const std::vector<Tensor> one = {Floats({1})}, two = {Floats({1}), Floats({5})},
                            moved = {Floats({1}), Floats({5.5f})};
  EXPECT_EQ(Compare(one, two).max_abs_error, kInf);
  EXPECT_EQ(Compare(two, two).max_abs_error, 0);
  EXPECT_EQ(Compare(two, moved).max_abs_error, 0.5);
  EXPECT_EQ(Compare(two, moved).magnitude, 5);
  EXPECT_EQ(Compare(two, {Floats({1}), Floats({kNan})}).snr_db, -kInf);
}

TEST(Compare, CodesByWhatTheyMean) {
  Tensor codes({DType::kU8, {2}, PerTensor(0.5f, 10), Layout::kRowMajor});
  codes.Set(0, 12);
  codes.Set(1, 8);
  EXPECT_EQ(Compare(Floats({1, -1}), codes).max_abs_error, 0);
  EXPECT_EQ(Compare(codes, Floats({1, -2})).max_abs_error, 1);
  // Integers that f32 cannot tell apart.
  EXPECT_EQ(Compare(Tensor::Of<int64_t>({1}, {1 << 24}), Tensor::Of<int64_t>({1}, {(1 << 24) + 1})).max_abs_error, 1);
}

TEST(IsClose, AsNumpyHasIt) {
  EXPECT_TRUE(IsClose(1.0009, 1, 1e-3, 0));
  EXPECT_FALSE(IsClose(1.0011, 1, 1e-3, 0));
  EXPECT_TRUE(IsClose(1e-8, 0, 1e-3, 1e-7));
  EXPECT_TRUE(IsClose(kNan, kNan, 0, 0));
  EXPECT_TRUE(IsClose(kInf, kInf, 0, 0));
  EXPECT_FALSE(IsClose(kNan, 1, 1, 1));
  EXPECT_FALSE(IsClose(1, kInf, 1e-3, 0)) << "a thousandth of infinity is infinity";
  EXPECT_FALSE(IsClose(-kInf, kInf, 1e-3, 0));
}

}  // namespace
}  // namespace fuselage
