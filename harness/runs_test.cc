// Whole runs: what variants are compared by, what is said where they cannot be, and which files a run reads and writes.
#include <sys/stat.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/results.pb.h"
#include "harness/testing/runs.h"
#include "harness/testing/testing.h"

namespace fuselage::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Workplace;

struct Outcome : testing::Outcome {
  Results results;
};

Outcome RunAndRead(const Workplace& place, std::vector<std::string> args = {}) {
  testing::Outcome outcome = testing::RunTiny(place, std::move(args));
  return {std::move(outcome), testing::ReadResults(place.out)};
}

// An addmm has no kernel of its own; the linear layer that normalize makes of it has one.
constexpr char kInterpreted[] = R"(graph @g {
  param @b: f32[2] = [1, 2]
  param @w: f32[4,2] = seed(1)
  %x: f32[1,4] = placeholder
  %b: f32[2] = get_attr @b
  %w: f32[4,2] = get_attr @w
  %y: f32[1,2] = call_function addmm(%b, %x, %w)
  output(%y)
})";
constexpr char kFused[] = R"(
pipeline { steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } } }
variants { name: "plain" after: "input" }
variants { name: "layers" }
benchmark { batches: 1 threads: 1 repetitions: 3 min_time_ms: 1 }
gates { min_speedup: 0 }
)";

TEST(Compared, NoSpeedupOverAnInterpreter) {
  const Outcome outcome = RunAndRead(testing::MakeIrWorkplace("interpreted", kInterpreted, kFused));
  EXPECT_EQ(outcome.code, kGateFailed) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("min_speedup of layers is failed, wanted 0 (reference evaluation runs 1 steps of plain)"),
                    HasSubstr("warning: variant plain: reference evaluation, which is slow, runs 1 of its steps for "
                              "want of kernels (addmm); there are no speedups over it"),
                    Not(HasSubstr("warning: variant layers"))));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("reference steps: 1"), HasSubstr("FAILED")));
  EXPECT_EQ(outcome.results.variants(0).reference_steps(), 1);
  EXPECT_EQ(outcome.results.variants(1).reference_steps(), 0);
  for (const auto& variant : outcome.results.variants()) EXPECT_FALSE(variant.measurements(0).has_speedup());
}

TEST(Compared, KernelsThroughoutHaveASpeedup) {
  std::string graph = kInterpreted;
  const std::string interpreted = "addmm(%b, %x, %w)";
  graph.replace(graph.find(interpreted), interpreted.size(), "matmul(%x, %w)");
  const Outcome outcome = RunAndRead(testing::MakeIrWorkplace("kernels", graph, kFused));
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_EQ(outcome.results.variants(0).reference_steps(), 0);
  EXPECT_TRUE(outcome.results.variants(1).measurements(0).has_speedup());
  EXPECT_THAT(outcome.out, Not(HasSubstr("reference steps")));
}

// Two samples at once do not fit this view: then the speedup at another batch size is no answer.
TEST(Compared, TheFirstBatchSizeOrNone) {
  const Outcome outcome = RunAndRead(testing::MakeIrWorkplace("first_batch", R"(graph @g {
  %x: f32[1,4] = placeholder
  %flat: f32[4] = call_function reshape(%x, shape=[4])
  %back: f32[1,4] = call_function reshape(%flat, shape=[1, 4])
  %relu: f32[1,4] = call_function relu(%back)
  output(%relu)
})",
                                                              R"(variants { name: "one" }
variants { name: "two" }
benchmark { batches: [2, 1] threads: 1 repetitions: 3 min_time_ms: 1 }
gates { min_speedup: 0 })"));
  EXPECT_EQ(outcome.code, kGateFailed) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("warning: batch 2 is not measured: "), HasSubstr("not measured at batch 2, threads 1")));
  ASSERT_EQ(outcome.results.variants(1).measurements_size(), 1);
  EXPECT_EQ(outcome.results.variants(1).measurements(0).batch(), 1);
  EXPECT_GT(outcome.results.variants(1).layers_size(), 0) << "of the batch that was measured";
}

TEST(Compared, AllVariantsSeeTheSameImages) {
  const Outcome outcome = RunAndRead(testing::MakeWorkplace(
      "images", "variants { name: \"slow\" backend: \"reference\" } benchmark { repetitions: 2 min_time_ms: 1 }"));
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  for (const auto& variant : outcome.results.variants()) EXPECT_EQ(variant.images(), 4) << variant.name();
  EXPECT_THAT(outcome.err, HasSubstr("every variant sees only 4 images"));
}

