// com.microsoft's weights in blocks, against numbers worked out by hand.
#include <string>
#include <vector>

#include "frontend/onnx/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fuselage::onnx {
namespace {

using ::testing::ElementsAre;

constexpr char kMicrosoft[] = "com.microsoft";

Tensor U8(Shape shape, std::vector<uint8_t> values) { return Tensor::Of<uint8_t>(std::move(shape), values); }

// One row x, and z.
ModelBuilder Row(int64_t size, DType dtype = DType::kF32) {
  ModelBuilder model;
  model.Input("x", {1, size}, dtype).Output("z", dtype);
  return model;
}

// Rows of 5 values in blocks of 4: the last block is half empty.
TEST(MatMulNBits, BlocksOfFourBits) {
  ModelBuilder model = Row(5);
  model.Initializer("w", U8({2, 2, 2}, {0x21, 0x43, 0x05, 0x00, 0xFE, 0xDC, 0x0B, 0x00}));
  model.Initializer("s", F32({4}, {1, 2, 0.5, 0.25}));
  model.Node("MatMulNBits", {"x", "w", "s"}, {"z"}, "fc").Int("N", 2).Int("K", 5).Int("block_size", 4);
  model.Int("bits", 4).Domain(kMicrosoft);
  // Row 0: codes 1 2 3 4 | 5, zero point 8: -7 -6 -5 -4 | -3 * 2. Row 1: 14 15 12 13 | 11: 3 3.5 2 2.5 | 0.75.
  const std::vector<Tensor> x = {F32({1, 5}, {1, 10, 100, 1000, 10000})};
  EXPECT_EQ(ToDoubles(Outputs(model, x)[0]), (std::vector<double>{-64567, 10238}));
  // Zero points 1 and 2, then 14 and 11, a row each.
  model.Initializer("zp", U8({2}, {0x21, 0xBE})).last_node().add_input("zp");
  EXPECT_EQ(ToDoubles(Outputs(model, x)[0]), (std::vector<double>{60000 + 3210, 0 + 5 - 100 - 500}));
  *model.graph().mutable_initializer(1) = ToProto("s", F32({3}, {1, 2, 3}));
  ExpectError(model, "node 'fc' (MatMulNBits): input 2: found f32[3], wanted 4 elements");
}

// Columns have the scales and zero points of the blocks that g_idx names; codes lie as without it.
TEST(MatMulNBits, GroupOfEachColumn) {
  ModelBuilder model = Row(4);
  model.Initializer("w", U8({1, 2, 1}, {0x21, 0x43})).Initializer("s", F32({1, 2}, {1, 10}));
  model.Initializer("zp", U8({1}, {0x10})).Initializer("g", Tensor::Of<int32_t>({4}, {1, 0, 1, 0}));
  model.Node("MatMulNBits", {"x", "w", "s", "zp", "g"}, {"z"}, "fc").Int("N", 1).Int("K", 4).Int("block_size", 2);
  model.Domain(kMicrosoft);
  // Codes 1 2 3 4, less 1 0 1 0, by 10 1 10 1.
  EXPECT_EQ(ToDoubles(Outputs(model, {F32({1, 4}, {1, 1000, 10, 10000})})[0]), (std::vector<double>{42200}));
  *model.graph().mutable_initializer(3) = ToProto("g", Tensor::Of<int32_t>({4}, {1, 0, 2, 0}));
  ExpectError(model, "input 4 (g_idx): found 2 of column 2, wanted a block in [0, 2)");
  *model.graph().mutable_initializer(3) = ToProto("g", Tensor::Of<int32_t>({2}, {1, 0}));
  ExpectError(model, "input 4 (g_idx): found 2 elements, wanted 4");
}

// A code times a scale of f16 is not rounded to f16: 7 * 0.0999756 is 0.6998291, and would be 0.6997070.
TEST(MatMulNBits, ProductsOfHalvesStay) {
  ModelBuilder model = Row(2, DType::kF16);
  model.Initializer("w", U8({1, 1, 1}, {0x0F})).Initializer("s", Cast(F32({1}, {0.1f}), DType::kF16));
  model.Node("MatMulNBits", {"x", "w", "s"}, {"z"}).Int("N", 1).Int("K", 2).Int("block_size", 2).Domain(kMicrosoft);
  const auto graph = Parse(model.Bytes(), "half.onnx", Ops());
  ASSERT_TRUE(graph.ok()) << graph.status();
  bool found = false;
  for (const auto& [name, parameter] : (*graph)->parameters()) {
    if (parameter.tensor->num_elements() != 2) continue;
    found = true;
    const float scale = static_cast<float>(Cast(F32({1}, {0.1f}), DType::kF16).At(0));
    EXPECT_THAT(parameter.tensor->values<float>(), ElementsAre(7 * scale, -8 * scale));
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(Outputs(model, {Cast(F32({1, 2}, {2, 1}), DType::kF16)})[0].type().dtype, DType::kF16);
}

TEST(MatMulNBits, Errors) {
  const auto model = [](int64_t bits, int64_t columns) {
    ModelBuilder model = Row(2);
    model.Initializer("w", U8({1, 1, 1}, {0x0F})).Initializer("s", F32({1}, {1}));
    model.Node("MatMulNBits", {"x", "w", "s"}, {"z"}, "fc").Int("N", 1).Int("K", columns).Int("block_size", 2);
    return std::move(model.Int("bits", bits).Domain(kMicrosoft));
  };
  ExpectError(model(3, 2), "attribute 'bits': found 3, wanted 2, 4 or 8");
  ExpectError(model(4, 0), "found N 1, K 0, block_size 2, wanted values in [1, 1073741824]");
}

// Blocks of three go on from row to row of two; the high bits come first.
TEST(MatMulBnb4, Formats) {
  const auto model = [](int64_t format) {
    ModelBuilder model = Row(2);
    model.Initializer("w", U8({2}, {0x3D, 0x70})).Initializer("s", F32({2}, {2, 4}));
    model.Node("MatMulBnb4", {"x", "w", "s"}, {"z"}, "fc").Int("N", 2).Int("K", 2).Int("block_size", 3);
    return std::move(model.Int("quant_type", format).Domain(kMicrosoft));
  };
  const std::vector<Tensor> x = {F32({1, 2}, {1, 100})};
  // FP4: 1, -0.5 and 0.25 by 2, 0 by 4.
  EXPECT_THAT(Outputs(model(0), x)[0].values<float>(), ElementsAre(2 - 100, 0.5));
  // NF4: codes 3, 13 and 7 by 2, 0 by 4.
  EXPECT_THAT(Outputs(model(1), x)[0].values<float>(),
              ElementsAre(::testing::FloatEq(-0.78983498f + 112.5234f), ::testing::FloatEq(-400)));
  ExpectError(model(2), "attribute 'quant_type': found 2, wanted 0 (FP4) or 1 (NF4)");
}

// Rows 2 and 0 of a table of three, four columns in blocks of two.
TEST(GatherBlockQuantized, Rows) {
  const auto model = [](Tensor codes, int64_t bits) {
    ModelBuilder model;
    model.Input("x", {2}, DType::kI64).Output("z").Initializer("t", codes);
    model.Initializer("s", F32({3, 2}, {1, 2, 3, 4, 5, 6}));
    model.Node("GatherBlockQuantized", {"t", "x", "s"}, {"z"}, "rows").Int("block_size", 2).Int("bits", bits);
    return std::move(model.Domain(kMicrosoft));
  };
  const std::vector<Tensor> x = {Tensor::Of<int64_t>({2}, {2, 0})};
  // Without zero points codes of u8 begin at the middle.
  ModelBuilder packed = model(U8({3, 2}, {0x98, 0x70, 0x00, 0x00, 0xA8, 0xF9}), 4);
  EXPECT_EQ(ToDoubles(Outputs(packed, x)[0]), (std::vector<double>{0, 10, 6, 42, 0, 1, -16, -2}));
  packed.Initializer("zp", U8({3, 1}, {0x10, 0x00, 0x0A})).last_node().add_input("zp");
  EXPECT_EQ(ToDoubles(Outputs(packed, x)[0]), (std::vector<double>{-10, 0, 54, 90, 8, 9, -2, 12}));
  const ModelBuilder bytes = model(U8({3, 4}, {128, 129, 130, 127, 0, 0, 0, 0, 128, 138, 126, 128}), 8);
  EXPECT_EQ(ToDoubles(Outputs(bytes, x)[0]), (std::vector<double>{0, 50, -12, 0, 0, 1, 4, -2}));
  ExpectError(model(U8({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), 4), "found scales f32[3,2], wanted f32[3,3]");
}

// Along other dimensions: columns 1 and 0, in blocks of two rows.
TEST(GatherBlockQuantized, ColumnsOfInt4) {
  ModelBuilder model;
  model.Input("x", {2}, DType::kI64).Output("z").Initializer("s", F32({2, 2}, {1, 2, 3, 4}));
  schema::TensorProto& table = *model.graph().add_initializer();
  table.set_name("t");
  table.set_data_type(22);  // INT4
  for (const int64_t size : {3, 2}) table.add_dims(size);
  table.set_raw_data(std::string("\x21\xF3\x78", 3));  // Rows 1 2, 3 -1, -8 7.
  model.Node("GatherBlockQuantized", {"t", "x", "s"}, {"z"}).Int("block_size", 2).Int("gather_axis", 1);
  model.Int("quantize_axis", 0).Domain(kMicrosoft);
  const std::vector<Tensor> x = {Tensor::Of<int64_t>({2}, {1, 0})};
  EXPECT_EQ(ToDoubles(Outputs(model, x)[0]), (std::vector<double>{4, 1, -2, 3, 28, -24}));
}

}  // namespace
}  // namespace fuselage::onnx
