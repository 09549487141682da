// Whole runs on a tiny network: what they write, and how they end.
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/cli.h"
#include "harness/environment.h"
#include "harness/measure/peaks.h"
#include "harness/npz/npz.h"
#include "harness/results.pb.h"
#include "harness/testing/testing.h"
#include "kernels/core/isa.h"
#include "runtime/cuda/backend.h"

namespace fuselage::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MakeWorkplace;
using ::testing::Not;
using testing::Workplace;

constexpr char kFast[] = "benchmark { batches: 1 repetitions: 3 min_time_ms: 1 }";

struct Outcome {
  int code;
  std::string out, err;
};

Outcome RunTiny(const Workplace& place, std::vector<std::string> args = {}) {
  args.insert(args.begin(), {"--config=" + place.config, "--out=" + place.out});
  std::ostringstream out, err;
  const int code = RunCommand(args, {out, err, false});
  return {code, out.str(), err.str()};
}

Results ReadResults(const Workplace& place) {
  Results results;
  const auto text = ReadFile(place.out + "/results.json");
  EXPECT_TRUE(text.ok()) << text.status();
  const auto parsed = google::protobuf::util::JsonStringToMessage(text.value_or(""), &results);
  EXPECT_TRUE(parsed.ok()) << parsed.ToString();
  return results;
}

void Overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), bytes.size());
}

TEST(Harness, AWholeRun) {
  const Workplace place =
      MakeWorkplace("whole", "benchmark { batches: [1, 4] threads: [1, 2] repetitions: 3 min_time_ms: 1 }");
  const Outcome outcome = RunTiny(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Passes\n"), HasSubstr("Variants\n"), HasSubstr("Latency in ms\n"),
                                 HasSubstr("Slowest layers of int8\n"), HasSubstr(place.out + "/results.json")));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("pass quantize"), HasSubstr("accuracy int8"), Not(HasSubstr("\r"))));

  const Results results = ReadResults(place);
  EXPECT_EQ(results.status(), "complete");
  EXPECT_EQ(results.config(), "tiny");
  EXPECT_THAT(results.config_text(), HasSubstr("numeric_check"));
  EXPECT_FALSE(results.environment().cpu().empty());
  EXPECT_GT(results.environment().cores(), 0);
  EXPECT_GT(results.environment().process_peak_rss_bytes(), 0);
  EXPECT_EQ(results.model().sha256().size(), 64);
  EXPECT_EQ(results.dataset().name(), "fashion_mnist");
  EXPECT_EQ(results.dataset().split(), "test");
  EXPECT_EQ(results.calibration().images(), 16);
  EXPECT_EQ(results.calibration().split(), "train");

  ASSERT_EQ(results.passes_size(), 8);
  for (const auto& pass : results.passes()) {
    EXPECT_EQ(pass.has_max_abs_error(), pass.changed()) << pass.name();
    EXPECT_GT(pass.nodes_before(), 0);
  }
  EXPECT_EQ(results.passes(1).name(), "conv_bn");
  EXPECT_EQ(results.passes(1).matches(), 2);
  EXPECT_GT(results.passes(3).snr_db(), 20);

  ASSERT_EQ(results.variants_size(), 2);
  const auto& fp32 = results.variants(0);
  const auto& int8 = results.variants(1);
  EXPECT_EQ(fp32.agreement_with_fp32(), 100);
  EXPECT_GE(int8.agreement_with_fp32(), 80);
  for (const auto& variant : results.variants()) {
    EXPECT_EQ(variant.images(), 24);
    EXPECT_GT(variant.weight_bytes(), 0);
    EXPECT_GE(variant.top5(), variant.top1());
    EXPECT_EQ(variant.logits_fingerprint().size(), 16);
    ASSERT_EQ(variant.measurements_size(), 4);
    for (const auto& measurement : variant.measurements()) {
      EXPECT_GE(measurement.repetitions(), 3);
      EXPECT_GT(measurement.latency_ms().min(), 0);
      EXPECT_LE(measurement.latency_ms().min(), measurement.latency_ms().median());
      EXPECT_LE(measurement.latency_ms().median(), measurement.latency_ms().p99());
      EXPECT_GT(measurement.peak_memory_bytes(), variant.weight_bytes());
    }
    EXPECT_EQ(variant.measurements(3).batch(), 4);
    EXPECT_EQ(variant.measurements(3).threads(), 2);
  }
  EXPECT_NE(fp32.logits_fingerprint(), int8.logits_fingerprint());

  std::map<std::string, int> with_snr;
  for (const auto& layer : int8.layers()) {
    if (!layer.has_snr_db()) continue;
    ++with_snr[layer.op()];
    EXPECT_GT(layer.snr_db(), 20) << layer.name();
  }
  EXPECT_EQ(with_snr["int8.conv2d"], 2);
  EXPECT_EQ(with_snr["int8.global_avg_pool_linear"], 1);

  for (const char* dump : {"00.input.ir", "02.conv_bn.ir", "08.cleanup.ir"}) {
    EXPECT_THAT(ReadFile(place.out + "/" + dump).value_or(""), HasSubstr("graph @")) << dump;
  }
  EXPECT_THAT(ReadFile(place.out + "/report.txt").value_or(""), HasSubstr("Variants\n"));
}