TEST(Compared, ClassesOfTheNetworkAndOfTheDataset) {
  const Workplace place = testing::MakeWorkplace("classes", "benchmark { repetitions: 2 min_time_ms: 1 }");
  const auto model_of = [&place](int classes) {
    testing::Overwrite(place.folder + "/tiny.onnx", testing::TinyModel("", classes));
  };
  EXPECT_THAT(RunAndRead(place).err, Not(HasSubstr("classes")));
  model_of(12);
  const Outcome more = RunAndRead(place);
  EXPECT_EQ(more.code, kOk) << more.err;
  EXPECT_THAT(more.err, HasSubstr("warning: variant int8: the network tells 12 classes apart and the dataset has 10"));
  model_of(9);
  const Outcome fewer = RunAndRead(place);
  EXPECT_EQ(fewer.code, kInvalidInput);
  EXPECT_THAT(fewer.err, HasSubstr("want f32 [5, classes] with at least the dataset's 10 classes"));
}

TEST(Throughput, RequestsAreServedByStreams) {
  const Outcome outcome = RunAndRead(testing::MakeIrWorkplace("throughput", R"(graph @g {
  %x: f32[1,4] = placeholder
  %relu: f32[1,4] = call_function relu(%x)
  output(%relu)
})",
                                                              R"(
pipeline { steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } } }
variants { name: "one" }
variants { name: "slow" backend: "reference" }
benchmark { batches: 1 threads: 1 repetitions: 1 min_time_ms: 1 }
throughput { streams: [1, 1, 0] batch: 3 load_percent: 20 seconds: 0.01 })"));
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("throughput of slow is not measured: it runs on reference"));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Throughput: all streams busy"), HasSubstr("Latency under load")));
  ASSERT_GE(outcome.results.variants(0).throughput_size(), 1);
  const auto& one = outcome.results.variants(0).throughput(0);
  EXPECT_EQ(one.streams(), 1);
  EXPECT_EQ(one.batch(), 3);
  EXPECT_EQ(one.scaling(), 1);
  EXPECT_GT(one.images_per_second(), 0);
  ASSERT_EQ(one.loads_size(), 1);
  EXPECT_EQ(one.loads(0).percent(), 20);
  EXPECT_GT(one.loads(0).requests(), 0);
  EXPECT_GT(one.loads(0).queue_ms().min(), 0);
  EXPECT_GE(one.loads(0).max_ms(), one.loads(0).latency_ms().p99());
  EXPECT_GE(one.loads(0).latency_ms().p99(), one.loads(0).latency_ms().median());
  EXPECT_EQ(outcome.results.variants(1).throughput_size(), 0);
}

TEST(Throughput, MoreStreamsThanCoresAreAnError) {
  const testing::Outcome outcome = testing::RunTiny(
      testing::MakeWorkplace("streams", "benchmark { repetitions: 1 min_time_ms: 1 } throughput { streams: 1024 }"));
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("throughput.streams is 1024, with 1 thread each, want no more threads than"));
}

TEST(Files, WhatIsNotOfARunStays) {
  const Workplace place = testing::MakeIrWorkplace("stays", kInterpreted, "print_graphs: true");
  std::filesystem::create_directories(place.out);
  testing::Overwrite(place.out + "/07.mine.ir", "mine");
  testing::Overwrite(place.out + "/notes.txt", "mine");
  ASSERT_EQ(RunAndRead(place).code, kOk);
  ASSERT_EQ(RunAndRead(place).code, kOk) << "a second run replaces what the first wrote";
  EXPECT_EQ(*ReadFile(place.out + "/07.mine.ir"), "mine");
  EXPECT_EQ(*ReadFile(place.out + "/notes.txt"), "mine");
  EXPECT_TRUE(FileExists(place.out + "/00.input.ir"));

  // Dumps of a run with more passes go with the next.
  std::string text = *ReadFile(place.config);
  testing::Overwrite(place.config,
                     text + " pipeline { steps { pass { [type.googleapis.com/fuselage.FusionOptions] {} } } }");
  ASSERT_EQ(RunAndRead(place).code, kOk);
  EXPECT_TRUE(FileExists(place.out + "/01.fusion.ir"));
  testing::Overwrite(place.config, text);
  ASSERT_EQ(RunAndRead(place).code, kOk);
  EXPECT_FALSE(FileExists(place.out + "/01.fusion.ir"));
}

