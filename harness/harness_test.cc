// Whole runs on a tiny network: what they write, and how they end.
#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/measure/peaks.h"
#include "harness/results.pb.h"
#include "harness/testing/runs.h"
#include "harness/testing/testing.h"
#include "kernels/core/isa.h"

namespace fuselage::harness {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::MakeWorkplace;
using ::testing::Not;
using testing::Outcome;
using testing::Overwrite;
using testing::ReadResults;
using testing::RunTiny;
using testing::RunWithArgs;
using ::testing::StartsWith;
using testing::Workplace;

constexpr char kFast[] = "benchmark { batches: 1 repetitions: 3 min_time_ms: 1 }";

TEST(Harness, AWholeRun) {
  const Workplace place =
      MakeWorkplace("whole", "benchmark { batches: [1, 4] threads: [1, 2] repetitions: 3 min_time_ms: 1 }");
  const Outcome outcome = RunTiny(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Passes\n"), HasSubstr("Variants\n"), HasSubstr("Latency in ms\n"),
                                 HasSubstr("Slowest layers of int8\n"), HasSubstr(place.out + "/results.json")));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("pass quantize"), HasSubstr("accuracy int8"), Not(HasSubstr("\r"))));

  const Results results = ReadResults(place.out);
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
      EXPECT_EQ(measurement.samples_ms_size(), std::min(measurement.repetitions(), 500));
    }
    EXPECT_EQ(variant.measurements(3).batch(), 4);
    EXPECT_EQ(variant.measurements(3).threads(), 2);
  }
  for (const auto& variant : results.variants()) {
    ASSERT_EQ(variant.schedules_size(), 2);
    for (int threads : {1, 2}) {
      const auto& schedule = variant.schedules(threads - 1);
      EXPECT_EQ(schedule.batch(), 1);
      EXPECT_EQ(schedule.threads(), threads);
      ASSERT_EQ(schedule.steps_size(), variant.layers_size());
      EXPECT_GE(schedule.span_step_size(), schedule.steps_size());
      EXPECT_EQ(schedule.span_thread_size(), schedule.span_step_size());
      EXPECT_EQ(schedule.span_begin_us_size(), schedule.span_step_size());
      EXPECT_EQ(schedule.span_end_us_size(), schedule.span_step_size());
      EXPECT_GT(schedule.arena_bytes(), 0);
      EXPECT_GT(schedule.blocks_size(), 0);
      EXPECT_FALSE(schedule.steps(schedule.steps_size() - 1).reads().empty());
    }
  }
  EXPECT_THAT(ReadFile(place.out + "/trace.json").value_or(""), HasSubstr("\"int8, batch 1, 2 threads\""));
  EXPECT_NE(fp32.logits_fingerprint(), int8.logits_fingerprint());
  EXPECT_EQ(fp32.after(), "fusion");
  EXPECT_EQ(int8.after(), "");
  EXPECT_EQ(results.history().steps(0).after(), "input");
  EXPECT_EQ(results.history().steps(0).nodes_size(), results.passes(0).nodes_before());
  EXPECT_TRUE(FileExists(place.out + "/report.html"));

  std::map<std::string, int> with_snr;
  for (const auto& layer : int8.layers()) {
    if (!layer.has_snr_db()) continue;
    ++with_snr[layer.op()];
    EXPECT_GT(layer.snr_db(), 20) << layer.name();
    ASSERT_TRUE(layer.has_quantization());
    const auto& quantization = layer.quantization();
    EXPECT_EQ(quantization.accumulated().snr_db(), layer.snr_db());
    ASSERT_TRUE(quantization.has_local());
    // The first layer alone does what it does in the network.
    const bool is_first = with_snr.size() == 1 && with_snr["int8.conv2d"] == 1;
    EXPECT_EQ(quantization.local().snr_db() == layer.snr_db(), is_first) << layer.name();
    EXPECT_GT(quantization.local().snr_db(), 20);
    EXPECT_GT(quantization.local().cosine(), 0.99);
    EXPECT_LE(quantization.local().cosine(), 1 + 1e-12);
    const bool is_last = layer.op() == "int8.global_avg_pool_linear";
    EXPECT_EQ(quantization.has_range_low(), !is_last) << "logits are floats";
    EXPECT_LT(quantization.clipped_percent(), 1);
    EXPECT_LT(quantization.value_min(), quantization.value_max());
    const auto& histogram = quantization.histogram();
    const int64_t values = std::accumulate(histogram.begin(), histogram.end(), int64_t{0});
    EXPECT_GT(values, 0);
    EXPECT_EQ(values % 4, 0) << "samples";
    EXPECT_EQ(quantization.weight_ranges_size() > 1, is_last || layer.op() == "int8.conv2d") << layer.op();
  }
  EXPECT_EQ(with_snr["int8.conv2d"], 1) << "a max pool reads the other";
  EXPECT_EQ(with_snr["int8.max_pool2d"], 1);
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
  const Results results = ReadResults(place.out);
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
  const Results interpreted = ReadResults(place.out);
  EXPECT_EQ(interpreted.variants(1).measurements(0).counted_bytes(), 0);
  EXPECT_FALSE(interpreted.variants(1).measurements(0).has_predicted_ms());
  EXPECT_NEAR(interpreted.variants(1).snr_db(), int8.snr_db(), 0.1);
  EXPECT_THAT(reference.out, Not(HasSubstr("Bytes moved")));
}

