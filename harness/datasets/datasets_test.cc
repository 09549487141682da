// Each reader on small files made here, whole and damaged.
#include <stdio.h>
// After <stdio.h>, which jpeglib.h needs.
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/datasets/cifar10.h"
#include "harness/datasets/fashion_mnist.h"
#include "harness/datasets/image_folder.h"
#include "harness/datasets/open.h"
#include "harness/datasets/text.h"
#include "ir/text.h"
#include "runtime/thread_pool.h"

namespace fuselage::datasets {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Folder(const std::string& name) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

void WritePlain(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), bytes.size());
}

std::string ReadPlain(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void WriteGzip(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, bytes.data(), bytes.size()), static_cast<int>(bytes.size()));
  gzclose(file);
}

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string IdxBytes(const std::vector<uint32_t>& dims, const std::string& data) {
  std::string bytes = {0, 0, 8, static_cast<char>(dims.size())};
  for (uint32_t dim : dims) bytes += BigEndian(dim);
  return bytes + data;
}

std::string Ramp(int n) {
  std::string bytes(n, '\0');
  std::iota(bytes.begin(), bytes.end(), 0);
  return bytes;
}

class FashionMnistTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = Folder("fashion");
    WriteGzip(Images(), IdxBytes({3, 2, 4}, Ramp(24)));
    WriteGzip(Labels(), IdxBytes({3}, {7, 0, 9}));
  }
  std::string Images() const { return folder_ + "/t10k-images-idx3-ubyte.gz"; }
  std::string Labels() const { return folder_ + "/t10k-labels-idx1-ubyte.gz"; }
  std::string Error() const {
    const auto opened = OpenFashionMnist(folder_, false);
    EXPECT_FALSE(opened.ok());
    EXPECT_EQ(harness::ExitCodeOf(opened.status()), harness::kInvalidInput) << opened.status();
    return std::string(opened.status().message());
  }
  std::string folder_;
};

TEST_F(FashionMnistTest, ReadsImagesAndLabels) {
  const auto opened = OpenFashionMnist(folder_, false);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const ImageDataset& data = **opened;
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.label(0), 7);
  EXPECT_EQ(data.label(2), 9);
  const Image image = *data.image(1);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.width, 4);
  EXPECT_EQ(image.channels, 1);
  EXPECT_THAT(image.pixels, ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
}

TEST_F(FashionMnistTest, NetworksTakeFloatsOrBytes) {
  const auto data = OpenFashionMnist(folder_, false);
  ASSERT_TRUE(data.ok()) << data.status();
  runtime::ThreadPool pool(1);
  ir::OpRegistry ops;
  HarnessConfig::Preprocessing normalized;
  normalized.add_mean(0.5f);
  const auto inputs = [&](const std::string& type, const HarnessConfig::Preprocessing& preprocessing) {
    const auto graph = ir::Parse("graph @g {\n  %x: " + type + " = placeholder\n  output(%x)\n}", ops);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return (*data)->Inputs(**graph, preprocessing, &pool);
  };
  const auto first = [&](const std::string& type, const TensorType& row,
                         const HarnessConfig::Preprocessing& preprocessing = {}) {
    const auto samples = inputs(type, preprocessing);
    EXPECT_TRUE(samples.ok()) << samples.status();
    return (*(*samples)->Batch(1, {row}))[0];
  };
  const auto bytes = [](Shape shape) { return TensorType{DType::kU8, shape, std::nullopt, Layout::kRowMajor}; };
  EXPECT_THAT(first("u8[1,1,2,4]", bytes({1, 1, 2, 4})).values<uint8_t>(), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(first("u8[1,2,4,3]", bytes({1, 2, 4, 3})).values<uint8_t>().subspan(0, 6), ElementsAre(8, 8, 8, 9, 9, 9));
  EXPECT_NE((*inputs("u8[1,3,2,4]", {}))->Key(2), (*inputs("u8[1,2,4,3]", {}))->Key(2));
  EXPECT_NE((*inputs("u8[1,3,2,4]", {}))->Key(2), (*inputs("f32[1,3,2,4]", {}))->Key(2));
  EXPECT_TRUE(inputs("f32[1,1,2,4]", normalized).ok());
  EXPECT_THAT(std::string(inputs("u8[1,1,2,4]", normalized).status().message()),
              HasSubstr("its own operators normalize bytes"));
  normalized.set_input(HarnessConfig::Preprocessing::PLANES);
  EXPECT_TRUE(inputs("u8[1,1,2,4]", normalized).ok()) << "they have taken the mean";
  // A line of pixels and planes of one channel may look alike.
  HarnessConfig::Preprocessing pixels;
  pixels.set_input(HarnessConfig::Preprocessing::PIXELS);
  EXPECT_THAT(first("u8[1,1,4,3]", bytes({1, 1, 4, 3}), pixels).values<uint8_t>(),
              ElementsAre(10, 10, 10, 11, 11, 11, 12, 12, 12, 13, 13, 13));
}

TEST_F(FashionMnistTest, WithoutAPathItIsWhereThePackagePutsIt) {
  const std::string shared = Folder("share");
  std::filesystem::create_directories(shared + "/datasets");
  std::filesystem::rename(folder_, shared + "/datasets/fashion-mnist");
  setenv("XDG_DATA_DIRS", shared.c_str(), 1);
  HarnessConfig::DatasetConfig config;
  config.mutable_fashion_mnist();
  EXPECT_EQ(FaultOf(config), "");
  const auto opened = Open(config, HarnessConfig::TEST, harness::SearchPath());
  unsetenv("XDG_DATA_DIRS");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->name, "fashion_mnist");
  EXPECT_EQ(opened->path, shared + "/datasets/fashion-mnist");
  EXPECT_EQ(opened->data->size(), 3);
}

