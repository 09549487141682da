#include "harness/report/trace.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"

namespace fuselage::report {
namespace {

using ::testing::ElementsAre;

// Its fields, by name; numbers as they are, `args` left out.
struct Event {
  std::string name, phase;
  double process = 0, thread = 0, time = 0, duration = 0, id = 0;
};

std::vector<Event> EventsOf(const Results& results) {
  google::protobuf::Struct trace;
  const auto parsed = google::protobuf::util::JsonStringToMessage(Trace(results), &trace);
  EXPECT_TRUE(parsed.ok()) << parsed.ToString();
  std::vector<Event> events;
  for (const auto& value : trace.fields().at("traceEvents").list_value().values()) {
    const auto& fields = value.struct_value().fields();
    const auto number = [&](const char* name) { return fields.count(name) ? fields.at(name).number_value() : 0; };
    events.push_back({fields.at("name").string_value(), fields.at("ph").string_value(), number("pid"), number("tid"),
                      number("ts"), number("dur"), number("id")});
  }
  return events;
}

// Two steps on two threads; the second reads what the first wrote.
Results::Schedule TwoSteps() {
  Results::Schedule schedule;
  schedule.set_batch(1);
  schedule.set_threads(2);
  for (const char* node : {"conv", ""}) {
    auto& step = *schedule.add_steps();
    step.set_node(node);
    step.set_op(*node ? "int8.conv2d" : "reorder");
  }
  schedule.mutable_steps(1)->add_reads(0);
  const auto span = [&](int step, int thread, double begin, double end) {
    schedule.add_span_step(step);
    schedule.add_span_thread(thread);
    schedule.add_span_begin_us(begin);
    schedule.add_span_end_us(end);
  };
  span(0, 0, 0, 10);
  span(0, 0, 12, 13);
  span(1, 0, 14, 20);
  span(0, 1, 2, 12);
  return schedule;
}

TEST(Trace, SlicesOfThreadsAndArrowsOfValues) {
  Results results;
  for (const char* name : {"fp32", "int8"}) {
    results.add_variants()->set_name(name);
    *results.mutable_variants()->rbegin()->add_schedules() = TwoSteps();
  }
  std::map<std::string, std::vector<Event>> of_phase;
  std::vector<std::string> processes;
  for (const Event& event : EventsOf(results)) {
    if (event.process == 2) of_phase[event.phase].push_back(event);
    if (event.name == "process_name") processes.push_back(absl::StrCat(event.process));
  }
  EXPECT_THAT(processes, ElementsAre("1", "2"));
  std::vector<std::string> slices;
  for (const Event& slice : of_phase["X"]) {
    slices.push_back(absl::StrCat(slice.name, " ", slice.thread, ": ", slice.time, " + ", slice.duration));
  }
  EXPECT_THAT(slices, ElementsAre("conv 0: 0 + 10", "conv 0: 12 + 1", "reorder 0: 14 + 6", "conv 1: 2 + 10"));
  ASSERT_EQ(of_phase["s"].size(), 1);
  ASSERT_EQ(of_phase["f"].size(), 1);
  const Event &from = of_phase["s"][0], &to = of_phase["f"][0];
  EXPECT_EQ(from.id, to.id);
  EXPECT_EQ(from.name, to.name) << "they are tied by name, category and id";
  // In the caller's last slice of the writer, and the first of the reader.
  EXPECT_GT(from.time, 12);
  EXPECT_LT(from.time, 13);
  EXPECT_GT(to.time, 14);
  EXPECT_LT(to.time, 20);
}

TEST(Trace, NamesAreText) {
  Results results;
  results.add_variants()->set_name("a\"\\\x1b\xff");
  *results.mutable_variants(0)->add_schedules() = TwoSteps();
  results.mutable_variants(0)->mutable_schedules(0)->mutable_steps(0)->set_node("\"}, {\n\x01");
  int slices = 0;
  for (const Event& event : EventsOf(results)) slices += event.name == "\"}, {\n\x01";
  EXPECT_EQ(slices, 3);
}

TEST(Trace, WithoutSchedulesIsEmpty) { EXPECT_TRUE(EventsOf(Results()).empty()); }

}  // namespace
}  // namespace fuselage::report