TEST(Harness, AVariantWithPassesOfItsOwn) {
  const std::string mxfp4 = R"(variants {
  name: "mxfp4"
  after: "fusion"
  pipeline {
    steps {
      pass { [type.googleapis.com/fuselage.QuantizeOptions] { ops: "linear" per_token: "*" weights: MXFP4 } }
      name: "four_bits"
    }
    steps { pass { [type.googleapis.com/fuselage.LowerOptions] {} } }
  }
  gates { min_snr_db: 15 }
}
gates { min_snr_db: 30 }
)";
  const Workplace place = testing::MakeIrWorkplace("own_passes", kVectors, kVectorsConfig + mxfp4);
  const Outcome outcome = RunTiny(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("mxfp4/four_bits "), HasSubstr("mxfp4/lower ")));
  const Results results = ReadResults(place.out);
  ASSERT_EQ(results.passes_size(), 4 + 2);
  EXPECT_EQ(results.passes(4).name(), "mxfp4/four_bits");
  EXPECT_EQ(results.passes(4).nodes_before(), results.passes(2).nodes_before()) << "both go on from fusion";
  EXPECT_TRUE(results.passes(4).has_snr_db()) << "checked as the others are";
  const auto ops = [](const Results::Variant& variant) {
    std::string names;
    for (const auto& layer : variant.layers()) names += layer.op() + " ";
    return names;
  };
  EXPECT_THAT(ops(results.variants(0)), Not(HasSubstr("int8.")));
  EXPECT_THAT(ops(results.variants(1)), HasSubstr("int8.linear "));
  EXPECT_THAT(ops(results.variants(2)), HasSubstr("int8.linear_groups "));
  EXPECT_THAT(ReadFile(place.out + "/mxfp4.ir").value_or(""), HasSubstr("int8.linear_groups"));
  EXPECT_THAT(ReadFile(place.out + "/04.lower.ir").value_or(""), Not(HasSubstr("int8.linear_groups")));
  ASSERT_EQ(results.gates_size(), 2);
  EXPECT_EQ(results.gates(0).wanted(), 30);
  EXPECT_EQ(results.gates(1).wanted(), 15);
  EXPECT_LT(results.gates(1).found(), 30) << "what the run's gate would not let pass";

  // The last variant is explained, by the passes that made it: tanh has no kernel for the codes of `quantize` alone.
  const Outcome explained = RunTiny(place, {"--explain"});
  ASSERT_EQ(explained.code, kOk) << explained.err;
  const Results::Explanation explanation = ReadResults(place.out).explanation();
  EXPECT_EQ(explanation.variant(), "mxfp4");
  bool has_groups = false;
  for (const auto& row : explanation.placements()) {
    has_groups = has_groups || row.op() == "int8.linear_groups";
    EXPECT_THAT(row.why(), Not(AnyOf(StartsWith("quantize: "), HasSubstr("; quantize: ")))) << row.node();
  }
  EXPECT_TRUE(has_groups);

  // What decides works on the pipeline's last graph.
  std::string text = *ReadFile(place.config);
  Overwrite(place.config, text + "sensitivity {}");
  EXPECT_EQ(RunTiny(place).code, kOk);
  text.erase(text.find("variants { name: \"int8\" }"), 26);
  Overwrite(place.config, text + "sensitivity {}");
  const Outcome none = RunTiny(place);
  EXPECT_EQ(none.code, kUsage);
  EXPECT_THAT(none.err, HasSubstr("wants a variant of the pipeline's last graph"));
}