TEST_F(FashionMnistTest, MissingDatasetNamesPathAndPackage) {
  const auto opened = OpenFashionMnist(folder_, true);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(opened.status().message()),
              AllOf(HasSubstr(folder_ + "/train-images-idx3-ubyte.gz"), HasSubstr("dataset-fashion-mnist")));
}

TEST_F(FashionMnistTest, WrongMagic) {
  WriteGzip(Labels(), IdxBytes({3, 1}, {7, 0, 9}));
  EXPECT_THAT(Error(), AllOf(HasSubstr(Labels()), HasSubstr("00000802"), HasSubstr("want 00000801")));
}

TEST_F(FashionMnistTest, TruncatedAtAnyByte) {
  const std::string whole = ReadPlain(Images());
  for (size_t size = 0; size < whole.size(); ++size) {
    WritePlain(Images(), whole.substr(0, size));
    EXPECT_THAT(Error(), HasSubstr(Images())) << size;
  }
  WriteGzip(Images(), IdxBytes({3, 2, 4}, Ramp(23)));
  EXPECT_THAT(Error(), AllOf(HasSubstr("ends at byte"), HasSubstr("short")));
}

TEST_F(FashionMnistTest, DamagedStreamFailsItsChecksum) {
  std::string bytes = ReadPlain(Images());
  bytes[bytes.size() - 6] ^= 1;  // In the CRC.
  WritePlain(Images(), bytes);
  EXPECT_THAT(Error(), HasSubstr("broken gzip data"));
}

TEST_F(FashionMnistTest, TrailingData) {
  WriteGzip(Images(), IdxBytes({3, 2, 4}, Ramp(25)));
  EXPECT_THAT(Error(), HasSubstr("more data after its last element, at byte 40"));
}

TEST_F(FashionMnistTest, HugeOrEmptyDimensions) {
  WriteGzip(Images(), IdxBytes({0xffffffff, 0xffffffff, 0xffffffff}, Ramp(8)));
  EXPECT_THAT(Error(), HasSubstr("dimension 0 is 4294967295"));
  WriteGzip(Images(), IdxBytes({3, 0, 4}, ""));
  EXPECT_THAT(Error(), HasSubstr("dimension 1 is 0"));
}

TEST_F(FashionMnistTest, LabelsMustFit) {
  WriteGzip(Labels(), IdxBytes({3}, {7, 10, 9}));
  EXPECT_THAT(Error(), HasSubstr("label 1 is 10"));
  WriteGzip(Labels(), IdxBytes({2}, {7, 1}));
  EXPECT_THAT(Error(), HasSubstr("3 images"));
}

