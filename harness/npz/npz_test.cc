// Archives of NumPy's and our own, and every way in which one can be broken.
#include "harness/npz/npz.h"

#include <zip.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/files.h"
#include "ir/testing/matchers.h"

namespace fuselage::npz {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kNumpy[] = "harness/npz/testdata/numpy.npz";

std::string Path(const std::string& name) { return ::testing::TempDir() + "/" + name; }

Tensor Seeded(DType dtype, Shape shape) {
  return SeededTensor({dtype, std::move(shape), std::nullopt, Layout::kRowMajor}, 5);
}

void Overwrite(const std::string& path, absl::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), bytes.size());
}

// An archive with one file of these bytes.
std::string Zipped(const std::string& name, const std::string& bytes) {
  const std::string path = Path("zipped.npz");
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
  EXPECT_GE(zip_file_add(archive, name.c_str(), source, 0), 0);
  EXPECT_EQ(zip_close(archive), 0);
  return path;
}

TEST(Npz, ReadsWhatNumpyWrites) {
  const auto arrays = Read(kNumpy);
  ASSERT_OK(arrays);
  ASSERT_EQ(arrays->size(), 10);
  const auto expect = [&](int i, const std::string& name, const Tensor& wanted) {
    EXPECT_EQ((*arrays)[i].name, name);
    EXPECT_TRUE((*arrays)[i].tensor.SameBytes(wanted)) << name << " " << ToString((*arrays)[i].tensor.type());
  };
  expect(0, "bool", Tensor::Of<bool>({2}, {true, false}));
  expect(1, "uint8", Tensor::Of<uint8_t>({2, 3}, {250, 251, 252, 253, 254, 255}));
  expect(2, "int8", Tensor::Of<int8_t>({2}, {-128, 127}));
  expect(3, "int16", Tensor::Of<int16_t>({1, 1}, {-3}));
  expect(4, "int32", Tensor::Of<int32_t>({1}, {1 << 30}));
  expect(5, "int64", Tensor::Of<int64_t>({1}, {-(int64_t{1} << 62)}));
  expect(6, "float16", Tensor::Of<Half>({2}, {ToHalf(0.5f), ToHalf(-2)}));
  std::vector<float> eighths;
  for (int i = 0; i < 24; ++i) eighths.push_back(i / 8.0f);
  expect(7, "group/float32", Tensor::Of<float>({2, 3, 4}, eighths));
  expect(8, "float64", Tensor::Scalar<double>(1.0 / 3));
  expect(9, "empty", Tensor(DType::kF32, {0, 3}));

  const auto compressed = Read("harness/npz/testdata/compressed.npz");
  ASSERT_OK(compressed);
  EXPECT_TRUE((*compressed)[0].tensor.SameBytes(Tensor(DType::kF32, {5000})));
  EXPECT_TRUE((*compressed)[1].tensor.SameBytes(Tensor::Of<int32_t>({3}, {0, 1, 2})));
}

// NumPy's own headers, to the byte: what we write, NumPy reads.
TEST(Npz, HeadersAreNumpys) {
  const std::string bytes = *harness::ReadFile(kNumpy);
  const auto arrays = Read(kNumpy);
  ASSERT_OK(arrays);
  for (const Array& array : *arrays) {
    const std::string header = HeaderOf(array.tensor.type());
    EXPECT_EQ(header.size() % 64, 0);
    EXPECT_NE(bytes.find(header), std::string::npos) << array.name;
  }
}

TEST(Npz, WritesWhatItReads) {
  const std::vector<Array> arrays = {{"int8/logits", Seeded(DType::kF32, {2, 5})},
                                     {"codes", Seeded(DType::kU8, {3})},
                                     {"\xc3\xa4", Seeded(DType::kI64, {})},
                                     {"empty", Tensor(DType::kF32, {0})}};
  ASSERT_OK(Write(Path("a.npz"), arrays));
  ASSERT_OK(Write(Path("a.npz"), arrays)) << "over the old one";
  const auto read = Read(Path("a.npz"));
  ASSERT_OK(read);
  ASSERT_EQ(read->size(), arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ((*read)[i].name, arrays[i].name);
    EXPECT_TRUE((*read)[i].tensor.SameBytes(arrays[i].tensor));
  }
  ASSERT_OK(Write(Path("b.npz"), arrays));
  EXPECT_EQ(*harness::ReadFile(Path("a.npz")), *harness::ReadFile(Path("b.npz")));
  EXPECT_THAT(std::string(Write(Path("none/a.npz"), arrays).message()), HasSubstr("cannot write "));
  EXPECT_THAT(std::string(Write(Path("c.npz"), {{"a\x01", arrays[0].tensor}}).message()),
              HasSubstr("c.npz: array \"a\\x01\": "));
}

TEST(Npz, TruncatedAtAnyByteIsAnError) {
  ASSERT_OK(Write(Path("whole.npz"), {{"x", Seeded(DType::kF32, {7})}, {"y", Seeded(DType::kU8, {3})}}));
  const std::string bytes = *harness::ReadFile(Path("whole.npz"));
  for (size_t size = 0; size < bytes.size(); ++size) {
    Overwrite(Path("cut.npz"), absl::string_view(bytes).substr(0, size));
    const auto read = Read(Path("cut.npz"));
    ASSERT_FALSE(read.ok()) << size;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("cut.npz: ")) << size;
  }
}