// Three pools whose results are larger than any core's own cache at batch 32, and smaller for one sample.
constexpr char kPools[] = R"(graph @pools {
  %x: f32[1,16,64,64] = placeholder
  %a: f32[1,16,64,64] = call_function max_pool2d(%x, kernel_size=[3,3], stride=[1,1], padding=[1,1,1,1])
  %b: f32[1,16,64,64] = call_function max_pool2d(%a, kernel_size=[3,3], stride=[1,1], padding=[1,1,1,1])
  %c: f32[1,16,64,64] = call_function max_pool2d(%b, kernel_size=[3,3], stride=[1,1], padding=[1,1,1,1])
  output(%c)
})";

TEST(Harness, AVariantWithoutBands) {
  const Workplace place = testing::MakeIrWorkplace("without_bands", kPools, R"(
random_inputs { seed: 3 count: 32 }
variants { name: "bands" }
variants { name: "whole" without_bands: true }
benchmark { batches: 32 threads: 1 repetitions: 3 min_time_ms: 1 }
)");
  const Outcome outcome = RunTiny(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  const Results results = ReadResults(place.out);
  const auto &bands = results.variants(0), &whole = results.variants(1);
  EXPECT_LT(bands.measurements(0).peak_memory_bytes(), whole.measurements(0).peak_memory_bytes());
  EXPECT_EQ(whole.max_abs_error(), 0);
}

// A language model over bytes that sees no context: a table, and a linear layer.
constexpr char kBytes[] = R"(graph @bytes {
  param @embed: f32[256,16] = seed(1)
  param @head.weight: f32[256,16] = seed(2)
  module @head = linear(weight=@head.weight)
  %tokens: i64[1,8] = placeholder
  %embed: f32[256,16] = get_attr @embed
  %gather: f32[1,8,16] = call_function index_select(%embed, %tokens)
  %head: f32[1,8,256] = call_module @head(%gather)
  output(%head)
})";

