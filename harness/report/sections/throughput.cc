#include <string>

#include "absl/strings/str_cat.h"
#include "harness/report/cells.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {
namespace {

std::string Busiest(const Results& results) {
  const std::string unit = Unit(results);
  Table table(
      "Throughput: all streams busy",
      {{"streams"}, {"threads each"}, {"batch"}, {"variant", Align::kLeft}, {unit + "s/s"}, {"over one stream"}});
  for (const auto& variant : results.variants()) {
    for (const auto& one : variant.throughput()) {
      table.AddRow({absl::StrCat(one.streams()), absl::StrCat(one.threads()), absl::StrCat(one.batch()), variant.name(),
                    Number(one.images_per_second(), 1), Times(FUSELAGE_OPTIONAL(one, scaling))});
    }
  }
  return table.empty() ? "" : table.ToString();
}

std::string UnderLoad(const Results& results) {
  Table table("Latency under load in ms, from a request's arrival to its answer", {{"streams"},
                                                                                   {"variant", Align::kLeft},
                                                                                   {"load"},
                                                                                   {"requests/s"},
                                                                                   {"requests"},
                                                                                   {"median"},
                                                                                   {"p90"},
                                                                                   {"p99"},
                                                                                   {"max"},
                                                                                   {"queue's median"},
                                                                                   {"queue's p99"}});
  for (const auto& variant : results.variants()) {
    for (const auto& one : variant.throughput()) {
      for (const auto& load : one.loads()) {
        table.AddRow({absl::StrCat(one.streams()), variant.name(), absl::StrCat(Number(load.percent(), 0), " %"),
                      Number(load.requests_per_second(), 1), absl::StrCat(load.requests()),
                      Milliseconds(load.latency_ms().median()), Milliseconds(load.latency_ms().p90()),
                      Milliseconds(load.latency_ms().p99()), Milliseconds(load.max_ms()),
                      Milliseconds(load.queue_ms().median()), Milliseconds(load.queue_ms().p99())});
      }
    }
  }
  if (table.empty()) return "";
  return absl::StrCat(table.ToString(), "queue: what a server would have that takes the same time for every request\n");
}

}  // namespace

std::string Throughput(const Results& results, const Options&) {
  const std::string busiest = Busiest(results), under_load = UnderLoad(results);
  return absl::StrCat(busiest, under_load.empty() ? "" : "\n", under_load);
}

}  // namespace fuselage::report::sections
