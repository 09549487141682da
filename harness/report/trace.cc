#include "harness/report/trace.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/report/json.h"

namespace fuselage::report {
namespace {

// How far from a slice's end an arrow is: inside of it, as part of the slice's duration.
constexpr double kInside = 0.01;

class Events {
 public:
  void AddProcess(const std::string& name, const Results::Schedule& schedule) {
    ++process_;
    Add("process_name", "M", 0, absl::StrCat("\"args\": {\"name\": ", JsonString(name), "}"));
    for (int thread = 0; thread < schedule.threads(); ++thread) {
      Add("thread_name", "M", thread, absl::StrCat("\"args\": {\"name\": \"thread ", thread, "\"}"));
    }
    std::vector<int> first(schedule.steps_size(), -1), last(schedule.steps_size(), -1);  // The caller's spans.
    for (int i = 0; i < schedule.span_step_size(); ++i) {
      const int step = schedule.span_step(i);
      AddSlice(schedule, i);
      if (schedule.span_thread(i) != 0) continue;
      if (first[step] < 0 || schedule.span_begin_us(i) < schedule.span_begin_us(first[step])) first[step] = i;
      if (last[step] < 0 || schedule.span_begin_us(i) > schedule.span_begin_us(last[step])) last[step] = i;
    }
    for (int reader = 0; reader < schedule.steps_size(); ++reader) {
      for (const int writer : schedule.steps(reader).reads()) {
        if (first[reader] >= 0 && last[writer] >= 0) AddArrow(schedule, last[writer], first[reader]);
      }
    }
  }

  std::string Json() const {
    return absl::StrCat("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n", absl::StrJoin(events_, ",\n"), "\n]}\n");
  }

 private:
  void Add(const std::string& name, const char* phase, int thread, const std::string& rest) {
    events_.push_back(absl::StrCat("{\"name\": ", JsonString(name), ", \"ph\": \"", phase, "\", \"pid\": ", process_,
                                   ", \"tid\": ", thread, ", ", rest, "}"));
  }

  void AddSlice(const Results::Schedule& schedule, int span) {
    const Results::Schedule::Step& step = schedule.steps(schedule.span_step(span));
    const double begin = schedule.span_begin_us(span);
    Add(step.node().empty() ? step.op() : step.node(), "X", schedule.span_thread(span),
        absl::StrFormat(
            "\"cat\": \"step\", \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"step\": %d, \"op\": %s, \"kernel\": %s}",
            begin, schedule.span_end_us(span) - begin, schedule.span_step(span), JsonString(step.op()),
            JsonString(step.kernel())));
  }

  void AddArrow(const Results::Schedule& schedule, int from, int to) {
    ++arrow_;
    const auto add = [&](const char* phase, int span, double part) {
      const double begin = schedule.span_begin_us(span), end = schedule.span_end_us(span);
      Add("value", phase, 0,
          absl::StrFormat("\"cat\": \"value\", \"id\": %d, \"bp\": \"e\", \"ts\": %.6f", arrow_,
                          begin + part * (end - begin)));
    };
    add("s", from, 1 - kInside);
    add("f", to, kInside);
  }

  std::vector<std::string> events_;
  int process_ = 0;
  int64_t arrow_ = 0;
};

}  // namespace

std::string Trace(const Results& results) {
  Events events;
  for (const auto& variant : results.variants()) {
    for (const Results::Schedule& schedule : variant.schedules()) {
      events.AddProcess(absl::StrFormat("%s, batch %d, %d thread%s", variant.name(), schedule.batch(),
                                        schedule.threads(), schedule.threads() == 1 ? "" : "s"),
                        schedule);
    }
  }
  return events.Json();
}

}  // namespace fuselage::report