TEST(Harness, BitsPerByteOnAText) {
  const Workplace place = testing::MakeIrWorkplace("bytes", kBytes, R"(
dataset { text { path: "harness/datasets/testdata/genesis.txt" window: 8 test_bytes: 200 } }
calibration { images: 32 }
evaluation { limit: 20 batch: 3 }
pipeline {
  steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.QuantizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.LowerOptions] {} } }
}
variants { name: "fp32" after: "normalize" }
variants { name: "int8" }
benchmark { threads: 1 repetitions: 3 min_time_ms: 1 }
gates { max_bits_per_byte: 20 max_bits_per_byte_increase_percent: 5 })");
  const Outcome outcome = RunTiny(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Windows of text (test), calibrated on 32 (train)\n"),
                                 HasSubstr("bits per byte"), Not(HasSubstr("top-1")), HasSubstr("windows/s")));
  const Results results = ReadResults(place.out);
  EXPECT_EQ(results.dataset().unit(), "window");
  EXPECT_EQ(results.dataset().images(), 199 / 8);
  EXPECT_FALSE(results.dataset().unlabelled());
  const auto &fp32 = results.variants(0), &int8 = results.variants(1);
  EXPECT_EQ(fp32.images(), 20);
  EXPECT_GT(fp32.bits_per_byte(), 4);  // The table is seeded: it knows nothing of English.
  EXPECT_EQ(fp32.kl_divergence_bits(), 0);
  EXPECT_NEAR(int8.bits_per_byte(), fp32.bits_per_byte(), 0.1);
  EXPECT_GT(int8.kl_divergence_bits(), 0);
  EXPECT_LT(int8.kl_divergence_bits(), 0.01);
  EXPECT_FALSE(int8.has_top1());
  EXPECT_EQ(results.gates_size(), 3);

  // INT8 does not depend on the batch: 20 windows are six batches of three, and two windows. FP32's last bits may.
  std::string text = *ReadFile(place.config);
  text.replace(text.find("batch: 3"), 8, "batch: 7");
  Overwrite(place.config, text);
  ASSERT_EQ(RunTiny(place).code, kOk);
  const Results again = ReadResults(place.out);
  EXPECT_EQ(again.variants(1).bits_per_byte(), int8.bits_per_byte());
  EXPECT_NEAR(again.variants(1).kl_divergence_bits(), int8.kl_divergence_bits(), 1e-8);
  EXPECT_EQ(again.variants(1).logits_fingerprint(), int8.logits_fingerprint());
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
  EXPECT_EQ(ReadResults(place.out).passes(0).max_abs_error(), 0);
  EXPECT_EQ(ReadResults(place.out).variants(1).max_abs_error(), 0);
  EXPECT_EQ(ReadResults(place.out).variants(1).measurements_size(), 2);

  std::string text = *ReadFile(place.config);
  text.replace(text.find("FusionOptions"), 13, "QuantizeOptions");
  Overwrite(place.config, text);
  const Outcome quantized = RunTiny(place);
  ASSERT_EQ(quantized.code, kOk) << quantized.err;
  EXPECT_GT(ReadResults(place.out).variants(1).snr_db(), 20) << "both inputs are calibrated";
}

// As PyTorch exports a class token.
TEST(Harness, LayersOfANetworkThatRunsAtOneBatchSize) {
  const Workplace place = testing::MakeIrWorkplace("token", R"(graph @token {
  param @token: f32[1,1,4] = [0.5, -1, 2, 0]
  param @proj.weight: f32[8,4] = seed(1)
  module @proj = linear(weight=@proj.weight)
  %patches: f32[1,3,4] = placeholder
  %token: f32[1,1,4] = get_attr @token
  %all: f32[1,4,4] = call_function cat(%token, %patches, dim=1)
  %y: f32[1,4,8] = call_module @proj(%all)
  output(%y)
})",
                                                   R"(pipeline {
  steps { pass { [type.googleapis.com/fuselage.QuantizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.LowerOptions] {} } }
}
variants { name: "fp32" after: "input" }
variants { name: "int8" }
benchmark { batches: 1 threads: 1 repetitions: 3 min_time_ms: 1 })");
  const Outcome outcome = RunTiny(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("no SNR of the layers")));
  const Results results = ReadResults(place.out);
  const auto& layers = results.variants(1).layers();
  EXPECT_TRUE(std::any_of(layers.begin(), layers.end(), [](const auto& layer) { return layer.snr_db() > 20; }));
}