// A network whose input is no image: a fully connected layer, a relu and a tanh, which has no INT8 kernel.
constexpr char kVectors[] = R"(graph @vectors {
  param @fc.weight: f32[8,64] = seed(1)
  module @fc = linear(weight=@fc.weight)
  %x: f32[4,64] = placeholder
  %fc: f32[4,8] = call_module @fc(%x)
  %relu: f32[4,8] = call_method relu(%fc)
  %tanh: f32[4,8] = call_function tanh(%relu)
  output(%tanh)
})";
constexpr char kVectorsConfig[] = R"(title: "Vectors"
random_inputs { seed: 3 count: 12 }
calibration { images: 8 }
pipeline {
  steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.FusionOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.QuantizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.LowerOptions] {} } }
}
numeric_check { samples: 2 }
variants { name: "fp32" after: "fusion" }
variants { name: "int8" }
benchmark { batches: [1, 3] threads: [1, 2] repetitions: 3 min_time_ms: 1 }
)";

TEST(Harness, RandomInputsInPlaceOfADataset) {
  const Workplace place =
      testing::MakeIrWorkplace("vectors", kVectors, std::string(kVectorsConfig) + "print_graphs: true");
  const Outcome outcome = RunTiny(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\nVectors\ntiny on "), HasSubstr("no dataset: accuracy not measured\n"),
                                 HasSubstr("Graph as read: 5 nodes\n"),
                                 HasSubstr("Graph after fusion: 4 nodes; gone: relu\n"), HasSubstr("max difference"),
                                 HasSubstr("samples/s"), HasSubstr("Bytes moved"), Not(HasSubstr("top-1"))));
  const Results results = ReadResults(place);
  EXPECT_EQ(results.title(), "Vectors");
  EXPECT_EQ(results.calibration().split(), "random");
  EXPECT_EQ(results.calibration().images(), 8);
  EXPECT_EQ(results.dataset().name(), "");
  ASSERT_GE(results.graphs_size(), 3);
  EXPECT_EQ(results.graphs(0).after(), "input");
  EXPECT_GT(results.passes(2).snr_db(), 20) << "quantize";
  EXPECT_EQ(results.environment().peaks().f32_flops_per_second(), 100e9) << "from the cache";
  EXPECT_FALSE(results.environment().memory_counter().empty());

  const auto &fp32 = results.variants(0), &int8 = results.variants(1);
  EXPECT_FALSE(fp32.has_top1());
  EXPECT_EQ(fp32.max_abs_error(), 0);
  EXPECT_GT(int8.max_abs_error(), 0);
  EXPECT_GT(int8.snr_db(), 20);
  EXPECT_GT(int8.weight_bytes(), 0);
  ASSERT_EQ(fp32.measurements_size(), 4);
  EXPECT_EQ(fp32.measurements(2).batch(), 3);
  // linear: 64 values in, 8 out, and the weights as they are packed; tanh: 8 in, 8 out.
  const auto& alone = fp32.measurements(0);
  EXPECT_EQ(alone.counted_bytes(), 4 * (64 + 8 + 8 + 8) + fp32.weight_bytes());
  EXPECT_EQ(fp32.measurements(2).counted_bytes(), 3 * 4 * (64 + 8 + 8 + 8) + fp32.weight_bytes());
  // By the roofline both calls are bound by memory at 10 GB/s, and take a microsecond by themselves.
  EXPECT_NEAR(alone.predicted_ms(), 4 * (64 + 8 * 64 + 8 + 8 + 8) / 10e9 * 1e3 + 2e-3, 1e-9);
  ASSERT_EQ(fp32.layers_size(), 2);
  EXPECT_EQ(fp32.layers(0).operations(), 2 * 8 * 64);
  EXPECT_DOUBLE_EQ(fp32.layers(0).operations_per_byte(), 2 * 8 * 64 / (4.0 * (64 + 8 * 64 + 8)));
  EXPECT_EQ(fp32.measurements(0).predicted_speedup(), 1);
  EXPECT_GT(alone.runtime_overhead_percent(), 0);
  EXPECT_LT(alone.runtime_overhead_percent(), 100);
  EXPECT_FALSE(alone.has_cold_ms()) << "not asked for";
  EXPECT_FALSE(fp32.measurements(1).has_predicted_ms()) << "two threads: the peaks are of one";

  // The interpreter has no schedule whose bytes could be counted, and says the same of the outputs.
  const Outcome reference = RunTiny(place, {"--backend=reference"});
  ASSERT_EQ(reference.code, kOk) << reference.err;
  const Results interpreted = ReadResults(place);
  EXPECT_EQ(interpreted.variants(1).measurements(0).counted_bytes(), 0);
  EXPECT_FALSE(interpreted.variants(1).measurements(0).has_predicted_ms());
  EXPECT_NEAR(interpreted.variants(1).snr_db(), int8.snr_db(), 0.1);
  EXPECT_THAT(reference.out, Not(HasSubstr("Bytes moved")));
}

