#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "harness/report/json.h"
#include "harness/report/progress.h"
#include "harness/report/report.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Table, AlignsColumns) {
  Table table("Passes", {{"pass", Align::kLeft}, {"ms"}});
  table.AddRow({"conv_bn", "1.5"});
  table.AddRow({"x", "110.0"});
  EXPECT_EQ(table.ToString(),
            "Passes\n"
            "pass        ms\n"
            "-------  -----\n"
            "conv_bn    1.5\n"
            "x        110.0\n");
}

TEST(Table, EscapesWhatCouldDriveATerminal) {
  Table table("t", {{"name", Align::kLeft}});
  table.AddRow({"a\x1b[2Jb\n\xff"});
  EXPECT_THAT(table.ToString(), HasSubstr("a\\x1b[2Jb\\x0a\\xff\n"));
}

TEST(Table, Numbers) {
  EXPECT_EQ(Number(1.005, 1), "1.0");
  EXPECT_EQ(Number(std::numeric_limits<double>::infinity(), 1), "inf");
  EXPECT_EQ(Number(std::optional<double>(), 1), "-");
  EXPECT_EQ(Megabytes(11'200'000), "11.2 MB");
  EXPECT_EQ(Megabytes(37'850), "37.9 kB");
  EXPECT_EQ(Shortened("abcdefghij", 6), "ab..ij");
  EXPECT_EQ(Shortened("abc", 6), "abc");
  EXPECT_EQ(Shortened("/features/features.12/block/block.0/block.0.0/Conv", 32), "/features.12/block.0.0/Conv");
  EXPECT_EQ(Shortened("/features/features.12/block/block.0/block.0.0/Conv", 12), "/feat../Conv");
  EXPECT_EQ(Shortened("a/a/a.b/b.c/b.c", 13), "a/a.b/b.c/b.c");
  EXPECT_EQ(Shortened("////////", 4), "/../");
  EXPECT_EQ(Shortened("a/a./", 4), "a./");
}

TEST(Json, NumbersOfAListStandOnOneLine) {
  Results::GraphHistory::Step step;
  step.set_after("cse");
  step.add_nodes(1);
  step.add_nodes(20);
  EXPECT_EQ(ToJson(step), "{\n  \"after\": \"cse\",\n  \"nodes\": [1, 20]\n}\n");
}

TEST(Json, NumbersAreNumbersAndAllFieldsArePrinted) {
  Results::Pass pass;
  pass.set_name("a\"b\\\n\x1b\xff\xc3\xa9");
  pass.set_nodes_before(int64_t{1} << 40);
  pass.set_wall_ms(0.25);
  pass.set_snr_db(std::numeric_limits<double>::infinity());
  pass.add_remarks("one");
  EXPECT_EQ(ToJson(pass),
            "{\n"
            "  \"name\": \"a\\\"b\\\\\\u000a\\u001b\\ufffd\xc3\xa9\",\n"
            "  \"changed\": false,\n"
            "  \"nodes_before\": 1099511627776,\n"
            "  \"nodes_after\": 0,\n"
            "  \"matches\": 0,\n"
            "  \"wall_ms\": 0.25,\n"
            "  \"max_abs_error\": null,\n"
            "  \"snr_db\": \"Infinity\",\n"
            "  \"remarks\": [\n"
            "    \"one\"\n"
            "  ],\n"
            "  \"decisions\": []\n"
            "}\n");
}

TEST(Json, ReadsBackThroughProtobuf) {
  Results results;
  results.set_status("complete");
  auto* variant = results.add_variants();
  variant->set_name("int8");
  variant->set_top1(91.75);
  variant->add_measurements()->mutable_latency_ms()->set_median(1e-9);
  variant->add_measurements()->set_batch(16);
  results.add_warnings("w");
  Results read;
  const auto status = google::protobuf::util::JsonStringToMessage(ToJson(results), &read);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(read.variants(0).top1(), 91.75);
  EXPECT_EQ(read.variants(0).measurements(0).latency_ms().median(), 1e-9);
  EXPECT_EQ(read.variants(0).measurements(1).batch(), 16);
  EXPECT_FALSE(read.variants(0).has_top5());

  // What is not finite, and what was not measured.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {kInfinity, -kInfinity, std::nan("")}) {
    results.mutable_variants(0)->set_snr_db(value);
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(ToJson(results), &read).ok());
    EXPECT_TRUE(read.variants(0).has_snr_db());
    EXPECT_FALSE(read.variants(0).has_max_abs_error());
    EXPECT_TRUE(read.variants(0).snr_db() == value || (std::isnan(read.variants(0).snr_db()) && std::isnan(value)));
  }
}