// What a flipped bit leaves is an error, or the same arrays: never other values, for the checksum sees them.
TEST(Npz, AFlippedBitIsNeverSeenInAValue) {
  const Tensor x = Seeded(DType::kF32, {7});
  ASSERT_OK(Write(Path("whole.npz"), {{"x", x}}));
  const std::string bytes = *harness::ReadFile(Path("whole.npz"));
  int errors = 0;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= 1 << bit % 8;
    Overwrite(Path("flipped.npz"), flipped);
    const auto read = Read(Path("flipped.npz"));
    errors += !read.ok();
    for (const Array& array : read.ok() ? *read : std::vector<Array>()) {
      EXPECT_TRUE(array.tensor.SameBytes(x)) << "bit " << bit;
    }
  }
  EXPECT_GT(errors, bytes.size() * 8 / 2);
}

TEST(Npz, WhatIsNoArchiveOfArrays) {
  const auto error = [](const std::string& path) { return std::string(Read(path).status().message()); };
  Overwrite(Path("text.npz"), "hello");
  EXPECT_THAT(error(Path("text.npz")), HasSubstr("text.npz: not a good .npz file: "));
  EXPECT_EQ(Read(Path("none.npz")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(error(Zipped("readme.txt", "hello")),
              HasSubstr("found the file \"readme.txt\", wanted names that end in"));
  const std::string header = HeaderOf({DType::kF32, {2}, std::nullopt, Layout::kRowMajor});
  EXPECT_THAT(error(Zipped("x.npy", header + "1234")),
              HasSubstr("zipped.npz: array \"x\": found 4 bytes of data, wanted 8 for f32[2]"));
  EXPECT_THAT(error(Zipped("x.npy", header + "123456789")), HasSubstr("found 9 bytes of data, wanted 8"));
  const std::string huge = HeaderOf({DType::kF32, {int64_t{1} << 40}, std::nullopt, Layout::kRowMajor});
  EXPECT_THAT(error(Zipped("x.npy", huge)), HasSubstr("found 0 bytes of data, wanted 4398046511104"));
  EXPECT_EQ(Read(Zipped("x.npy", header + "12345678"), 7).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_OK(Read(Zipped("x.npy", header + "12345678"), 8));
}

std::string Npy(const std::string& dictionary) {
  std::string bytes("\x93NUMPY\x01\x00??", 10);
  bytes[8] = static_cast<char>(dictionary.size());
  bytes[9] = 0;
  return bytes + dictionary;
}

TEST(Npy, HeadersThatNumpyCouldWrite) {
  const auto type = [](const std::string& dictionary) {
    const auto header = ParseHeader(Npy(dictionary));
    EXPECT_OK(header) << dictionary;
    return header.ok() ? ToString(header->type) : "";
  };
  EXPECT_EQ(type("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"), "f32[2,3]");
  EXPECT_EQ(type("{'shape':(),\"descr\":\"|i1\",'fortran_order':False}   \n"), "i8[]");
  EXPECT_EQ(type("{'descr': '<i8', 'fortran_order': False, 'shape': (0,)}\n"), "i64[0]");
  std::string second("\x93NUMPY\x02\x00\x3c\x00\x00\x00", 12);
  const auto header = ParseHeader(second + "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}  \n");
  ASSERT_OK(header);
  EXPECT_EQ(header->size, 12 + 0x3c);
}

TEST(Npy, OtherHeadersSayWhatWasWanted) {
  const auto error = [](const std::string& descr, const std::string& order, const std::string& shape) {
    const auto header =
        ParseHeader(Npy(absl::StrCat("{'descr': ", descr, ", 'fortran_order': ", order, ", 'shape': ", shape, "}\n")));
    EXPECT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(header.status().message());
  };
  EXPECT_THAT(error("'<f4'", "True", "(2, 3)"), HasSubstr("found Fortran order, wanted C order"));
  EXPECT_THAT(error("'>f4'", "False", "(2,)"), AllOf(HasSubstr("\">f4\""), HasSubstr("wanted little-endian ones")));
  EXPECT_THAT(error("'|O'", "False", "(2,)"), HasSubstr("found Python objects"));
  EXPECT_THAT(error("'<c8'", "False", "(2,)"), HasSubstr("\"<c8\", wanted one of bool, uint8"));
  EXPECT_THAT(error("[('a', '<f4')]", "False", "(2,)"), HasSubstr("found a structured type"));
  EXPECT_THAT(error("'<f4'", "Maybe", "(2,)"), HasSubstr("wanted True or False"));
  EXPECT_THAT(error("'<f4'", "False", "(-1,)"), HasSubstr("whole numbers"));
  EXPECT_THAT(error("'<f4'", "False", "(99999999999999999999,)"), HasSubstr("whole numbers"));
  EXPECT_THAT(error("'<f4'", "False", "(4611686018427387904, 2)"), HasSubstr("4611686018427387904"));
  EXPECT_THAT(error("'<f4'", "False", "(4611686018427387904,)"), HasSubstr("overflows 64 bits"));
  std::string deep = "(1";
  for (int i = 0; i < 32; ++i) deep += ",1";
  EXPECT_THAT(error("'<f4'", "False", deep + ")"), HasSubstr("at most 32"));
  EXPECT_THAT(error("'<f4'", "False", "(2"), HasSubstr("in the header, wanted \",\""));
  EXPECT_THAT(error("'<f4'", "False", "(2,), 'shape': (2,)"), HasSubstr("the key \"shape\""));
  EXPECT_THAT(error("'<f4'", "False", "(2,)} x"), HasSubstr("behind the header"));

  const std::string good = HeaderOf({DType::kF32, {2, 3}, std::nullopt, Layout::kRowMajor});
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(ParseHeader(good.substr(0, size)).ok()) << size;
  std::string future = good;
  future[6] = 4;
  EXPECT_THAT(std::string(ParseHeader(future).status().message()), HasSubstr("found version 4.0"));
  EXPECT_FALSE(ParseHeader(Npy("{'descr': '<f4', 'shape': (2,)}\n")).ok());
}

}  // namespace
}  // namespace fuselage::npz