TEST(Harness, SeveralInputs) {
  const Workplace place =
      testing::MakeIrWorkplace("two_inputs", R"(graph @two {
  %a: f32[1,4] = placeholder
  %b: f32[1,4] = placeholder
  %sum: f32[1,4] = call_function add(%a, %b)
  %relu: f32[1,4] = call_function relu(%sum)
  output(%relu)
})",
                               R"(pipeline { steps { pass { [type.googleapis.com/fuselage.FusionOptions] {} } } }
numeric_check { samples: 2 }
variants { name: "unfused" after: "input" }
variants { name: "fused" }
benchmark { batches: [1, 2] threads: 1 repetitions: 3 min_time_ms: 1 })");
  const Outcome outcome = RunTiny(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_EQ(ReadResults(place).passes(0).max_abs_error(), 0);
  EXPECT_EQ(ReadResults(place).variants(1).max_abs_error(), 0);
  EXPECT_EQ(ReadResults(place).variants(1).measurements_size(), 2);

  std::string text = *ReadFile(place.config);
  text.replace(text.find("FusionOptions"), 13, "QuantizeOptions");
  Overwrite(place.config, text);
  const Outcome quantized = RunTiny(place);
  ASSERT_EQ(quantized.code, kOk) << quantized.err;
  EXPECT_GT(ReadResults(place).variants(1).snr_db(), 20) << "both inputs are calibrated";
}

TEST(Harness, ExplainRunsThePassesAlone) {
  const Workplace place = testing::MakeIrWorkplace("explain", kVectors, kVectorsConfig);
  std::ostringstream out, err;
  ASSERT_EQ(RunCommand({"explain", "--config=" + place.config, "--out=" + place.out}, {out, err, false}), kOk)
      << err.str();
  EXPECT_THAT(out.str(),
              AllOf(HasSubstr("fusion: 1 applied, 0 left alone\n"), HasSubstr("Where each op of int8 runs"),
                    HasSubstr("Crossings between INT8 and float"), HasSubstr("1 of 2 ops in INT8, 1 in FP32"),
                    HasSubstr(place.out + "/report.txt"), Not(HasSubstr("Latency"))));
  EXPECT_THAT(ReadFile(place.out + "/report.txt").value_or(""), HasSubstr("1 of 2 ops in INT8, 1 in FP32"));
  const Results results = ReadResults(place);
  EXPECT_EQ(results.status(), "complete");
  EXPECT_EQ(results.variants(1).measurements_size(), 0);
  ASSERT_EQ(results.passes(1).decisions_size(), 1);
  EXPECT_EQ(results.passes(1).decisions(0).kind(), "applied");
  EXPECT_EQ(results.passes(1).decisions(0).node(), "relu");
  EXPECT_EQ(results.passes(1).remarks_size(), 1);
  const auto& explanation = results.explanation();
  EXPECT_EQ(explanation.variant(), "int8");
  EXPECT_EQ(explanation.int8_ops(), 1);
  ASSERT_EQ(explanation.placements_size(), 3);
  EXPECT_EQ(explanation.placements(0).crossing(), "f32 -> u8");
  EXPECT_EQ(explanation.placements(0).crossing_bytes(), 64 * 4 + 64);
  EXPECT_EQ(explanation.placements(1).op(), "int8.linear");
  EXPECT_EQ(explanation.placements(1).runs_in(), "INT8");
  EXPECT_EQ(explanation.placements(2).runs_in(), "FP32");
}

