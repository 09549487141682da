// Every form in which a tensor's payload is stored, and what is refused before anything is allocated or read.
#include "frontend/onnx/tensors.h"
#include "absl/strings/str_cat.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "frontend/onnx/model_builder.h"
#include "frontend/onnx/onnx.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx {
namespace {

namespace fs = std::filesystem;
using schema::TensorProto;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TensorProto Proto(int type, std::vector<int64_t> dims) {
  TensorProto proto;
  proto.set_name("w");
  proto.set_data_type(type);
  for (int64_t dim : dims) proto.add_dims(dim);
  return proto;
}

absl::StatusOr<Tensor> Read(const TensorProto& proto, int64_t limit = 1 << 20) {
  Budget budget(limit);
  return ToTensor(proto, {}, &budget);
}

std::vector<double> Values(const TensorProto& proto) {
  const auto tensor = Read(proto);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.ok() ? ToDoubles(*tensor) : std::vector<double>();
}

void ExpectError(const TensorProto& proto, absl::StatusCode code, const std::string& message) {
  const auto tensor = Read(proto);
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.status().code(), code);
  EXPECT_THAT(std::string(tensor.status().message()), HasSubstr("tensor 'w': " + message));
}

TEST(Typed, EachField) {
  TensorProto f32 = Proto(TensorProto::FLOAT, {2});
  f32.add_float_data(1.5f);
  f32.add_float_data(-2);
  EXPECT_EQ(Values(f32), (std::vector<double>{1.5, -2}));

  TensorProto f64 = Proto(TensorProto::DOUBLE, {});
  f64.add_double_data(0.1);
  EXPECT_EQ(Values(f64), (std::vector<double>{0.1}));

  TensorProto i64 = Proto(TensorProto::INT64, {1, 1});
  i64.add_int64_data(-5);
  EXPECT_EQ(Values(i64), (std::vector<double>{-5}));

  for (int type : {TensorProto::INT32, TensorProto::INT16, TensorProto::INT8}) {
    TensorProto integer = Proto(type, {2});
    integer.add_int32_data(-100);
    integer.add_int32_data(100);
    EXPECT_EQ(Values(integer), (std::vector<double>{-100, 100}));
  }
  TensorProto u8 = Proto(TensorProto::UINT8, {1});
  u8.add_int32_data(255);
  EXPECT_EQ(Values(u8), (std::vector<double>{255}));
  TensorProto boolean = Proto(TensorProto::BOOL, {2});
  boolean.add_int32_data(0);
  boolean.add_int32_data(1);
  EXPECT_EQ(Values(boolean), (std::vector<double>{0, 1}));

  TensorProto f16 = Proto(TensorProto::FLOAT16, {2});  // Bits of 1 and -2.
  f16.add_int32_data(0x3c00);
  f16.add_int32_data(0xc000);
  EXPECT_EQ(Values(f16), (std::vector<double>{1, -2}));
  EXPECT_EQ(Read(f16)->dtype(), DType::kF16);
  TensorProto bf16 = Proto(TensorProto::BFLOAT16, {2});
  bf16.add_int32_data(0x3f80);
  bf16.add_int32_data(0xc000);
  EXPECT_EQ(Values(bf16), (std::vector<double>{1, -2}));
  EXPECT_EQ(Read(bf16)->dtype(), DType::kF32);
}

TEST(Raw, EachType) {
  for (DType dtype : {DType::kBool, DType::kU8, DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kF16,
                      DType::kF32, DType::kF64}) {
    const Tensor tensor = Seeded({2, 3}, 5, dtype);
    const auto read = Read(ToProto("w", tensor));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(read->SameBytes(tensor)) << DTypeName(dtype);
  }
  TensorProto bf16 = Proto(TensorProto::BFLOAT16, {2});
  bf16.set_raw_data(std::string("\x80\x3f\x00\xc0", 4));
  EXPECT_EQ(Values(bf16), (std::vector<double>{1, -2}));
  TensorProto empty = Proto(TensorProto::FLOAT, {0, 3});
  EXPECT_EQ(Read(empty)->shape(), (Shape{0, 3}));
  TensorProto boolean = Proto(TensorProto::BOOL, {1});
  boolean.set_raw_data("\x07");
  EXPECT_EQ(Values(boolean), (std::vector<double>{1}));
}

