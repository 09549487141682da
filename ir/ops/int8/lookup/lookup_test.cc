#include "ir/ops/int8/lookup/lookup.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::int8::lookup {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LookupTest : public ::testing::Test {
 protected:
  // Row c has (byte + 100 * c) mod 256, or as i8 the same bits.
  static Tensor Table(int64_t rows, DType dtype = DType::kU8) {
    Tensor table(TensorType{dtype, {rows, 256}, std::nullopt, Layout::kRowMajor});
    for (int64_t i = 0; i < table.num_elements(); ++i) {
      static_cast<uint8_t*>(table.raw_data())[i] = static_cast<uint8_t>(i % 256 + 100 * (i / 256));
    }
    return table;
  }

  const OpTester ops_{Register};
};

TEST_F(LookupTest, HasATableForEachChannelOrOne) {
  const Tensor x = Tensor::Of<uint8_t>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 255});
  const Tensor y = ops_.Run("int8.lookup", {x, Table(2)}, {{"out_scale", 0.5}, {"out_zero_point", 7}});
  EXPECT_THAT(y.values<uint8_t>(), ElementsAre(0, 1, 102, 103, 4, 5, 106, 99));
  EXPECT_EQ(y.type().quant, PerTensor(0.5, 7));
  EXPECT_THAT(ops_.Run("int8.lookup", {x, Table(1)}).values<uint8_t>(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 255));
}

TEST_F(LookupTest, HasSignedCodes) {
  const Tensor x = Tensor::Of<uint8_t>({3}, {1, 127, 128});
  const Tensor y = ops_.Run("int8.lookup", {x, Table(1, DType::kI8)}, {{"out_dtype", DType::kI8}});
  EXPECT_THAT(y.values<int8_t>(), ElementsAre(1, 127, -128));
}

TEST_F(LookupTest, CodesAreTheirBytes) {
  Tensor x(TensorType{DType::kI8, {4}, PerTensor(0.5, 3), Layout::kRowMajor});
  for (int i = 0; i < 4; ++i) x.Set(i, i == 3 ? -128 : -i);
  EXPECT_THAT(ops_.Run("int8.lookup", {x, Table(1)}).values<uint8_t>(), ElementsAre(0, 255, 254, 128));
}

TEST_F(LookupTest, Errors) {
  const TensorType x{DType::kU8, {1, 3, 4, 4}, std::nullopt, Layout::kRowMajor}, table = Table(3).type();
  TensorType codes = x, floats = x;
  codes.quant = QuantParams{{1, 1, 1}, {0, 0, 0}, 1};
  floats.dtype = DType::kF32;
  EXPECT_THAT(ops_.Infer("int8.lookup", {floats, table}), HasSubstr("input f32[1,3,4,4]: wanted element type u8"));
  EXPECT_THAT(ops_.Infer("int8.lookup", {codes, table}), HasSubstr("wanted one scale for the whole tensor"));
  EXPECT_THAT(ops_.Infer("int8.lookup", {x, Table(2).type()}), HasSubstr("table u8[2,256]: wanted [1,256] or [3,256]"));
  EXPECT_THAT(ops_.Infer("int8.lookup", {x, table}, {{"out_dtype", DType::kI8}}),
              HasSubstr("table u8[3,256]: wanted element type i8"));
}

}  // namespace
}  // namespace fuselage::ops::int8::lookup