TEST(Harness, PeaksAreMeasuredOnceAndAgainOnDemand) {
  const Workplace place = testing::MakeIrWorkplace("peaks", kVectors, kVectorsConfig);
  const std::string file = PeaksFile(CacheFolder());
  const auto peaks_of = [&](std::vector<std::string> args) {
    const Outcome outcome = RunTiny(place, std::move(args));
    EXPECT_EQ(outcome.code, kOk) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("Peaks of one thread: "));
    return ReadResults(place).environment().peaks();
  };
  const std::string fixed = *ReadFile(file);
  EXPECT_NE(peaks_of({"--no_cache"}).bytes_per_second(), 10e9);
  EXPECT_EQ(*ReadFile(file), fixed) << "--no_cache leaves the cache alone";
  const auto measured = peaks_of({"--remeasure_peaks"});
  EXPECT_NE(measured.bytes_per_second(), 10e9);
  EXPECT_FALSE(measured.measured().empty());
  EXPECT_EQ(peaks_of({}).DebugString(), measured.DebugString()) << "kept";
  EXPECT_THAT(ReadFile(file).value_or(""), HasSubstr("--remeasure_peaks"));

  // A cache that cannot be written is a warning.
  Overwrite(place.folder + "/file", "");
  setenv("XDG_CACHE_HOME", (place.folder + "/file").c_str(), 1);
  const Outcome outcome = RunTiny(place);
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("warning: the machine's peaks are not kept"));
}

// Without --config; `args` say the rest.
Outcome RunModel(const Workplace& place, std::vector<std::string> args) {
  args.insert(args.begin(), {"--model=" + place.folder + "/tiny.onnx", "--out=" + place.out, "--threads=1"});
  std::ostringstream out, err;
  const int code = RunCommand(args, {out, err, false});
  return {code, out.str(), err.str()};
}

TEST(Harness, AModelNeedsNoConfig) {
  const Workplace place = MakeWorkplace("no_config");
  const Outcome outcome = RunModel(place, {});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("tiny on "), HasSubstr("Random inputs; no dataset"), HasSubstr("int8")));
  const Results results = ReadResults(place);
  EXPECT_EQ(results.config(), "tiny");
  EXPECT_EQ(results.passes_size(), 8);
  ASSERT_EQ(results.variants_size(), 2);
  EXPECT_GT(results.variants(1).snr_db(), 20);
  EXPECT_EQ(results.variants(1).measurements_size(), 1);
}

// Images of 20x16 pixels.
void WriteImages(const std::string& folder, int count) {
  std::filesystem::create_directories(folder);
  for (int i = 0; i < count; ++i) testing::WritePng(absl::StrCat(folder, "/", i, ".png"), 20, 16, /*seed=*/i);
}

TEST(Harness, ImagesToCalibrateOnAndImagesWithLabels) {
  const Workplace place = MakeWorkplace("images", kFast);
  const std::string photos = place.folder + "/photos", test = place.folder + "/test";
  WriteImages(photos + "/deep", 6);
  WriteImages(test, 4);
  const Outcome calibrated = RunTiny(place, {"--calibrate=" + photos, "--limit=3"});
  ASSERT_EQ(calibrated.code, kOk) << calibrated.err;
  EXPECT_THAT(calibrated.out, AllOf(HasSubstr("Images of images (calibrate), calibrated on 6 (calibrate)"),
                                    HasSubstr("no labels: accuracy not measured\n"), Not(HasSubstr("top-1"))));
  Results results = ReadResults(place);
  EXPECT_TRUE(results.dataset().unlabelled());
  EXPECT_GT(results.variants(1).snr_db(), 20);
  EXPECT_FALSE(results.variants(1).has_top1());

  // Over all labels that all images could have, each image is predicted right once.
  const auto labels = [&](const std::string& label) {
    std::string text;
    for (int i = 0; i < 4; ++i) absl::StrAppend(&text, i, ".png ", label, "\n");
    Overwrite(test + "/val.txt", text);
  };
  double top1 = 0;
  for (int label = 0; label < 10; ++label) {
    labels(absl::StrCat(label));
    const Outcome outcome = RunTiny(place, {"--calibrate=" + photos, "--labels=" + test + "/val.txt"});
    ASSERT_EQ(outcome.code, kOk) << outcome.err;
    results = ReadResults(place);
    EXPECT_EQ(results.dataset().split(), "labels");
    EXPECT_EQ(results.calibration().split(), "calibrate");
    EXPECT_EQ(results.variants(0).images(), 4);
    EXPECT_THAT(outcome.err, Not(HasSubstr("not an independent one")));
    top1 += results.variants(0).top1();
  }
  EXPECT_EQ(top1, 100);

  // Without images to calibrate on, the labelled ones are: a warning.
  const Outcome both = RunTiny(place, {"--labels=" + test + "/val.txt"});
  ASSERT_EQ(both.code, kOk) << both.err;
  EXPECT_THAT(both.err, HasSubstr("use the same images: the accuracy is not an independent one"));
  EXPECT_EQ(RunTiny(place, {"--calibrate=" + place.folder + "/none"}).code, kIo);
}