// Types of newer schemas, by their numbers: raw, and as int32_data.
TEST(Widened, EachType) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Case {
    int type;
    DType dtype;
    std::string bytes;
    std::vector<double> values;
  };
  const Case cases[] = {
      {4, DType::kI32, std::string("\x01\x00\xff\xff", 4), {1, 65535}},                                  // UINT16
      {17, DType::kF32, std::string("\x38\x01\xfe\x08", 4), {1, 0.001953125, -448, 0.015625}},           // E4M3FN
      {18, DType::kF32, std::string("\x40\x7f\x00", 3), {1, 240, 0}},                                    // E4M3FNUZ
      {19, DType::kF32, std::string("\x3c\x7b\xfc\x01", 4), {1, 57344, -kInfinity, 1.52587890625e-05}},  // E5M2
      {20, DType::kF32, std::string("\x40\x7f", 2), {1, 57344}},                                         // E5M2FNUZ
      {21, DType::kU8, std::string("\xf1\x08", 2), {1, 15, 8}},                                          // UINT4
      {22, DType::kI8, std::string("\xf1\x08", 2), {1, -1, -8}},                                         // INT4
      {23, DType::kF32, std::string("\x21\x0f", 2), {0.5, 1, -6}},                                       // FLOAT4E2M1
  };
  for (const Case& c : cases) {
    TensorProto raw = Proto(c.type, {static_cast<int64_t>(c.values.size())});
    raw.set_raw_data(c.bytes);
    const auto read = Read(raw);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->dtype(), c.dtype) << c.type;
    EXPECT_EQ(ToDoubles(*read), c.values) << c.type;
    TensorProto typed = Proto(c.type, {static_cast<int64_t>(c.values.size())});
    for (size_t i = 0; i < c.bytes.size(); ++i) {
      int entry = static_cast<uint8_t>(c.bytes[i]);
      if (c.type == 4) entry += static_cast<uint8_t>(c.bytes[++i]) << 8;
      typed.add_int32_data(entry);
    }
    EXPECT_EQ(Values(typed), c.values) << c.type;
    raw.mutable_raw_data()->push_back(0);
    ExpectError(raw, kInvalid, absl::StrCat("found ", c.bytes.size() + 1, " bytes of raw_data, wanted"));
  }
  for (const auto& [type, bits] : {std::pair(17, 0x7f), {17, 0xff}, {18, 0x80}, {19, 0x7d}, {20, 0x80}}) {
    TensorProto nan = Proto(type, {1});
    nan.add_int32_data(bits);
    EXPECT_TRUE(std::isnan(Values(nan)[0])) << type;
  }
  TensorProto range = Proto(21, {1});
  range.add_int32_data(256);
  ExpectError(range, kInvalid, "found 256 as element 0, wanted a value in [0, 255]");
}

TEST(Payload, MustFitTypeAndShape) {
  TensorProto raw = Proto(TensorProto::FLOAT, {2, 3});
  raw.set_raw_data(std::string(20, 'a'));
  ExpectError(raw, kInvalid, "found 20 bytes of raw_data, wanted 24 for FLOAT[2,3]");

  TensorProto typed = Proto(TensorProto::FLOAT, {3});
  typed.add_float_data(1);
  ExpectError(typed, kInvalid, "found 1 values, wanted 3 for FLOAT[3]");
  ExpectError(Proto(TensorProto::FLOAT, {3}), kInvalid, "found 0 values, wanted 3");

  TensorProto field = Proto(TensorProto::FLOAT, {1});
  field.add_double_data(1);
  ExpectError(field, kInvalid, "found 1 values, wanted 1 for FLOAT[1]");

  TensorProto both = Proto(TensorProto::FLOAT, {1});
  both.set_raw_data("abcd");
  both.add_float_data(1);
  ExpectError(both, kInvalid, "found more than one payload");

  TensorProto range = Proto(TensorProto::INT8, {1});
  range.add_int32_data(128);
  ExpectError(range, kInvalid, "found 128 as element 0, wanted a value in [-128, 127]");

  // Nothing of this size is allocated: the payload does not fit.
  TensorProto huge = Proto(TensorProto::FLOAT, {int64_t{1} << 50});
  huge.set_raw_data("abcd");
  ExpectError(huge, kInvalid, "found 4 bytes of raw_data, wanted 4503599627370496");
  ExpectError(Proto(TensorProto::FLOAT, {int64_t{1} << 40, int64_t{1} << 40}), kInvalid, "shape ");
  ExpectError(Proto(TensorProto::FLOAT, {-1}), kInvalid, "negative dimension");
}