TEST(Harness, ChoicesByTimeAreOfTheInstructionSet) {
  std::string config = kVectorsConfig;
  const std::string pass = "QuantizeOptions] {";
  config.insert(config.find(pass) + pass.size(), " precision: FASTEST");
  const Workplace place = testing::MakeIrWorkplace("fastest", kVectors, config);
  const Outcome outcome =
      RunWithArgs({"explain", "--config=" + place.config, "--out=" + place.out, "--isa=scalar", "--tune_ms=1"});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  std::vector<std::string> timings;
  for (const auto& file : std::filesystem::directory_iterator(CacheFolder())) {
    const std::string name = file.path().filename();
    if (name.rfind("timings-", 0) == 0) timings.push_back(*ReadFile(file.path()));
  }
  ASSERT_EQ(timings.size(), 1);
  EXPECT_THAT(timings[0], HasSubstr(", scalar\""));
}

TEST(Harness, ExplainRunsThePassesAlone) {
  const Workplace place = testing::MakeIrWorkplace("explain", kVectors, kVectorsConfig);
  const Outcome outcome = RunWithArgs({"explain", "--config=" + place.config, "--out=" + place.out});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("fusion: 1 applied, 1 left alone\n"), HasSubstr("Where each op of int8 runs"),
                    HasSubstr("Crossings between INT8 and float"), HasSubstr("1 of 2 ops in INT8, 1 in FP32"),
                    HasSubstr(place.out + "/report.txt"), Not(HasSubstr("Latency"))));
  EXPECT_THAT(ReadFile(place.out + "/report.txt").value_or(""), HasSubstr("1 of 2 ops in INT8, 1 in FP32"));
  const Results results = ReadResults(place.out);
  EXPECT_EQ(results.status(), "complete");
  EXPECT_EQ(results.variants(1).measurements_size(), 0);
  ASSERT_EQ(results.passes(1).decisions_size(), 2);
  EXPECT_EQ(results.passes(1).decisions(0).kind(), "applied");
  EXPECT_EQ(results.passes(1).decisions(0).node(), "relu");
  EXPECT_EQ(results.passes(1).decisions(1).kind(), "missed");
  EXPECT_EQ(results.passes(1).decisions(1).node(), "tanh");
  EXPECT_EQ(results.passes(1).remarks_size(), 2);
  const auto& explanation = results.explanation();
  EXPECT_EQ(explanation.variant(), "int8");
  EXPECT_EQ(explanation.int8_ops(), 1);
  ASSERT_EQ(explanation.placements_size(), 3);
  EXPECT_EQ(explanation.placements(0).crossing(), "f32 -> u8");
  EXPECT_EQ(explanation.placements(0).crossing_bytes(), 64 * 4 + 64);
  EXPECT_EQ(explanation.placements(1).op(), "int8.linear");
  EXPECT_EQ(explanation.placements(1).runs_in(), "INT8");
  EXPECT_EQ(explanation.placements(2).runs_in(), "FP32");
  EXPECT_THAT(RunWithArgs({"explain", "--config=" + place.config, "--out=" + place.out}).err,
              HasSubstr("quantize: ranges from cache " + CacheFolder()));
  for (int i = 0; i < results.passes_size(); ++i) {
    EXPECT_EQ(ReadResults(place.out).passes(i).remarks_size(), results.passes(i).remarks_size());
  }
}

TEST(Harness, PeaksAreMeasuredOnceAndAgainOnDemand) {
  const Workplace place = testing::MakeIrWorkplace("peaks", kVectors, kVectorsConfig);
  const std::string file = PeaksFile(CacheFolder());
  const auto peaks_of = [&](std::vector<std::string> args) {
    const Outcome outcome = RunTiny(place, std::move(args));
    EXPECT_EQ(outcome.code, kOk) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("Peaks of one thread: "));
    return ReadResults(place.out).environment().peaks();
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
  return RunWithArgs(args);
}