constexpr char kTwoInputs[] = R"(graph @two {
  %a: f32[1,4] = placeholder
  %b: f32[1,4] = placeholder
  %sum: f32[1,4] = call_function add(%a, %b)
  %relu: f32[1,4] = call_function relu(%sum)
  output(%relu, %sum, %relu)
})";
constexpr char kTwoInputsConfig[] = R"(pipeline { steps { pass { [type.googleapis.com/fuselage.CleanupOptions] {} } } }
variants { name: "read" after: "input" }
variants { name: "clean" }
benchmark { threads: 1 repetitions: 3 min_time_ms: 1 })";

Tensor Floats(Shape shape, uint64_t seed) {
  return SeededTensor({DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

std::map<std::string, Tensor> ReadNpz(const std::string& path) {
  std::map<std::string, Tensor> tensors;
  auto arrays = npz::Read(path);
  EXPECT_TRUE(arrays.ok()) << arrays.status();
  for (npz::Array& array : *arrays) tensors[array.name] = std::move(array.tensor);
  return tensors;
}

TEST(Harness, InputsAndOutputsAsNumpysArrays) {
  const Workplace place = testing::MakeIrWorkplace("npz", kTwoInputs, kTwoInputsConfig);
  const std::string in = place.folder + "/x.npz", out = place.folder + "/y.npz";
  const Tensor a = Floats({5, 4}, 1), b = Floats({5, 4}, 2);
  ASSERT_TRUE(npz::Write(in, {{"b", b}, {"a", a}}).ok());
  const Outcome outcome = RunTiny(place, {"--inputs=" + in, "--save_outputs=" + out});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Inputs of " + in), HasSubstr("outputs: " + out + "\n")));
  EXPECT_EQ(ReadResults(place).inputs(), in);
  EXPECT_EQ(ReadResults(place).calibration().images(), 5);
  std::map<std::string, Tensor> found = ReadNpz(out);
  EXPECT_EQ(found.size(), 6);
  for (const char* variant : {"read", "clean"}) {
    const Tensor& sum = found[absl::StrCat(variant, "/sum")];
    const Tensor& relu = found[absl::StrCat(variant, "/relu")];
    ASSERT_EQ(sum.shape(), (Shape{5, 4}));
    ASSERT_EQ(relu.shape(), (Shape{5, 4}));
    EXPECT_TRUE(relu.SameBytes(found[absl::StrCat(variant, "/relu_1")]));
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(sum.At(i), a.data<float>()[i] + b.data<float>()[i]);
      EXPECT_EQ(relu.At(i), std::max(0.0, sum.At(i)));
    }
  }

  // Random inputs are given back, and give the same outputs again.
  ASSERT_EQ(RunTiny(place, {"--save_outputs=" + out, "--limit=3"}).code, kOk);
  found = ReadNpz(out);
  ASSERT_EQ(found.size(), 8);
  EXPECT_EQ(found["inputs/a"].shape(), (Shape{3, 4}));
  ASSERT_TRUE(npz::Write(in, {{"a", found["inputs/a"]}, {"b", found["inputs/b"]}}).ok());
  ASSERT_EQ(RunTiny(place, {"--inputs=" + in, "--save_outputs=" + out}).code, kOk);
  EXPECT_TRUE(ReadNpz(out)["clean/relu"].SameBytes(found["clean/relu"]));
}

TEST(Harness, InputsThatDoNotFitTheModel) {
  const Workplace place = testing::MakeIrWorkplace("npz_errors", kTwoInputs, kTwoInputsConfig);
  const std::string in = place.folder + "/x.npz";
  const auto error = [&](const std::vector<npz::Array>& arrays) {
    EXPECT_TRUE(npz::Write(in, arrays).ok());
    const Outcome outcome = RunTiny(place, {"--inputs=" + in});
    EXPECT_EQ(outcome.code, kInvalidInput) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("x.npz: "));
    return outcome.err;
  };
  const Tensor a = Floats({5, 4}, 1);
  EXPECT_THAT(error({{"a", a}, {"c", a}}), HasSubstr("found the array \"c\", wanted the model's inputs: \"a\", \"b\""));
  EXPECT_THAT(error({{"a", a}}), HasSubstr("found no array \"b\""));
  EXPECT_THAT(error({{"a", a}, {"b", Floats({5, 3}, 1)}}),
              HasSubstr("array \"b\": found f32[5,3], wanted f32[n,4], n samples"));
  EXPECT_THAT(error({{"a", Cast(a, DType::kF64)}, {"b", a}}),
              HasSubstr("array \"a\": found f64[5,4], wanted f32[n,4]"));
  EXPECT_THAT(error({{"a", Floats({}, 1)}, {"b", a}}), HasSubstr("array \"a\": found f32[], wanted f32[n,4]"));
  EXPECT_THAT(error({{"a", a}, {"b", Floats({6, 4}, 1)}}), HasSubstr("and 5 as in another input"));
  EXPECT_THAT(error({{"a", Floats({0, 4}, 1)}, {"b", Floats({0, 4}, 1)}}), HasSubstr("found f32[0,4]"));
  Overwrite(in, "no archive");
  EXPECT_EQ(RunTiny(place, {"--inputs=" + in}).code, kInvalidInput);
  EXPECT_EQ(RunTiny(place, {"--inputs=" + place.folder + "/none.npz"}).code, kIo);
  EXPECT_EQ(RunTiny(place, {"--save_outputs=" + place.folder + "/none/y.npz"}).code, kIo);
}

// The network that is written is the one that was measured: read again and lowered, it gives the same bits.
TEST(Harness, TheQuantizedNetworkAsOnnx) {
  const Workplace place = MakeWorkplace("save_onnx", kFast);
  const std::string onnx = place.folder + "/int8.onnx", first = place.folder + "/1.npz",
                    second = place.folder + "/2.npz";
  const Outcome outcome = RunTiny(place, {"--save_onnx=" + onnx, "--save_outputs=" + first});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("quantized network: " + onnx + "\n"));
  const std::string fingerprint = ReadResults(place).variants(1).logits_fingerprint();

  const Outcome again = RunTiny(place, {"--model=" + onnx, "--save_outputs=" + second});
  ASSERT_EQ(again.code, kOk) << again.err;
  EXPECT_EQ(ReadResults(place).variants(1).logits_fingerprint(), fingerprint);
  EXPECT_EQ(ReadResults(place).passes(3).matches(), 0) << "quantized already";
  std::map<std::string, Tensor> wanted = ReadNpz(first), found = ReadNpz(second);
  ASSERT_EQ(wanted["int8/logits"].shape(), (Shape{24, 10}));
  EXPECT_TRUE(found["int8/logits"].SameBytes(wanted["int8/logits"]));

  std::ostringstream out, err;
  ASSERT_EQ(RunCommand({"explain", "--config=" + place.config, "--out=" + place.out, "--save_onnx=" + onnx + "2"},
                       {out, err, false}),
            kOk)
      << err.str();
  EXPECT_EQ(*ReadFile(onnx + "2"), *ReadFile(onnx));
}