TEST(Types, WithoutAPlaceInTheIr) {
  for (int type : {TensorProto::STRING, TensorProto::UINT64, TensorProto::UINT32, TensorProto::COMPLEX64}) {
    ExpectError(Proto(type, {1}), absl::StatusCode::kUnimplemented, "found " + ElementTypeName(type));
  }
  ExpectError(Proto(24, {1}), absl::StatusCode::kUnimplemented, "found element type 24");
  ExpectError(Proto(0, {1}), kInvalid, "found no element type");
}

TEST(Limit, IsChecked) {
  const auto tensor = Read(ToProto("w", Tensor(DType::kF32, {100})), 399);
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Read(ToProto("w", Tensor(DType::kF32, {100})), 400).ok());
}

// Weights go from where the model is into tensors, once.
TEST(Weights, AreNotParsed) {
  constexpr int64_t kWeights = 1 << 20;
  ModelBuilder model;
  model.Input("x", {kWeights / 4})
      .Initializer("w", Seeded({kWeights / 4}, 1))
      .Node("Add", {"x", "w"}, {"y"})
      .Output("y");
  const std::string bytes = model.Bytes();
  const std::string path = absl::StrCat(::testing::TempDir(), "/weights.", getpid(), ".onnx");
  std::ofstream(path, std::ios::binary) << bytes;
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  LoadOptions options;
  options.max_memory_bytes = kWeights + kWeights / 10;
  for (const auto& graph : {Parse(bytes, "m.onnx", ops, options), Load(path, ops, options)}) {
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_TRUE((*graph)->FindParameterOrNull("w")->tensor->SameBytes(Seeded({kWeights / 4}, 1)));
  }

  // A file that becomes shorter: before it is parsed, or before its weights are read.
  const auto file = FileRange::OpenWhole(path);
  ASSERT_TRUE(file.ok());
  const auto plan = ScanWire(*file, *schema::ModelProto::descriptor());
  ASSERT_TRUE(plan.ok()) << plan.status();
  Budget budget(0);
  schema::ModelProto proto;
  const auto raw_data = ParseWire(*file, *plan, &proto, &budget);
  ASSERT_TRUE(raw_data.ok()) << raw_data.status();
  EXPECT_LT(proto.ByteSizeLong(), 1000);
  fs::resize_file(path, 10);
  const std::string message = "weights." + absl::StrCat(getpid()) + ".onnx' became shorter while it was read";
  const auto tensor = ToTensor(proto.graph().initializer(0), {&*file, *raw_data, ""}, &budget);
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(tensor.status().message()), HasSubstr(message));
  const auto again = ParseWire(*file, *plan, &proto, &budget);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(again.status().message()), HasSubstr(message));
  const auto scan = ScanWire(*file, *schema::ModelProto::descriptor());
  EXPECT_EQ(scan.status().code(), absl::StatusCode::kUnavailable);
  fs::remove(path);
}

TEST(Weights, FitTypeAndShapeWhereverTheyAre) {
  ModelBuilder model;
  model.Input("x", {2}).Initializer("w", Seeded({2}, 1)).Node("Add", {"x", "w"}, {"y"}).Output("y");
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  model.graph().mutable_initializer(0)->add_float_data(1);
  EXPECT_THAT(std::string(Parse(model.Bytes(), "m.onnx", ops).status().message()),
              HasSubstr("tensor 'w': found more than one payload"));
  model.graph().mutable_initializer(0)->clear_float_data();
  model.graph().mutable_initializer(0)->mutable_raw_data()->push_back(0);
  EXPECT_THAT(std::string(Parse(model.Bytes(), "m.onnx", ops).status().message()),
              HasSubstr("tensor 'w': found 9 bytes of raw_data, wanted 8 for FLOAT[2]"));
}

// A model `model.onnx` with an external weight, in a folder of its own beside a file that it must not read.
class ExternalData : public ::testing::Test {
 protected:
  ExternalData() : root_(fs::path(::testing::TempDir()) / ("external." + std::to_string(getpid()))) {
    ops::RegisterAll(ops_);
    fs::create_directories(root_ / "model/sub");
    Write(root_ / "secret.bin", std::string(64, 's'));
    const float values[] = {1, -2, 3, -4};
    Write(root_ / "model/weights.bin", std::string(reinterpret_cast<const char*>(values), sizeof(values)));
  }
  ~ExternalData() override { fs::remove_all(root_); }