TEST(Files, WhatIsInTheWayIsAnError) {
  const Workplace place = testing::MakeIrWorkplace("in_the_way", kInterpreted, "print_graphs: true");
  std::filesystem::create_directories(place.out);
  testing::Overwrite(place.out + "/results.json", "{}");
  Outcome outcome = RunAndRead(place);
  EXPECT_EQ(outcome.code, kIo);
  EXPECT_THAT(outcome.err, HasSubstr("/results.json is not of an earlier run"));
  EXPECT_EQ(*ReadFile(place.out + "/results.json"), "{}");
  EXPECT_FALSE(FileExists(place.out + "/00.input.ir")) << "before any work";

  std::filesystem::remove(place.out + "/results.json");
  testing::Overwrite(place.out + "/00.input.ir", "mine");
  outcome = RunAndRead(place);
  EXPECT_EQ(outcome.code, kIo);
  EXPECT_THAT(outcome.err, HasSubstr("/00.input.ir is not of an earlier run"));
  EXPECT_EQ(*ReadFile(place.out + "/00.input.ir"), "mine");
}

TEST(Files, ReportDrawsThePageAgain) {
  const Workplace place = testing::MakeIrWorkplace("redraw", kInterpreted, R"(
      pipeline { steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } } }
      variants { name: "layers" }
      benchmark { batches: 1 threads: 1 repetitions: 3 min_time_ms: 1 })");
  ASSERT_EQ(RunAndRead(place).code, kOk);
  const std::string json = place.out + "/results.json", page = place.out + "/report.html";
  const std::string drawn = *ReadFile(page), json_before = *ReadFile(json);
  testing::Overwrite(page, "old");
  testing::Outcome outcome = testing::RunWithArgs({"report", json});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("to look at: " + page));
  EXPECT_EQ(*ReadFile(page), drawn);
  EXPECT_EQ(testing::RunWithArgs({"report", json, json}).code, kOk);

  EXPECT_EQ(testing::RunWithArgs({"report"}).code, kUsage);
  EXPECT_EQ(testing::RunWithArgs({"report", place.folder + "/none.json"}).code, kIo);
  outcome = testing::RunWithArgs({"report", place.config});
  EXPECT_EQ(outcome.code, kInvalidInput);
  EXPECT_THAT(outcome.err, HasSubstr("tiny.textproto is no results.json"));

  outcome = testing::RunWithArgs({"compare", json, json});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("nothing got worse"));
  std::string worse = *ReadFile(json);
  const std::string field = "\"weight_bytes\": ";
  worse.insert(worse.find(field) + field.size(), "9");
  testing::Overwrite(json, worse);
  testing::Overwrite(place.folder + "/before.json", json_before);
  EXPECT_EQ(testing::RunWithArgs({"compare", place.folder + "/before.json", json}).code, kGateFailed);
  EXPECT_EQ(testing::RunWithArgs({"compare", place.folder + "/before.json", json, "--tolerance=1e9"}).code, kOk);
  EXPECT_EQ(testing::RunWithArgs({"compare", json}).code, kUsage);
  testing::Overwrite(place.folder + "/before.json", R"({"status": "INCOMPLETE"})");
  outcome = testing::RunWithArgs({"compare", place.folder + "/before.json", json});
  EXPECT_EQ(outcome.code, kInvalidInput);
  EXPECT_THAT(outcome.err, HasSubstr("before.json: found no variants"));
  EXPECT_EQ(testing::RunWithArgs({"compare", json, json, "--tolerance=x"}).code, kUsage);

  std::filesystem::remove(place.out + "/.fuselage");
  outcome = testing::RunWithArgs({"report", json});
  EXPECT_EQ(outcome.code, kIo) << "not listed, so not ours";
}