TEST(Harness, ASequenceRunsAllAndEndsWithTheWorst) {
  const Workplace place = testing::MakeIrWorkplace("sequence", kVectors, "print_graphs: true");
  const std::string tiny = *ReadFile(place.config);
  Overwrite(place.folder + "/broken.textproto", "model { path: \"none.ir\" } print_graphs: true");
  Overwrite(place.folder + "/gated.textproto",
            tiny.substr(0, tiny.find('\n') + 1) + std::string(kVectorsConfig) + "gates { max_abs_error: 0 }");
  const std::string all = place.folder + "/all.textproto";
  Overwrite(all, "sequence: [\"gated.textproto\", \"broken.textproto\", \"tiny.textproto\"]");
  std::ostringstream out, err;
  EXPECT_EQ(RunCommand({"--config=" + all, "--out=" + place.out}, {out, err, false}), kIo);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("[1/3] gated\n===========\n"), HasSubstr("[2/3] broken\n"),
                               HasSubstr("[3/3] tiny\n"), HasSubstr(place.out + "/tiny/results.json")));
  EXPECT_THAT(err.str(), AllOf(HasSubstr("max_abs_error of pass quantize"), HasSubstr("none.ir")));
  EXPECT_TRUE(FileExists(place.out + "/gated/results.json"));
  EXPECT_TRUE(FileExists(place.out + "/tiny/report.txt"));

  Overwrite(all, "sequence: [\"tiny.textproto\", \"gated.textproto\"]");
  EXPECT_EQ(RunCommand({"--config=" + all, "--out=" + place.out}, {out, err, false}), kGateFailed);
  EXPECT_EQ(RunCommand({"--config=" + all, "--out=" + place.out, "--save_onnx=x"}, {out, err, false}), kUsage);
  EXPECT_THAT(err.str(), HasSubstr("want one network, not a sequence"));
  Overwrite(all, "sequence: \"none.textproto\"");
  EXPECT_EQ(RunCommand({"--config=" + all, "--out=" + place.out}, {out, err, false}), kUsage);
}

