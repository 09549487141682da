#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/report/cells.h"
#include "harness/report/measurement_rows.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {
namespace {

// What a reader of the line must know; mostly nothing.
std::string NoteText(const Row& row) {
  std::vector<std::string> notes;
  if (row.variant->reference_steps() > 0) {
    notes.push_back(absl::StrCat("reference steps: ", row.variant->reference_steps()));
  }
  if (const int fewer = row.measurement->slower_than_threads(); fewer > 0) {
    notes.push_back(absl::StrCat("slower than on ", fewer, fewer == 1 ? " thread" : " threads"));
  }
  return absl::StrJoin(notes, "; ");
}

// "Runtime outside the kernels at batch 1: fp32 0.01 %, int8 0.03 % on 1 thread; fp32 0.01 %, int8 0.25 % on 2 threads"
std::string OverheadLine(const std::vector<Row>& rows) {
  std::map<int, std::vector<std::string>> by_threads;
  for (const Row& row : rows) {
    const auto& m = *row.measurement;
    if (m.batch() != rows[0].measurement->batch() || !m.has_runtime_overhead_percent()) continue;
    by_threads[m.threads()].push_back(absl::StrFormat("%s %.2f %%", row.variant->name(), m.runtime_overhead_percent()));
  }
  if (by_threads.empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [threads, percent] : by_threads) {
    parts.push_back(absl::StrCat(absl::StrJoin(percent, ", "), " on ", threads, threads == 1 ? " thread" : " threads"));
  }
  return Escaped(absl::StrCat("Runtime outside the kernels at batch ", rows[0].measurement->batch(), ": ",
                              absl::StrJoin(parts, "; "))) +
         "\n";
}

}  // namespace

std::string Latency(const Results& results, const Options&) {
  const std::vector<Row> rows = MeasurementRows(results);
  const auto any = [&](auto has) { return std::any_of(rows.begin(), rows.end(), has); };
  const bool cold = any([](const Row& row) { return row.measurement->has_cold_ms(); });
  const bool on_device = any([](const Row& row) { return row.measurement->has_device_ms(); });
  const bool notes = any([](const Row& row) { return !NoteText(row).empty(); });
  const std::string per_second = Unit(results) + "s/s";
  std::vector<Column> columns = {
      {"batch"}, {"threads"}, {"variant", Align::kLeft}, {"runs"}, {"min"}, {"median"}, {"mean"}, {"p90"}, {"p99"}};
  if (cold) columns.push_back({"cold"});
  columns.push_back({per_second});
  if (on_device) {
    columns.push_back({"device median"});
    columns.push_back({absl::StrCat("device ", per_second)});
  }
  columns.push_back({"memory"});
  columns.push_back({"speedup"});
  if (notes) columns.push_back({"note", Align::kLeft});
  Table table("Latency in ms", columns);
  for (const Row& row : rows) {
    const auto& m = *row.measurement;
    const auto& latency = m.latency_ms();
    std::vector<std::string> cells = {
        absl::StrCat(m.batch()),       absl::StrCat(m.threads()),   row.variant->name(),
        absl::StrCat(m.repetitions()), Milliseconds(latency.min()), Milliseconds(latency.median()),
        Milliseconds(latency.mean()),  Milliseconds(latency.p90()), Milliseconds(latency.p99())};
    if (cold) cells.push_back(Milliseconds(FUSELAGE_OPTIONAL(m, cold_ms)));
    cells.push_back(Number(m.images_per_second(), 1));
    if (on_device) {
      cells.push_back(m.has_device_ms() ? Milliseconds(m.device_ms().median()) : "-");
      cells.push_back(Number(FUSELAGE_OPTIONAL(m, device_images_per_second), 1));
    }
    cells.push_back(Megabytes(m.peak_memory_bytes()));
    cells.push_back(SpeedupText(m));
    if (notes) cells.push_back(NoteText(row));
    table.AddRow(std::move(cells));
  }
  if (table.empty()) return "";
  return absl::StrCat(table.ToString(),
                      on_device ? "device: by the GPU's events, without the copies from and to the host\n" : "",
                      OverheadLine(rows));
}

}  // namespace fuselage::report::sections