TEST(Files, RunsAreMerged) {
  const Workplace place = testing::MakeIrWorkplace("merge", kInterpreted, R"(
      pipeline { steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } } }
      variants { name: "layers" }
      benchmark { batches: 1 threads: 1 repetitions: 3 min_time_ms: 1 })");
  const Outcome run = RunAndRead(place);
  ASSERT_EQ(run.code, kOk);
  const std::string json = place.out + "/results.json", other = place.folder + "/other.json";
  testing::Overwrite(other, *ReadFile(json));
  const std::string folder = place.folder + "/session";
  testing::Outcome outcome = testing::RunWithArgs({"merge", folder, json, other});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("to look at: " + folder + "/report.html"));
  const Results merged = testing::ReadResults(folder);
  ASSERT_EQ(merged.runs_size(), 2);
  EXPECT_EQ(merged.runs(0).name(), "out") << "the folder's, of a file called as every run calls it";
  EXPECT_EQ(merged.runs(1).name(), "other");
  EXPECT_EQ(merged.runs(1).results().SerializeAsString(), run.results.SerializeAsString());
  EXPECT_EQ(merged.environment().cpu(), run.results.environment().cpu());

  // Again, with what was merged among the files; then one of another machine.
  testing::Overwrite(place.folder + "/third.json", *ReadFile(json));
  EXPECT_EQ(testing::RunWithArgs({"merge", folder, folder + "/results.json", place.folder + "/third.json"}).code, kOk);
  EXPECT_EQ(testing::ReadResults(folder).runs_size(), 3);
  std::string text = *ReadFile(other);
  const std::string field = "\"cpu\": \"";
  testing::Overwrite(other, text.insert(text.find(field) + field.size(), "Not "));
  outcome = testing::RunWithArgs({"merge", folder, json, other});
  EXPECT_EQ(outcome.code, kInvalidInput);
  EXPECT_THAT(outcome.err, HasSubstr("other: found cpu \"Not "));
  EXPECT_EQ(testing::ReadResults(folder).runs_size(), 3) << "what was there stays";

  outcome = testing::RunWithArgs({"compare", json, folder + "/results.json"});
  EXPECT_EQ(outcome.code, kInvalidInput);
  EXPECT_THAT(outcome.err, HasSubstr("found several runs in one results.json"));
  EXPECT_EQ(testing::RunWithArgs({"merge", folder}).code, kUsage);
  EXPECT_EQ(testing::RunWithArgs({"merge", folder, place.folder + "/none.json"}).code, kIo);
  std::filesystem::create_directory(place.folder + "/mine");
  testing::Overwrite(place.folder + "/mine/results.json", "{}");
  EXPECT_EQ(testing::RunWithArgs({"merge", place.folder + "/mine", json}).code, kIo) << "no run wrote that";
}

// Exit codes are diff's.
TEST(Files, TwoGraphsAreDiffed) {
  const Workplace place = testing::MakeIrWorkplace("diff", kInterpreted, "print_graphs: true");
  const std::string before = place.folder + "/tiny.ir", after = place.folder + "/after.ir";
  std::string text = kInterpreted;
  testing::Overwrite(after, text.insert(text.find("  output"), "  %\x1b: f32[1] = placeholder\n"));
  testing::Outcome outcome = testing::RunWithArgs({"diff", before, before});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("0 added, 0 removed, 0 changed, 0 renamed\n"));
  outcome = testing::RunWithArgs({"diff", before, after});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("1 added, 0 removed"), HasSubstr("+ %\\x1b: f32[1] = placeholder()")));
  for (const std::vector<std::string>& args : {std::vector<std::string>{"diff", before},
                                               {"diff", before, place.folder + "/none.ir"},
                                               {"diff", before, place.config}}) {
    outcome = testing::RunWithArgs(args);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err, "");
  }
}

// The counters of a folder, which stand still.
TEST(Energy, ByTheCountersOfTheMachine) {
  const std::string zone = ::testing::TempDir() + "/powercap/intel-rapl:0";
  std::filesystem::create_directories(zone);
  testing::Overwrite(zone + "/name", "package-0\n");
  testing::Overwrite(zone + "/max_energy_range_uj", "262143328850\n");
  testing::Overwrite(zone + "/energy_uj", "1000000\n");
  const std::string fast =
      "benchmark { batches: 1 threads: 1 repetitions: 2 min_time_ms: 1 } energy { powercap: \"" + ::testing::TempDir();
  Outcome outcome = RunAndRead(testing::MakeWorkplace("energy", fast + "/powercap\" grams_co2_per_kwh: 50 }"));
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("by RAPL package-0; 50 g CO2/kWh: the config"));
  for (const auto& variant : outcome.results.variants()) {
    ASSERT_TRUE(variant.measurements(0).has_joules_per_image());
    EXPECT_EQ(variant.measurements(0).joules_per_image(), 0);
  }
  outcome = RunAndRead(testing::MakeWorkplace("no_energy", fast + "/nowhere\" }"));
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Energy: not available here: no RAPL package in "));
  EXPECT_EQ(outcome.results.environment().grams_co2_per_kwh(), 480);
  for (const auto& variant : outcome.results.variants()) EXPECT_FALSE(variant.measurements(0).has_joules_per_image());
}