TEST(Harness, Int8BitsDoNotDependOnIsaThreadsOrBatch) {
  const Workplace place = MakeWorkplace("bits", kFast);
  std::vector<std::vector<std::string>> runs = {
      {}, {}, {"--isa=scalar", "--threads=1"}, {"--isa=scalar", "--threads=2"}, {"--threads=2"}, {"--batch=3"}};
  if (kernels::CpuSupports(kernels::Isa::kAvx2)) runs.push_back({"--isa=avx2", "--threads=1"});
  std::string fingerprint, graph;
  for (const auto& args : runs) {
    const Outcome outcome = RunTiny(place, args);
    ASSERT_EQ(outcome.code, kOk) << outcome.err;
    const std::string found = ReadResults(place).variants(1).logits_fingerprint();
    const std::string lowered = *ReadFile(place.out + "/08.cleanup.ir");
    if (fingerprint.empty()) fingerprint = found, graph = lowered;
    EXPECT_EQ(found, fingerprint) << ::testing::PrintToString(args);
    EXPECT_EQ(lowered, graph) << ::testing::PrintToString(args);
  }
}

TEST(Harness, TheReferenceBackendAgreesToTheBit) {
  const Workplace place = MakeWorkplace("reference", kFast);
  ASSERT_EQ(RunTiny(place, {"--limit=4"}).code, kOk);
  const std::string cpu = ReadResults(place).variants(1).logits_fingerprint();
  const Outcome outcome = RunTiny(place, {"--backend=reference", "--limit=4"});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  const Results results = ReadResults(place);
  EXPECT_EQ(results.variants(1).backend(), "reference");
  EXPECT_EQ(results.variants(1).logits_fingerprint(), cpu);
}

TEST(Harness, AMissedGateIsExitCodeOneAndACompleteReport) {
  const Workplace place = MakeWorkplace("gate", std::string(kFast) + " gates { min_top1: 101 }");
  const Outcome outcome = RunTiny(place);
  EXPECT_EQ(outcome.code, kGateFailed);
  EXPECT_THAT(outcome.err, HasSubstr("min_top1 of int8"));
  EXPECT_THAT(outcome.out, HasSubstr("FAILED"));
  EXPECT_EQ(ReadResults(place).status(), "complete");
  EXPECT_FALSE(ReadResults(place).gates(0).passed());
}

class HarnessErrors : public ::testing::Test {
 protected:
  void Expect(int code, const std::string& message, std::vector<std::string> args = {}) {
    const Outcome outcome = RunTiny(place_, std::move(args));
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("error: "));
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  std::string model() const { return place_.folder + "/tiny.onnx"; }
  const Workplace place_ = MakeWorkplace(::testing::UnitTest::GetInstance()->current_test_info()->name(), kFast);
};

TEST_F(HarnessErrors, MisspeltFlag) { Expect(kUsage, "did you mean --limit?", {"--limt=3"}); }

TEST_F(HarnessErrors, NoModel) {
  Overwrite(place_.config, "print_graphs: true");
  Expect(kUsage, "tiny.textproto: model.path is empty, want an .onnx or .ir file, here or by --model");
  EXPECT_EQ(RunTiny(place_, {"--model=" + model()}).code, kOk);
}

TEST_F(HarnessErrors, MisspeltConfigField) {
  Overwrite(place_.config, "modle { path: \"x\" }");
  Expect(kUsage, "tiny.textproto:1:7: ");
}

TEST_F(HarnessErrors, UnknownStep) {
  const std::string text = *ReadFile(place_.config);
  Overwrite(place_.config, text + "variants { name: \"x\" after: \"fussion\" }");
  Expect(kUsage, "did you mean \"fusion\"?");
}

TEST_F(HarnessErrors, NoCuda) {
  if (runtime::cuda::OpenBackend().ok()) GTEST_SKIP() << "this build has CUDA, and this machine a GPU";
  Expect(kUsage, "cannot run on cuda: ", {"--backend=cuda"});
  EXPECT_FALSE(FileExists(place_.out + "/results.json"));
}

TEST_F(HarnessErrors, EmptyCalibrationSet) {
  std::string text = *ReadFile(place_.config);
  text.replace(text.find("images: 16"), 10, "images: 0");
  Overwrite(place_.config, text);
  Expect(kUsage, "the calibration set is empty");
}

TEST_F(HarnessErrors, MissingDatasetNamesThePackage) {
  std::filesystem::remove(place_.folder + "/train-images-idx3-ubyte.gz");
  Expect(kIo, "dataset-fashion-mnist");
}

