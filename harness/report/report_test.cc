#include <algorithm>
#include <limits>
#include <sstream>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "harness/report/json.h"
#include "harness/report/progress.h"
#include "harness/report/table.h"
#include "harness/report/tables.h"

namespace fuselage::report {
namespace {

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
  EXPECT_EQ(Shortened("abcdefghij", 6), "ab..ij");
  EXPECT_EQ(Shortened("abc", 6), "abc");
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
            "  \"snr_db\": null,\n"
            "  \"remarks\": [\n"
            "    \"one\"\n"
            "  ]\n"
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
  const std::string report = Report(Example(), 2);
  EXPECT_THAT(report, HasSubstr("conv_bn      90     70"));
  EXPECT_THAT(report, HasSubstr("1.2e-05"));
  EXPECT_THAT(report, HasSubstr("Slowest layers of int8"));
  EXPECT_LT(report.find("layer2"), report.find("layer1"));
  EXPECT_THAT(report, Not(HasSubstr("layer0")));
  EXPECT_THAT(report, Not(HasSubstr("INCOMPLETE")));
  EXPECT_THAT(report, Not(HasSubstr("Gates")));
}

TEST(Tables, WarningsStandBelowTheNumbersTheyAreAbout) {
  Results results = Example();
  results.add_warnings("other programs \x1b kept 1.0 cores busy");
  const std::string report = Report(results, 2);
  EXPECT_THAT(report, HasSubstr("\nwarning: other programs \\x1b kept 1.0 cores busy\n"));
  EXPECT_GT(report.find("warning:"), report.find("Latency"));
}

TEST(Tables, ABrokenOffRunSaysSo) {
  Results results = Example();
  results.set_status("INCOMPLETE");
  results.set_error("interrupted by signal 2");
  EXPECT_THAT(Report(results, 0), HasSubstr("INCOMPLETE: interrupted by signal 2"));
  EXPECT_NE(Report(Results(), 10), "");
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