TEST_F(FashionMnistTest, PlainFileIsNotGzip) {
  WritePlain(Images(), IdxBytes({3, 2, 4}, Ramp(24)));
  EXPECT_THAT(Error(), HasSubstr("not a gzip file"));
}

TEST(Cifar10Test, ReadsPlanesAsPixels) {
  const std::string folder = Folder("cifar");
  std::string record(1, 3);
  record += std::string(1024, 10) + std::string(1024, 20) + std::string(1024, 30);
  record[1 + 1] = 11;
  WritePlain(folder + "/test_batch.bin", record + record);
  const auto opened = OpenCifar10(folder, false);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->size(), 2);
  EXPECT_EQ((*opened)->label(1), 3);
  const Image image = *(*opened)->image(1);
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.pixels[0], 10);
  EXPECT_EQ(image.pixels[2], 30);
  EXPECT_EQ(image.pixels[3], 11);

  EXPECT_EQ(OpenCifar10(folder, true).status().code(), absl::StatusCode::kNotFound);
  WritePlain(folder + "/test_batch.bin", record + record.substr(0, 100));
  EXPECT_THAT(std::string(OpenCifar10(folder, false).status().message()),
              AllOf(HasSubstr("test_batch.bin"), HasSubstr("ends at byte 3173")));
  record[0] = 10;
  WritePlain(folder + "/test_batch.bin", record);
  EXPECT_THAT(std::string(OpenCifar10(folder, false).status().message()), HasSubstr("label 10 at byte 0"));
}

std::string JpegBytes(int width, int height, int channels) {
  jpeg_compress_struct info;
  jpeg_error_mgr error;
  info.err = jpeg_std_error(&error);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  jpeg_start_compress(&info, TRUE);
  std::vector<unsigned char> row(width * channels);
  for (size_t i = 0; i < row.size(); ++i) row[i] = channels == 1 ? 90 : 60 + 50 * (i % 3);
  JSAMPROW rows = row.data();
  for (int y = 0; y < height; ++y) jpeg_write_scanlines(&info, &rows, 1);
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string bytes(reinterpret_cast<char*>(buffer), size);
  free(buffer);
  return bytes;
}

std::string PngBytes(int width, int height, uint32_t format) {
  png_image png;
  std::memset(&png, 0, sizeof png);
  png.version = PNG_IMAGE_VERSION;
  png.width = width;
  png.height = height;
  png.format = format;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(png));
  std::iota(pixels.begin(), pixels.end(), 0);
  png_alloc_size_t size = 0;
  EXPECT_TRUE(png_image_write_to_memory(&png, nullptr, &size, 0, pixels.data(), 0, nullptr));
  std::string bytes(size, '\0');
  EXPECT_TRUE(png_image_write_to_memory(&png, &bytes[0], &size, 0, pixels.data(), 0, nullptr));
  bytes.resize(size);
  return bytes;
}