TEST(Json, InvalidUtf8IsReplacedByteByByte) {
  EXPECT_EQ(JsonString("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"") << "a surrogate";
  EXPECT_EQ(JsonString("\xc0\xaf"), "\"\\ufffd\\ufffd\"") << "overlong";
  EXPECT_EQ(JsonString("\xf0\x9f\x98\x80"), "\"\xf0\x9f\x98\x80\"");
  EXPECT_EQ(JsonString("\xe2\x82"), "\"\\ufffd\\ufffd\"") << "cut off";
}

Results Example() {
  Results results;
  results.set_status("complete");
  results.set_config("resnet18");
  auto* pass = results.add_passes();
  pass->set_name("conv_bn");
  pass->set_nodes_before(90);
  pass->set_nodes_after(70);
  pass->set_max_abs_error(0.0000123);
  for (const char* name : {"fp32", "int8"}) {
    auto* variant = results.add_variants();
    variant->set_name(name);
    for (int threads : {1, 2}) {
      auto* measurement = variant->add_measurements();
      measurement->set_batch(1);
      measurement->set_threads(threads);
      measurement->mutable_latency_ms()->set_median(10);
    }
  }
  for (int i = 0; i < 3; ++i) {
    auto* layer = results.mutable_variants(1)->add_layers();
    layer->set_name("layer" + std::to_string(i));
    layer->set_ms(i);
  }
  return results;
}

TEST(Tables, ShowWhatTheResultsHold) {
  const std::string report = Report(Example(), {2});
  EXPECT_THAT(report, HasSubstr("conv_bn      90     70"));
  EXPECT_THAT(report, HasSubstr("1.2e-05"));
  EXPECT_THAT(report, HasSubstr("Slowest layers of int8"));
  EXPECT_LT(report.find("layer2"), report.find("layer1"));
  EXPECT_THAT(report, Not(HasSubstr("layer0")));
  EXPECT_THAT(report, Not(HasSubstr("INCOMPLETE")));
  EXPECT_THAT(report, Not(HasSubstr("Gates")));
}

TEST(Tables, WithoutADatasetVariantsAreComparedByTheirOutputs) {
  Results results = Example();
  EXPECT_THAT(Report(results, {0}), HasSubstr("no dataset: accuracy not measured\n"));
  results.mutable_variants(1)->set_max_abs_error(2.5e-7);
  results.mutable_variants(1)->set_snr_db(43.25);
  EXPECT_THAT(sections::Variants(results, {}), HasSubstr("max difference"));
  EXPECT_THAT(sections::Variants(results, {}), HasSubstr("2.5e-07    43.2"));
  EXPECT_THAT(sections::Latency(results, {}), HasSubstr("samples/s"));
  results.mutable_dataset()->set_name("cifar10");
  EXPECT_THAT(Report(results, {0}), Not(HasSubstr("accuracy not measured")));
  EXPECT_THAT(sections::Variants(results, {}), HasSubstr("top-1"));
  EXPECT_THAT(sections::Latency(results, {}), HasSubstr("images/s"));
}

TEST(Tables, OnATextVariantsAreComparedByBitsPerByte) {
  Results results = Example();
  results.mutable_dataset()->set_name("text");
  results.mutable_dataset()->set_split("test");
  results.mutable_dataset()->set_unit("window");
  results.mutable_variants(0)->set_bits_per_byte(1.75481);
  results.mutable_variants(0)->set_kl_divergence_bits(0);
  results.mutable_variants(1)->set_bits_per_byte(std::nan(""));
  const std::string variants = sections::Variants(results, {});
  EXPECT_THAT(variants, HasSubstr("windows  bits per byte  KL divergence, bits"));
  EXPECT_THAT(variants, HasSubstr("1.7548               0.0000"));
  EXPECT_THAT(variants, HasSubstr("nan                    -"));
  EXPECT_THAT(variants, Not(HasSubstr("top-1")));
  EXPECT_THAT(sections::Latency(results, {}), HasSubstr("windows/s"));
  EXPECT_THAT(Report(results, {0}), HasSubstr("\nWindows of text (test)\n"));
}

TEST(Tables, LatencyShowsColdRunsAndTheRuntimesShareWhereMeasured) {
  Results results = Example();
  EXPECT_THAT(sections::Latency(results, {}), Not(AnyOf(HasSubstr("cold"), HasSubstr("Runtime"))));
  for (auto& variant : *results.mutable_variants()) {
    variant.mutable_measurements(0)->set_runtime_overhead_percent(variant.name() == "int8" ? 0.25 : 1.5);
  }
  auto* two_threads = results.mutable_variants(1)->mutable_measurements(1);
  two_threads->set_cold_ms(12.5);
  two_threads->set_runtime_overhead_percent(0.75);
  auto* large_batch = results.mutable_variants(1)->add_measurements();
  large_batch->set_batch(16);
  large_batch->set_runtime_overhead_percent(50);
  const std::string table = sections::Latency(results, {});
  EXPECT_THAT(table, AllOf(HasSubstr("p99   cold"), HasSubstr("12.50")));
  EXPECT_THAT(table, HasSubstr("Runtime outside the kernels at batch 1: fp32 1.50 %, int8 0.25 % on 1 thread; "
                               "int8 0.75 % on 2 threads\n"));
}

TEST(Tables, TimesOfADeviceStandBesideThoseOfTheHost) {
  Results results = Example();
  EXPECT_THAT(sections::Latency(results, {}), Not(HasSubstr("device")));
  auto* measurement = results.mutable_variants(1)->mutable_measurements(0);
  measurement->mutable_device_ms()->set_median(0.0625);
  measurement->set_device_images_per_second(16000);
  EXPECT_THAT(sections::Latency(results, {}),
              AllOf(HasSubstr("device median  device samples/s"), HasSubstr("0.0625           16000.0"),
                    HasSubstr("without the copies")));
}

TEST(Tables, RooflineStandsBesideTheMeasurement) {
  Results results = Example();
  EXPECT_EQ(sections::Roofline(results, {}), "") << "nothing was counted";
  for (int i = 0; i < 2; ++i) {
    auto* measurement = results.mutable_variants(i)->mutable_measurements(0);
    measurement->set_counted_bytes(i == 0 ? 4'837'000 : 3'225'000);
    measurement->set_predicted_ms(i == 0 ? 12 : 0.05);
    measurement->set_predicted_speedup(i == 0 ? 1 : 240);
    measurement->set_speedup(i == 0 ? 1 : 1.5);
  }
  results.mutable_environment()->set_memory_counter("not available here: no counter");
  EXPECT_EQ(sections::Roofline(results, {}),
            "Bytes moved a run, and the roofline's prediction; threads: 1\n"
            "batch  variant  MB counted  ms predicted  ms measured  gain predicted  gain measured\n"
            "-----  -------  ----------  ------------  -----------  --------------  -------------\n"
            "    1  fp32           4.84         12.00        10.00           1.00x          1.00x\n"
            "    1  int8           3.23        0.0500        10.00         240.00x          1.50x\n"
            "MB measured: not available here: no counter\n");
  results.mutable_variants(1)->mutable_measurements(0)->set_measured_bytes(512);
  EXPECT_THAT(sections::Roofline(results, {}), HasSubstr("MB measured  ms predicted"));
  EXPECT_THAT(sections::Roofline(results, {}), HasSubstr("0.0005"));
}

TEST(Tables, PeaksOfTheMachineAreALine) {
  Results results = Example();
  auto* peaks = results.mutable_environment()->mutable_peaks();
  peaks->set_f32_flops_per_second(95e9);
  peaks->set_int8_ops_per_second(310e9);
  peaks->set_bytes_per_second(11.24e9);
  peaks->set_seconds_per_call(0.9e-6);
  EXPECT_THAT(Report(results, {0}),
              HasSubstr("\nPeaks of one thread: 95 GFLOP/s FP32, 310 GOP/s INT8, 11.2 GB/s, 0.90 us a call\n"));
}

TEST(Tables, GatesOfPassesAndSmallBounds) {
  Results results = Example();
  auto* gate = results.add_gates();
  gate->set_name("max_abs_error");
  gate->set_pass("conv_bn");
  gate->set_wanted(1e-5);
  gate->set_found(0);
  gate->set_judged(true);
  EXPECT_THAT(sections::Gates(results, {}), HasSubstr("max_abs_error  pass conv_bn   1e-05      0  FAILED"));
  gate->clear_found();
  gate->set_judged(false);
  gate->set_reason("not measured");
  EXPECT_THAT(sections::Gates(results, {}), HasSubstr("1e-05      -  not judged  not measured\n"));
}

TEST(Tables, WhatAReaderOfALineMustKnow) {
  Results results = Example();
  EXPECT_THAT(sections::Latency(results, {}), Not(HasSubstr("note")));
  auto* variant = results.mutable_variants(1);
  variant->set_reference_steps(3);
  variant->mutable_measurements(0)->set_speedup(12);
  variant->mutable_measurements(0)->set_baseline_backend("cpu");
  variant->mutable_measurements(0)->set_slower_than_threads(1);
  EXPECT_THAT(sections::Latency(results, {}),
              HasSubstr("12.00x over cpu  reference steps: 3; slower than on 1 thread\n"));
  variant->set_not_run("no GPU here");
  EXPECT_THAT(sections::Variants(results, {}), HasSubstr("not run"));
}

Results::GraphTable::Row* AddRow(Results::GraphTable* table, const std::string& name, const std::string& kind,
                                 const std::string& target) {
  auto* row = table->add_rows();
  row->set_name(name);
  row->set_kind(kind);
  row->set_target(target);
  return row;
}

TEST(Tables, GraphsAsReadAndAsChanged) {
  Results results;
  EXPECT_EQ(sections::Graphs(results, {}), "");
  auto* read = results.add_graphs();
  read->set_after("input");
  read->set_nodes(3);
  AddRow(read, "x", "placeholder", "x")->add_users("y");
  auto* row = AddRow(read, "y", "call_function", "relu");
  row->add_inputs("x");
  row->add_users("output");
  AddRow(read, "output", "output", "output")->add_inputs("y");
  auto* after = results.add_graphs();
  after->set_after("fusion");
  after->set_nodes(100);
  after->set_left_out(98);
  after->add_removed("y");
  row = AddRow(after, "z\x1b", "call_module", "fc = linear(activation=\"relu\")");
  row->set_change("changed");
  row->add_sources("x");
  row->add_sources("y");
  AddRow(after, "output", "output", "output")->set_change("new");
  EXPECT_EQ(sections::Graphs(results, {}),
            "Graph as read: 3 nodes\n"
            "name    kind           target  inputs  users\n"
            "------  -------------  ------  ------  ------\n"
            "x       placeholder    x               y\n"
            "y       call_function  relu    x       output\n"
            "output  output         output  y\n"
            "\n"
            "Graph after fusion: 100 nodes; gone: y\n"
            "name         kind         target                          inputs  users  change\n"
            "-----------  -----------  ------------------------------  ------  -----  ------------\n"
            "z\\x1b        call_module  fc = linear(activation=\"relu\")                 made of x, y\n"
            "... 98 more\n"
            "output       output       output                                         new\n");
}

TEST(Tables, ExplanationSaysWhatWasLeftAloneAndWhatLeavingInt8Costs) {
  Results results;
  results.set_status("complete");
  EXPECT_EQ(sections::Explanation(results, {}), "");
  auto* pass = results.add_passes();
  pass->set_name("fusion");
  const auto decide = [&](const std::string& kind, const std::string& node, const std::string& message) {
    auto* decision = pass->add_decisions();
    decision->set_kind(kind);
    decision->set_node(node);
    decision->set_message(message);
  };
  for (int i = 0; i < 5; ++i)
    decide("applied", "r" + std::to_string(i), "fused into %c.1_" + std::to_string(i) + " (conv2d)");
  decide("applied", "r9", "fused into %fc (linear)");
  for (int i = 0; i < 5; ++i) decide("missed", "m" + std::to_string(i), "not fused: %c is a graph output");
  decide("note", "", "saves 1.2 ms");
  results.add_passes()->set_name("cse");
  auto* explanation = results.mutable_explanation();
  explanation->set_variant("int8");
  explanation->set_ops(3);
  explanation->set_int8_ops(1);
  explanation->set_fp32_ops(1);
  explanation->set_reference_ops(1);
  explanation->set_bytes(1000);
  explanation->set_crossing_bytes(125);
  const auto place = [&](const std::string& node, const std::string& op, const std::string& runs_in) {
    auto* row = explanation->add_placements();
    row->set_node(node);
    row->set_op(op);
    row->set_runs_in(runs_in);
    return row;
  };
  auto* crossing = place("q", "int8.quantize", "crossing");
  crossing->set_kernel("avx2");
  crossing->set_bytes(125);
  crossing->set_layout("nhwc, halo 1");
  crossing->set_crossing("f32 -> u8");
  crossing->set_crossing_bytes(125);
  place("", "reorder", "layout")->set_kernel("to nhwc");
  place("flat", "flatten", "INT8");
  place("sm", "softmax", "FP32")->set_why("quantize: no INT8 kernel");

  const std::string report = Report(results, {0});
  EXPECT_THAT(report, HasSubstr("fusion: 6 applied, 5 left alone, notes: 1\n"));
  EXPECT_THAT(report, HasSubstr("r0 and 4 more  applied     fused into %.. (conv2d)\n"));
  EXPECT_THAT(report, HasSubstr("r9             applied     fused into %fc (linear)\n"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(report,
                HasSubstr("m" + std::to_string(i) + "             left alone  not fused: %c is a graph output\n"));
  }
  EXPECT_LT(report.find("left alone  not"), report.find("applied     fused")) << "misses first";
  EXPECT_THAT(report, HasSubstr("-              note        saves 1.2 ms\n"));
  EXPECT_THAT(report, HasSubstr("cse: 0 applied, 0 left alone\n"));
  EXPECT_THAT(report, HasSubstr("Where each op of int8 runs, at batch 1\n"));
  EXPECT_THAT(report, HasSubstr("int8.quantize  q     crossing  avx2          nhwc, halo 1    125\n"));
  EXPECT_THAT(report, HasSubstr("flatten        flat  INT8      none: a view                    0\n"));
  EXPECT_THAT(report, HasSubstr("quantize: no INT8 kernel\n"));
  EXPECT_THAT(report, HasSubstr("int8.quantize  q     f32 -> u8    125\n"));
  EXPECT_THAT(report, HasSubstr("1 of 3 ops in INT8, 1 in FP32, 1 by the reference. Changes of layout: 1.\n"
                                "Crossings move 125 of 1000 bytes a run (12.5 %).\n"));

  explanation->mutable_placements(3)->clear_why();
  EXPECT_THAT(sections::Explanation(results, {}), Not(HasSubstr("why not INT8"))) << "no reasons, no column";
  results.clear_passes();
  EXPECT_THAT(sections::Explanation(results, {}), ::testing::StartsWith("Where each op of int8 runs"));
}

TEST(Tables, WarningsStandBelowTheNumbersTheyAreAbout) {
  Results results = Example();
  results.add_warnings("other programs \x1b kept 1.0 cores busy");
  const std::string report = Report(results, {2});
  EXPECT_THAT(report, HasSubstr("\nwarning: other programs \\x1b kept 1.0 cores busy\n"));
  EXPECT_GT(report.find("warning:"), report.find("Latency"));
}

TEST(Tables, ABrokenOffRunSaysSo) {
  Results results = Example();
  results.set_status("INCOMPLETE");
  results.set_error("interrupted by signal 2");
  EXPECT_THAT(Report(results, {0}), HasSubstr("INCOMPLETE: interrupted by signal 2"));
  EXPECT_NE(Report(Results(), {10}), "");
}

int Lines(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

TEST(Progress, IsPlainWherePiped) {
  std::ostringstream out;
  Progress progress(out, false);
  progress.Begin("calibrate");
  for (int i = 0; i < 1000; ++i) progress.Update(i, 1000, "images");
  progress.Begin("measure");
  progress.Warn("odd \x1b name");
  progress.End();
  EXPECT_THAT(out.str(), ::testing::StartsWith("calibrate"));
  EXPECT_THAT(out.str(), HasSubstr("warning: odd \\x1b name\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("\r")));
  EXPECT_EQ(Lines(out.str()), 4) << out.str();
  ASSERT_EQ(progress.phases().size(), 2);
  EXPECT_EQ(progress.phases()[1].first, "measure");
}

TEST(Progress, RewritesItsLineOnATerminal) {
  std::ostringstream out;
  Progress progress(out, true);
  progress.Begin("passes");
  progress.Detail("conv_bn");
  progress.End();
  EXPECT_THAT(out.str(), HasSubstr("\r\x1b[K"));
  EXPECT_EQ(Lines(out.str()), 1);
}

}  // namespace
}  // namespace fuselage::report