  static void Write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

  absl::StatusOr<std::unique_ptr<ir::Graph>> LoadWith(const std::string& location, const std::string& offset = "",
                                                      const std::string& length = "") {
    ModelBuilder model;
    model.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("w");
    auto* tensor = model.graph().add_initializer();
    *tensor = Proto(TensorProto::FLOAT, {2});
    tensor->set_data_location(TensorProto::EXTERNAL);
    const auto add = [tensor](const char* key, const std::string& value) {
      if (value.empty()) return;
      auto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    add("location", location);
    add("offset", offset);
    add("length", length);
    Write(root_ / "model/model.onnx", model.Bytes());
    LoadOptions options;
    options.external_files = &external_files_;
    return Load((root_ / "model/model.onnx").string(), ops_, options);
  }

  void ExpectRefused(const absl::StatusOr<std::unique_ptr<ir::Graph>>& graph, const std::string& message,
                     absl::StatusCode code = kInvalid) {
    ASSERT_FALSE(graph.ok());
    EXPECT_EQ(graph.status().code(), code) << graph.status();
    EXPECT_THAT(std::string(graph.status().message()), HasSubstr("tensor 'w': "));
    EXPECT_THAT(std::string(graph.status().message()), HasSubstr(message));
  }

  fs::path root_;
  ir::OpRegistry ops_;
  std::vector<std::string> external_files_;  // Those of all loads.
};

TEST_F(ExternalData, IsReadFromBelowTheModelsFolder) {
  const auto graph = LoadWith("weights.bin", "8", "8");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(ToDoubles(*(*graph)->FindParameterOrNull("w")->tensor), (std::vector<double>{3, -4}));
  EXPECT_EQ(external_files_, std::vector<std::string>{(root_ / "model/weights.bin").string()});
  EXPECT_TRUE(LoadWith("./weights.bin").ok());
  fs::create_symlink("../weights.bin", root_ / "model/sub/link.bin");
  EXPECT_TRUE(LoadWith("sub/link.bin").ok());
}

TEST_F(ExternalData, ElsewhereIsRefused) {
  ExpectRefused(LoadWith((root_ / "secret.bin").string()), "wanted a path relative to the model's folder");
  ExpectRefused(LoadWith("../secret.bin"), "wanted a path without '..'");
  ExpectRefused(LoadWith("sub/../weights.bin"), "wanted a path without '..'");
  fs::create_symlink("../secret.bin", root_ / "model/leak.bin");
  ExpectRefused(LoadWith("leak.bin"), "leads out of the model's folder");
  fs::create_directory_symlink("..", root_ / "model/up");
  ExpectRefused(LoadWith("up/secret.bin"), "leads out of the model's folder");
  ExpectRefused(LoadWith("sub"), "is not a regular file");
  ExpectRefused(LoadWith("none.bin"), "none.bin", absl::StatusCode::kNotFound);
  ExpectRefused(LoadWith(""), "found no external data location");
  ExpectRefused(LoadWith(std::string("weights.bin\0x", 13)), "wanted a path relative");
}

TEST_F(ExternalData, OffsetAndLengthAreChecked) {
  ExpectRefused(LoadWith("weights.bin", "12"), "found 16 bytes in 'weights.bin', wanted 8 from byte 12 on");
  ExpectRefused(LoadWith("weights.bin", "9223372036854775807"), "found 16 bytes");
  ExpectRefused(LoadWith("weights.bin", "-1"), "found '-1' as the offset");
  ExpectRefused(LoadWith("weights.bin", "x"), "found 'x' as the offset");
  ExpectRefused(LoadWith("weights.bin", "0", "16"), "found 16 bytes of external data, wanted 8");
}

TEST_F(ExternalData, AModelFromMemoryHasNoFolder) {
  TensorProto proto = Proto(TensorProto::FLOAT, {2});
  proto.set_data_location(TensorProto::EXTERNAL);
  ExpectError(proto, kInvalid, "found external data, wanted a model that holds all of its data");
}

}  // namespace
}  // namespace fuselage::onnx