TEST(ImageFolderTest, LabelsByFolderName) {
  const std::string folder = Folder("images");
  std::filesystem::create_directories(folder + "/cat");
  std::filesystem::create_directories(folder + "/ant");
  WritePlain(folder + "/cat/a.JPG", JpegBytes(16, 8, 3));
  WritePlain(folder + "/cat/b.png", PngBytes(4, 2, PNG_FORMAT_RGB));
  WritePlain(folder + "/ant/c.png", PngBytes(4, 2, PNG_FORMAT_GRAY));
  WritePlain(folder + "/ant/notes.txt", "not an image");
  const auto opened = OpenImageFolder(folder);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const ImageDataset& data = **opened;
  ASSERT_EQ(data.size(), 3);
  EXPECT_EQ(data.num_classes(), 2);
  std::multiset<int> labels;
  std::multiset<int> channels;
  for (int i = 0; i < 3; ++i) {
    labels.insert(data.label(i));
    channels.insert(data.image(i)->channels);
  }
  EXPECT_EQ(labels, (std::multiset<int>{0, 1, 1}));
  EXPECT_EQ(channels, (std::multiset<int>{1, 3, 3}));

  EXPECT_THAT(std::string(OpenImageFolder(Folder("empty")).status().message()), HasSubstr("has no images"));
  EXPECT_EQ(OpenImageFolder(folder + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST(ImageFolderTest, ImagesWithoutLabelsAtAnyDepth) {
  const std::string folder = Folder("unlabelled");
  std::filesystem::create_directories(folder + "/a/b");
  WritePlain(folder + "/top.jpg", JpegBytes(16, 8, 3));
  WritePlain(folder + "/a/b/deep.PNG", PngBytes(4, 2, PNG_FORMAT_RGB));
  WritePlain(folder + "/a/notes.txt", "not an image");
  const auto opened = OpenImages(folder);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_EQ((*opened)->size(), 2);
  EXPECT_EQ((*opened)->num_classes(), 0);
  EXPECT_EQ((*opened)->image(0)->height + (*opened)->image(1)->height, 8 + 2);
  EXPECT_THAT(std::string(OpenImages(Folder("empty")).status().message()), HasSubstr("has no images; want .jpg"));
  EXPECT_EQ(OpenImages(folder + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST(ImageFolderTest, LabelsFromAList) {
  const std::string folder = Folder("list");
  WritePlain(folder + "/a.jpg", JpegBytes(16, 8, 3));
  WritePlain(folder + "/b c.png", PngBytes(4, 2, PNG_FORMAT_GRAY));
  const auto open = [&](const std::string& text) {
    WritePlain(folder + "/val.txt", text);
    return OpenLabelledImages(folder + "/val.txt");
  };
  const auto opened = open("a.jpg 7\n\nb c.png\t999\r\n");
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_EQ((*opened)->size(), 2);
  EXPECT_EQ((*opened)->num_classes(), 1000);
  for (int i = 0; i < 2; ++i) EXPECT_EQ((*opened)->label(i), (*opened)->image(i)->channels == 3 ? 7 : 999);

  const auto error = [&](const std::string& text) { return std::string(open(text).status().message()); };
  EXPECT_THAT(error("a.jpg 7\na.jpg\n"), HasSubstr("val.txt:2: found \"a.jpg\", wanted \"<path> <class>\""));
  EXPECT_THAT(error("a.jpg -1\n"), HasSubstr("val.txt:1: found \"a.jpg -1\""));
  EXPECT_THAT(error("a.jpg 1000000\n"), HasSubstr("from 0 to 999999"));
  EXPECT_THAT(error("none.jpg 1\n"), AllOf(HasSubstr("val.txt:1: found no file "), HasSubstr("none.jpg")));
  EXPECT_THAT(error("\n"), HasSubstr("val.txt: has no images"));
  EXPECT_EQ(OpenLabelledImages(folder + "/none").status().code(), absl::StatusCode::kNotFound);
}

// ImageNet has PNG files named .JPEG.
TEST(DecodeTest, TheBytesSayWhichKind) {
  EXPECT_EQ(DecodeImage(JpegBytes(16, 8, 3), "x.png")->width, 16);
  EXPECT_EQ(DecodeImage(PngBytes(4, 2, PNG_FORMAT_RGB), "x.jpg")->width, 4);
  EXPECT_THAT(std::string(DecodeImage("GIF89a", "x.jpg").status().message()),
              HasSubstr("x.jpg: found the first bytes"));
}

TEST(DecodeTest, JpegColoursAndGray) {
  const Image colour = *DecodeJpeg(JpegBytes(16, 8, 3), "c.jpg");
  EXPECT_EQ(colour.height, 8);
  EXPECT_EQ(colour.width, 16);
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(colour.pixels[3 * 37 + c], 60 + 50 * c, 2);
  const Image gray = *DecodeJpeg(JpegBytes(16, 8, 1), "g.jpg");
  EXPECT_EQ(gray.channels, 1);
  EXPECT_NEAR(gray.pixels[5], 90, 1);
}

TEST(DecodeTest, PngIsExact) {
  const Image image = *DecodePng(PngBytes(4, 2, PNG_FORMAT_RGB), "a.png");
  EXPECT_EQ(image.channels, 3);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(image.pixels[i], i);
}

TEST(DecodeTest, TransparencyLiesOnBlack) {
  const Image image = *DecodePng(PngBytes(2, 1, PNG_FORMAT_RGBA), "a.png");
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.pixels.size(), 6);
  for (uint8_t value : image.pixels) EXPECT_LT(value, 2) << "an alpha of 3 and 7 of 255";
}

TEST(DecodeTest, DamageIsAnErrorThatNamesTheFile) {
  const std::string jpeg = JpegBytes(64, 64, 3);
  for (size_t size = 0; size + 2 < jpeg.size(); size += 7) {
    const auto image = DecodeJpeg(absl::string_view(jpeg).substr(0, size), "x.jpg");
    ASSERT_FALSE(image.ok()) << size;
    EXPECT_THAT(std::string(image.status().message()), HasSubstr("x.jpg: "));
  }
  const std::string png = PngBytes(8, 8, PNG_FORMAT_RGB);
  for (size_t size = 0; size + 12 < png.size(); size += 3) {
    EXPECT_FALSE(DecodePng(absl::string_view(png).substr(0, size), "x.png").ok()) << size;
  }
}

TEST(DecodeTest, GiantImageIsDeclinedBeforeItIsAllocated) {
  std::string jpeg = JpegBytes(16, 8, 3);
  const size_t frame = jpeg.find(std::string("\xff\xc0", 2));  // Start of frame: length, precision, height, width.
  ASSERT_NE(frame, std::string::npos);
  for (int i = 5; i < 9; ++i) jpeg[frame + i] = '\xff';
  EXPECT_THAT(std::string(DecodeJpeg(jpeg, "x.jpg").status().message()), HasSubstr("x.jpg: "));
}

constexpr char kGenesis[] = "harness/datasets/testdata/genesis.txt";  // 4,246 bytes.

TEST(TextTest, WindowsAreTokensAndTheirLabelsTheBytesBehindThem) {
  const std::string text = ReadPlain(kGenesis);
  const auto test = OpenText(kGenesis, {/*window=*/64, /*test_bytes=*/1000}, /*train=*/false);
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ((*test)->size(), 999 / 64);
  EXPECT_STREQ((*test)->unit(), "window");
  ir::OpRegistry ops;
  const auto graph = ir::Parse("graph @g {\n  %x: i64[1,64] = placeholder\n  output(%x)\n}", ops);
  ASSERT_TRUE(graph.ok()) << graph.status();
  runtime::ThreadPool pool(2);
  const auto inputs = (*test)->Inputs(**graph, {}, &pool);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  Tensor batch(DType::kI64, {2, 64});
  ASSERT_TRUE((*inputs)->Fill(3, 5, &batch).ok());
  const std::string part = text.substr(text.size() - 1000);
  for (int i = 0; i < 128; ++i) ASSERT_EQ(batch.At(i), part[3 * 64 + i]) << i;

  // What predicts window 0 right with nearly all of the probability needs nearly no bits.
  Tensor logits(DType::kF32, {1, 64, 256});
  std::fill_n(logits.data<float>(), 64 * 256, 0.0f);
  for (int i = 0; i < 64; ++i) logits.data<float>()[256 * i + part[i + 1]] = 100;
  const auto judge = (*test)->MakeJudge();
  ASSERT_TRUE(judge->Add(0, 1, logits, nullptr).ok());
  Results::Variant result;
  judge->Record(&result);
  EXPECT_LT(result.bits_per_byte(), 1e-6);

  // Windows to train on are those of what is before, each once, in another order.
  const auto train = OpenText(kGenesis, {64, 1000}, /*train=*/true);
  ASSERT_TRUE(train.ok()) << train.status();
  ASSERT_EQ((*train)->size(), (4246 - 1000 - 1) / 64);
  const auto windows = [&](const Dataset& data) {
    Tensor all(DType::kI64, {data.size(), 64});
    EXPECT_TRUE((*data.Inputs(**graph, {}, &pool))->Fill(0, data.size(), &all).ok());
    std::vector<std::string> found(data.size());
    for (int64_t i = 0; i < all.num_elements(); ++i) found[i / 64].push_back(static_cast<char>(all.At(i)));
    return found;
  };
  std::vector<std::string> wanted, found = windows(**train);
  for (int i = 0; i < 50; ++i) wanted.push_back(text.substr(64 * i, 64));
  EXPECT_NE(found, wanted);
  EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(wanted));
  EXPECT_NE((*(*train)->Inputs(**graph, {}, &pool))->Key(10), (*inputs)->Key(10));
}

TEST(TextTest, InputsAreOneBatchOfWindows) {
  const auto text = OpenText(kGenesis, {64, 1000}, false);
  ASSERT_TRUE(text.ok()) << text.status();
  runtime::ThreadPool pool(1);
  ir::OpRegistry ops;
  const auto error = [&](const std::string& inputs, const HarnessConfig::Preprocessing& preprocessing = {}) {
    const auto graph = ir::Parse("graph @g {\n" + inputs + "  output(%x)\n}", ops);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return std::string((*text)->Inputs(**graph, preprocessing, &pool).status().message());
  };
  EXPECT_THAT(error("  %x: i64[1,32] = placeholder\n"),
              HasSubstr("input %x is i64[1,32], want i64 [batch, 64], as dataset.text.window says"));
  EXPECT_THAT(error("  %x: f32[1,64] = placeholder\n"), HasSubstr("input %x is f32[1,64], want i64"));
  EXPECT_THAT(error("  %x: i64[1,64] = placeholder\n  %y: i64[1,64] = placeholder\n"), HasSubstr("has 2 inputs"));
  HarnessConfig::Preprocessing preprocessing;
  preprocessing.add_mean(1);
  EXPECT_THAT(error("  %x: i64[1,64] = placeholder\n", preprocessing), HasSubstr("preprocessing is for images"));
}

TEST(TextTest, MissingAndShortFiles) {
  const std::string path = Folder("text") + "/short.txt";
  const auto error = [&](int64_t window, int64_t test_bytes, bool train) {
    const absl::Status status = OpenText(path, {window, test_bytes}, train).status();
    EXPECT_EQ(harness::ExitCodeOf(status), harness::FileExists(path) ? harness::kInvalidInput : harness::kIo) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error(4, 10, false), AllOf(HasSubstr("there is no text " + path), HasSubstr("dataset.text.path")));
  WritePlain(path, "0123456789");
  EXPECT_THAT(error(4, 4, false), HasSubstr("short.txt: has 10 bytes, 4 of them to test on; want at least 5"));
  EXPECT_THAT(error(4, 6, true), HasSubstr("short.txt: has 10 bytes, 4 of them to train on; want at least 5"));
  EXPECT_THAT(error(4, 11, false), HasSubstr("short.txt: has 10 bytes, want at least dataset.text.test_bytes, 11"));
  EXPECT_THAT(error(4, 10, true), HasSubstr("0 of them to train on"));
  EXPECT_EQ((*OpenText(path, {4, 5}, false))->size(), 1);
  WritePlain(path, "");
  EXPECT_THAT(error(1, 1, false), HasSubstr("has 0 bytes"));
}

TEST(TextTest, ConfigNamesFileWindowAndSplit) {
  HarnessConfig::DatasetConfig config;
  auto* text = config.mutable_text();
  EXPECT_THAT(FaultOf(config), HasSubstr("dataset.text.path is empty"));
  text->set_path(kGenesis);
  EXPECT_THAT(FaultOf(config), HasSubstr("dataset.text.window is below 1"));
  text->set_window(16);
  EXPECT_THAT(FaultOf(config), HasSubstr("dataset.text.test_bytes is below 1"));
  text->set_test_bytes(100);
  EXPECT_EQ(AccuracyOf(config), "bits_per_byte");
  const auto opened = Open(config, HarnessConfig::TEST, harness::SearchPath());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->name, "text");
  EXPECT_EQ(opened->split, "test");
  EXPECT_EQ(opened->data->size(), 99 / 16);
}

}  // namespace
}  // namespace fuselage::datasets
