#include "harness/testing/testing.h"

#include <png.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/model_builder.h"
#include "gtest/gtest.h"
#include "harness/base/files.h"
#include "harness/measure/peaks.h"
#include "ir/base/check.h"
#include "ir/ops/register_all.h"
#include "ir/safetensors.h"
#include "ir/text.h"
#include "kernels/core/isa.h"

namespace fuselage::harness::testing {
namespace {

constexpr int kSide = 8;

Tensor Seeded(Shape shape, uint64_t seed, float scale, float offset = 0) {
  Tensor tensor = SeededTensor({DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.data<float>()[i] = tensor.data<float>()[i] * scale + offset;
  return tensor;
}

void AddBatchNorm(onnx::ModelBuilder& model, const std::string& name, const std::string& in, const std::string& out,
                  uint64_t seed) {
  model.Initializer(name + ".weight", Seeded({8}, seed, 0.2f, 1.0f))
      .Initializer(name + ".bias", Seeded({8}, seed + 1, 0.2f))
      .Initializer(name + ".mean", Seeded({8}, seed + 2, 0.2f))
      .Initializer(name + ".var", Seeded({8}, seed + 3, 0.2f, 1.0f))
      .Node("BatchNormalization", {in, name + ".weight", name + ".bias", name + ".mean", name + ".var"}, {out}, name);
}

void WriteGzip(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  FUSELAGE_CHECK(file != nullptr);
  FUSELAGE_CHECK(gzwrite(file, bytes.data(), bytes.size()) == static_cast<int>(bytes.size()));
  FUSELAGE_CHECK(gzclose(file) == Z_OK);
}

void WriteSplit(const std::string& prefix, int images, uint64_t seed) {
  const char count = static_cast<char>(images);
  const Tensor pixels = SeededTensor({DType::kU8, {images, kSide, kSide}, std::nullopt, Layout::kRowMajor}, seed);
  std::string data = {0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, kSide, 0, 0, 0, kSide};
  data.append(static_cast<const char*>(pixels.raw_data()), pixels.byte_size());
  WriteGzip(prefix + "-images-idx3-ubyte.gz", data);
  std::string labels = {0, 0, 8, 1, 0, 0, 0, count};
  for (int i = 0; i < images; ++i) labels.push_back(static_cast<char>(i % 10));
  WriteGzip(prefix + "-labels-idx1-ubyte.gz", labels);
}

// An empty folder.
std::string FreshFolder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

constexpr char kConfig[] = R"(
dataset { fashion_mnist { path: "$0" } }
preprocessing { mean: 0.5 std: 0.5 }
calibration { images: 16 }
evaluation { batch: 5 }
pipeline {
  steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.ConvBnOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.FusionOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.QuantizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.QuantLiftOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.LowerOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.Int8FusionOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.CleanupOptions] {} } }
}
numeric_check { samples: 2 }
variants { name: "fp32" after: "fusion" }
variants { name: "int8" }
slowest_layers: 3
)";

}  // namespace

std::string TinyModel(const std::string& height, int classes) {
  onnx::ModelBuilder model;
  model.Input("x", {"N", 3, height.empty() ? onnx::Dim(16) : onnx::Dim(height.c_str()), 16})
      .Initializer("w1", Seeded({8, 3, 3, 3}, 1, 0.4f))
      .Initializer("w2", Seeded({8, 8, 3, 3}, 2, 0.3f))
      .Initializer("fc.weight", Seeded({classes, 8}, 3, 2.0f))
      .Initializer("fc.bias", Seeded({classes}, 4, 0.1f));
  model.Node("Conv", {"x", "w1"}, {"c1"}, "conv1").Ints("pads", {1, 1, 1, 1});
  AddBatchNorm(model, "bn1", "c1", "b1", 10);
  model.Node("Relu", {"b1"}, {"r1"}, "relu1");
  model.Node("Conv", {"r1", "w2"}, {"c2"}, "conv2").Ints("pads", {1, 1, 1, 1});
  AddBatchNorm(model, "bn2", "c2", "b2", 20);
  model.Node("Add", {"b2", "r1"}, {"a"}, "add");
  model.Node("Relu", {"a"}, {"r2"}, "relu2");
  model.Node("MaxPool", {"r2"}, {"p"}, "pool").Ints("kernel_shape", {2, 2}).Ints("strides", {2, 2});
  model.Node("GlobalAveragePool", {"p"}, {"g"}, "gap");
  model.Node("Flatten", {"g"}, {"f"}, "flatten");
  model.Node("Gemm", {"f", "fc.weight", "fc.bias"}, {"logits"}, "fc").Int("transB", 1);
  model.Output("logits");
  return model.Bytes();
}

void WriteTinyDataset(const std::string& folder) {
  WriteSplit(folder + "/train", 40, 7);
  WriteSplit(folder + "/t10k", 24, 8);
}

void WritePng(const std::string& path, int width, int height, uint64_t seed) {
  const Tensor pixels = SeededTensor({DType::kU8, {height, width, 3}, std::nullopt, Layout::kRowMajor}, seed);
  png_image png;
  std::memset(&png, 0, sizeof png);
  png.version = PNG_IMAGE_VERSION;
  png.width = width;
  png.height = height;
  png.format = PNG_FORMAT_RGB;
  FUSELAGE_CHECK(png_image_write_to_file(&png, path.c_str(), 0, pixels.raw_data(), 0, nullptr));
}

Workplace MakeWorkplace(const std::string& name, const std::string& more) {
  UseFixedPeaks();
  Workplace place;
  place.folder = FreshFolder(name);
  place.config = place.folder + "/tiny.textproto";
  place.out = place.folder + "/out";
  WriteTinyDataset(place.folder);
  std::ofstream(place.folder + "/tiny.onnx", std::ios::binary) << TinyModel();
  std::string text = absl::StrCat("model { path: \"", place.folder, "/tiny.onnx\" }", kConfig, more, "\n");
  text.replace(text.find("$0"), 2, place.folder);
  std::ofstream(place.config) << text;
  return place;
}

std::string UseFixedPeaks() {
  const std::string cache = FreshFolder("cache");
  FUSELAGE_CHECK(setenv("XDG_CACHE_HOME", cache.c_str(), /*overwrite=*/1) == 0);
  Results::Peaks peaks;
  peaks.set_f32_flops_per_second(100e9);
  peaks.set_int8_ops_per_second(300e9);
  peaks.set_bytes_per_second(10e9);
  peaks.set_seconds_per_call(1e-6);
  peaks.set_cpu(kernels::CpuName());
  peaks.set_isa(std::string(kernels::IsaName(kernels::BestIsa())));
  FUSELAGE_CHECK(WritePeaks(PeaksFile(CacheFolder()), peaks).ok());
  return CacheFolder();
}

Workplace MakeIrWorkplace(const std::string& name, const std::string& ir, const std::string& rest) {
  UseFixedPeaks();
  Workplace place;
  place.folder = FreshFolder(name);
  place.config = place.folder + "/tiny.textproto";
  place.out = place.folder + "/out";
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  const auto graph = ir::Parse(ir, ops);
  FUSELAGE_CHECK(graph.ok());
  FUSELAGE_CHECK(ir::WriteGraph(place.folder + "/tiny", **graph).ok());
  std::ofstream(place.config) << "model { path: \"" << place.folder << "/tiny.ir\" }\n" << rest << "\n";
  return place;
}

}  // namespace fuselage::harness::testing