TEST(Files, AModelThatIsNoRegularFile) {
  const Workplace place = testing::MakeIrWorkplace("fifo", kInterpreted, "print_graphs: true");
  for (const std::string name : {"/fifo.onnx", "/fifo.ir"}) {
    const std::string fifo = place.folder + name;
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const Outcome outcome = RunAndRead(place, {"--model=" + fifo});
    EXPECT_EQ(outcome.code, kIo);
    EXPECT_THAT(outcome.err, HasSubstr("it is a FIFO, wanted a regular file"));
  }
  std::filesystem::create_directories(place.folder + "/folder.onnx");
  const Outcome outcome = RunAndRead(place, {"--model=" + place.folder + "/folder.onnx"});
  EXPECT_EQ(outcome.code, kIo);
  EXPECT_THAT(outcome.err, HasSubstr("it is a directory, wanted a regular file"));
}

// A layer whose channels were scaled in FP32 is compared with what was scaled, not with the first variant.
TEST(Layers, AreComparedWithTheLastGraphInFloats) {
  const Workplace place = testing::MakeIrWorkplace("equalized", R"(graph @g {
  param @a.weight: f32[2,1,1,1] = [1, 64]
  param @b.weight: f32[2,2,1,1] = [1, 0.015625, -0.5, 0.0078125]
  param @c.weight: f32[1,2,1,1] = [1, 1]
  module @a = conv2d(activation="relu", weight=@a.weight)
  module @b = conv2d(activation="relu", weight=@b.weight)
  module @c = conv2d(weight=@c.weight)
  %x: f32[1,1,4,4] = placeholder
  %a: f32[1,2,4,4] = call_module @a(%x)
  %b: f32[1,2,4,4] = call_module @b(%a)
  %c: f32[1,1,4,4] = call_module @c(%b)
  output(%c)
})",
                                                   R"(
    random_inputs { count: 8 }
    pipeline { steps { pass { [type.googleapis.com/fuselage.EqualizationOptions] {} } }
               steps { pass { [type.googleapis.com/fuselage.QuantizeOptions] {} } }
               steps { pass { [type.googleapis.com/fuselage.QuantLiftOptions] {} } }
               steps { pass { [type.googleapis.com/fuselage.LowerOptions] {} } } }
    variants { name: "fp32" after: "input" } variants { name: "int8" }
    benchmark { repetitions: 2 min_time_ms: 1 })");
  const Outcome outcome = RunAndRead(place);
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  ASSERT_EQ(outcome.results.passes(0).name(), "equalization");
  ASSERT_GT(outcome.results.passes(0).matches(), 0);
  int layers = 0;
  for (const Results::Layer& layer : outcome.results.variants(1).layers()) {
    if (!layer.has_snr_db()) continue;
    ++layers;
    EXPECT_GT(layer.snr_db(), 40) << layer.name();
  }
  EXPECT_EQ(layers, 3);
}

// The weights are as much of the model as its text is.
TEST(Files, TheDigestCoversWhatHoldsTheModel) {
  const Workplace place = testing::MakeIrWorkplace("digest", R"(graph @g {
  param @w: f32[8,64] = seed(1)
  %x: f32[1,64] = placeholder
  %w: f32[8,64] = get_attr @w
  %y: f32[1,8] = call_function linear(%x, %w)
  output(%y)
})",
                                                   "print_graphs: true");
  const std::string data = place.folder + "/tiny.safetensors";
  const auto model = RunAndRead(place).results.model();
  ASSERT_EQ(model.external_size(), 1);
  EXPECT_EQ(model.external(0), data);
  EXPECT_EQ(model.sha256(), DigestFiles({place.folder + "/tiny.ir", data})->sha256);
  EXPECT_EQ(model.bytes(), DigestFiles({place.folder + "/tiny.ir", data})->bytes);

  const Workplace onnx = testing::MakeWorkplace("digest_onnx", "benchmark { repetitions: 2 min_time_ms: 1 }");
  const auto whole = RunAndRead(onnx).results.model();
  EXPECT_EQ(whole.external_size(), 0);
  EXPECT_EQ(whole.sha256(), DigestFiles({onnx.folder + "/tiny.onnx"})->sha256);
}

}  // namespace
}  // namespace fuselage::harness