TEST_F(HarnessErrors, MissingModel) { Expect(kIo, "none.onnx", {"--model=" + place_.folder + "/none.onnx"}); }

TEST_F(HarnessErrors, IrModels) {
  const std::string ir = place_.folder + "/m.ir";
  Overwrite(ir, "graph @g {\n  %x: f32[1,3] = placeholder\n  output(%y)\n}");
  Overwrite(place_.folder + "/m.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
  Expect(kInvalidInput, "m.ir:3:", {"--model=" + ir});
  Expect(kUsage, "shapes are for .onnx files", {"--model=" + ir, "--shape=x:1,3"});
  Overwrite(ir, "graph @g {\n  %x: f32[1,3] = placeholder\n  output(%x)\n}");
  Expect(kInvalidInput, "input %x is f32[1,3], want f32 [batch, channels, height, width]", {"--model=" + ir});
  Overwrite(place_.config, "model { path: \"" + ir + "\" } print_graphs: true");
  Overwrite(ir, "graph @g {\n  %x: f32[1,3] = placeholder\n  %y: f32[2,3] = placeholder\n  output(%x)\n}");
  Expect(kInvalidInput, "want one batch size in dimension 0");
}

TEST_F(HarnessErrors, TruncatedModelLeavesAnIncompleteReport) {
  const std::string bytes = *ReadFile(model());
  Overwrite(model(), bytes.substr(0, bytes.size() / 2));
  Expect(kInvalidInput, "tiny.onnx");
  EXPECT_EQ(ReadResults(place_).status(), "INCOMPLETE");
  EXPECT_THAT(ReadResults(place_).error(), HasSubstr("tiny.onnx"));
}

TEST_F(HarnessErrors, UnknownOperator) {
  std::string bytes = *ReadFile(model());
  bytes.replace(bytes.find("GlobalAveragePool"), 17, "GlobalAveragePoof");
  Overwrite(model(), bytes);
  Expect(kUnsupported, "GlobalAveragePoof");
}

TEST_F(HarnessErrors, AnOpenDimensionNeedsAShapeFlag) {
  Overwrite(model(), testing::TinyModel("height"));
  Expect(kUsage, "    x:1,3,<height>,16\n");
  const Outcome outcome = RunTiny(place_, {"--shape=x:1,3,16,16"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
}

TEST_F(HarnessErrors, MemoryLimit) { Expect(kResourceLimit, "bytes", {"--max_memory=1K"}); }

TEST_F(HarnessErrors, UnwritableOut) { Expect(kIo, "/tiny.onnx/out", {"--out=" + model() + "/out"}); }

TEST_F(HarnessErrors, AFailedWriteStillPrintsTheTable) {
  ASSERT_EQ(RunTiny(place_).code, kOk);
  // A folder in the place of a dump cannot be replaced by a file: the write fails, as on a full disk.
  std::filesystem::remove(place_.out + "/03.fusion.ir");
  std::filesystem::create_directories(place_.out + "/03.fusion.ir/x");
  const Outcome outcome = RunTiny(place_);
  EXPECT_EQ(outcome.code, kIo) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("03.fusion.ir"));
  EXPECT_THAT(outcome.out, HasSubstr("Variants\n"));
}

TEST(Environment, CommitOfACheckout) {
  const std::string commit(40, 'a'), other(40, 'b');
  const std::string folder = MakeWorkplace("git").folder;
  std::filesystem::create_directories(folder + "/.git/refs/heads");
  EXPECT_EQ(GitCommit(folder), "unknown");
  Overwrite(folder + "/.git/HEAD", commit + "\n");
  EXPECT_EQ(GitCommit(folder), commit) << "detached";
  Overwrite(folder + "/.git/HEAD", "ref: refs/heads/main\n");
  Overwrite(folder + "/.git/packed-refs", "# pack-refs\n" + other + " refs/heads/main\n");
  EXPECT_EQ(GitCommit(folder), other) << "packed";
  Overwrite(folder + "/.git/refs/heads/main", commit + "\n");
  EXPECT_EQ(GitCommit(folder), commit) << "a loose ref is newer";

  const std::string worktree = folder + "/worktree";
  std::filesystem::create_directories(worktree);
  std::filesystem::create_directories(folder + "/.git/worktrees/w");
  Overwrite(worktree + "/.git", "gitdir: " + folder + "/.git/worktrees/w\n");
  Overwrite(folder + "/.git/worktrees/w/HEAD", "ref: refs/heads/main\n");
  Overwrite(folder + "/.git/worktrees/w/commondir", "../..\n");
  EXPECT_EQ(GitCommit(worktree), commit);
  EXPECT_EQ(GitCommit(""), "unknown");
}

}  // namespace
}  // namespace fuselage::harness