TEST(Harness, AModelNeedsNoConfig) {
  const Workplace place = MakeWorkplace("no_config");
  const Outcome outcome = RunModel(place, {});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("tiny on "), HasSubstr("Random inputs; no dataset"), HasSubstr("int8")));
  const Results results = ReadResults(place.out);
  EXPECT_EQ(results.config(), "tiny");
  EXPECT_EQ(results.passes_size(), 10);
  ASSERT_EQ(results.variants_size(), 2);
  EXPECT_GT(results.variants(1).snr_db(), 20);
  EXPECT_EQ(results.variants(1).measurements_size(), 1);
}

TEST(Harness, ASequenceRunsAllAndEndsWithTheWorst) {
  const Workplace place = testing::MakeIrWorkplace("sequence", kVectors, "print_graphs: true");
  const std::string tiny = *ReadFile(place.config);
  Overwrite(place.folder + "/broken.textproto", "model { path: \"none.ir\" } print_graphs: true");
  Overwrite(place.folder + "/gated.textproto",
            tiny.substr(0, tiny.find('\n') + 1) + std::string(kVectorsConfig) + "gates { max_abs_error: 0 }");
  const std::string all = place.folder + "/all.textproto";
  Overwrite(all, "sequence: [\"gated.textproto\", \"broken.textproto\", \"tiny.textproto\"]");
  const auto run_all = [&](std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--config=" + all, "--out=" + place.out});
    return RunWithArgs(more);
  };
  const Outcome outcome = run_all();
  EXPECT_EQ(outcome.code, kIo);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("[1/3] gated\n===========\n"), HasSubstr("[2/3] broken\n"),
                                 HasSubstr("[3/3] tiny\n"), HasSubstr(place.out + "/tiny/results.json")));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("max_abs_error of pass quantize"), HasSubstr("none.ir")));
  EXPECT_TRUE(FileExists(place.out + "/gated/results.json"));
  EXPECT_TRUE(FileExists(place.out + "/tiny/report.txt"));

  Overwrite(all, "sequence: [\"tiny.textproto\", \"gated.textproto\"]");
  EXPECT_EQ(run_all().code, kGateFailed);
  const Outcome saved = run_all({"--save_onnx=x"});
  EXPECT_EQ(saved.code, kUsage);
  EXPECT_THAT(saved.err, HasSubstr("want one network, not a sequence"));
  Overwrite(all, "sequence: \"none.textproto\"");
  EXPECT_EQ(run_all().code, kUsage);
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
    const std::string found = ReadResults(place.out).variants(1).logits_fingerprint();
    const std::string lowered = *ReadFile(place.out + "/08.cleanup.ir");
    if (fingerprint.empty()) fingerprint = found, graph = lowered;
    EXPECT_EQ(found, fingerprint) << ::testing::PrintToString(args);
    EXPECT_EQ(lowered, graph) << ::testing::PrintToString(args);
  }
}

TEST(Harness, TheReferenceBackendAgreesToTheBit) {
  const Workplace place = MakeWorkplace("reference", kFast);
  ASSERT_EQ(RunTiny(place, {"--limit=4"}).code, kOk);
  const std::string cpu = ReadResults(place.out).variants(1).logits_fingerprint();
  const Outcome outcome = RunTiny(place, {"--backend=reference", "--limit=4"});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  const Results results = ReadResults(place.out);
  EXPECT_EQ(results.variants(1).backend(), "reference");
  EXPECT_EQ(results.variants(1).logits_fingerprint(), cpu);
}

TEST(Harness, AMissedGateIsExitCodeOneAndACompleteReport) {
  const Workplace place = MakeWorkplace("gate", std::string(kFast) + " gates { min_top1: 101 }");
  const Outcome outcome = RunTiny(place);
  EXPECT_EQ(outcome.code, kGateFailed);
  EXPECT_THAT(outcome.err, HasSubstr("min_top1 of int8"));
  EXPECT_THAT(outcome.out, HasSubstr("FAILED"));
  EXPECT_EQ(ReadResults(place.out).status(), "complete");
  EXPECT_FALSE(ReadResults(place.out).gates(0).passed());
}

}  // namespace
}  // namespace fuselage::harness
