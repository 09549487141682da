#include "harness/report/tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/report/table.h"

namespace fuselage::report {
namespace {

constexpr int kNameWidth = 32;

// Protobuf's presence as std::optional.
#define FUSELAGE_OPTIONAL(message, field) \
  ((message).has_##field() ? std::optional<double>((message).field()) : std::nullopt)

std::string Percent(const std::optional<double>& value) {
  return value.has_value() ? absl::StrFormat("%.2f %%", *value) : "-";
}

std::string ErrorText(const std::optional<double>& value) {
  if (!value.has_value()) return "-";
  return *value == 0 ? "0" : absl::StrFormat("%.2g", *value);
}

std::string Times(const std::optional<double>& value) {
  return value.has_value() ? absl::StrFormat("%.2fx", *value) : "-";
}

// Three digits where a run takes microseconds.
std::string Milliseconds(double ms) { return Number(ms, ms < 0.1 ? 4 : ms < 1 ? 3 : 2); }

std::string Milliseconds(const std::optional<double>& ms) { return ms.has_value() ? Milliseconds(*ms) : "-"; }

// A gate's number: 91.8, or 1e-05.
std::string Bound(const std::optional<double>& value) {
  if (!value.has_value()) return "-";
  return std::abs(*value) < 0.01 ? absl::StrFormat("%.2g", *value) : Number(*value, 2);
}

std::string MegabytesMoved(const std::optional<double>& bytes) {
  return bytes.has_value() ? Number(*bytes / 1e6, *bytes < 1e6 ? 4 : 2) : "-";
}

std::string RunsOn(const Results::Variant& variant) {
  return variant.not_run().empty() ? absl::StrCat(variant.backend(), " ", variant.isa()) : "not run";
}

bool HasImages(const Results& results) { return !results.dataset().name().empty(); }

bool HasAccuracy(const Results& results) { return HasImages(results) && !results.dataset().unlabelled(); }

// Variants, then peers: they share every column.
std::vector<const Results::Variant*> All(const Results& results) {
  std::vector<const Results::Variant*> all;
  for (const auto& variant : results.variants()) all.push_back(&variant);
  for (const auto& peer : results.peers()) all.push_back(&peer);
  return all;
}

std::string Join(const std::vector<std::string>& tables) {
  std::string out;
  for (const std::string& table : tables) {
    if (!table.empty()) absl::StrAppend(&out, "\n", table);
  }
  return out;
}

}  // namespace

std::string PassesTable(const Results& results) {
  Table table("Passes",
              {{"pass", Align::kLeft}, {"before"}, {"after"}, {"matches"}, {"ms"}, {"max error"}, {"SNR dB"}});
  for (const auto& pass : results.passes()) {
    table.AddRow({pass.name(), absl::StrCat(pass.nodes_before()), absl::StrCat(pass.nodes_after()),
                  absl::StrCat(pass.matches()), Number(pass.wall_ms(), 1),
                  ErrorText(FUSELAGE_OPTIONAL(pass, max_abs_error)), Number(FUSELAGE_OPTIONAL(pass, snr_db), 1)});
  }
  return table.empty() ? "" : table.ToString();
}

std::string AccuracyTable(const Results& results) {
  if (!HasAccuracy(results)) {
    Table table("Variants",
                {{"variant", Align::kLeft}, {"runs on", Align::kLeft}, {"max difference"}, {"SNR dB"}, {"weights"}});
    for (const auto* variant : All(results)) {
      table.AddRow({variant->name(), RunsOn(*variant), ErrorText(FUSELAGE_OPTIONAL(*variant, max_abs_error)),
                    Number(FUSELAGE_OPTIONAL(*variant, snr_db), 1), Megabytes(variant->weight_bytes())});
    }
    return table.empty() ? "" : table.ToString();
  }
  Table table("Variants", {{"variant", Align::kLeft},
                           {"runs on", Align::kLeft},
                           {"images"},
                           {"top-1"},
                           {"top-5"},
                           {"agreement"},
                           {"weights"}});
  for (const auto* variant : All(results)) {
    table.AddRow({variant->name(), RunsOn(*variant), absl::StrCat(variant->images()),
                  Percent(FUSELAGE_OPTIONAL(*variant, top1)), Percent(FUSELAGE_OPTIONAL(*variant, top5)),
                  Percent(FUSELAGE_OPTIONAL(*variant, agreement_with_fp32)), Megabytes(variant->weight_bytes())});
  }
  return table.empty() ? "" : table.ToString();
}

namespace {

struct Row {
  const Results::Variant* variant;
  const Results::Measurement* measurement;
};

// By batch, then threads, then variant.
std::vector<Row> MeasurementRows(const Results& results) {
  std::vector<Row> rows;
  for (const auto* variant : All(results)) {
    for (const auto& measurement : variant->measurements()) rows.push_back({variant, &measurement});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    const auto key = [](const Row& row) {
      return std::make_pair(row.measurement->batch(), row.measurement->threads());
    };
    return key(a) < key(b);
  });
  return rows;
}

}  // namespace

namespace {

// "1.52x", or "12.00x over cpu" of a variant on another device.
std::string SpeedupText(const Results::Measurement& measurement) {
  const std::string text = Times(FUSELAGE_OPTIONAL(measurement, speedup));
  return measurement.baseline_backend().empty() ? text : absl::StrCat(text, " over ", measurement.baseline_backend());
}

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

std::string LatencyTable(const Results& results) {
  const std::vector<Row> rows = MeasurementRows(results);
  const auto any = [&](auto has) { return std::any_of(rows.begin(), rows.end(), has); };
  const bool cold = any([](const Row& row) { return row.measurement->has_cold_ms(); });
  const bool on_device = any([](const Row& row) { return row.measurement->has_device_ms(); });
  const bool notes = any([](const Row& row) { return !NoteText(row).empty(); });
  const std::string per_second = HasImages(results) ? "images/s" : "samples/s";
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

std::string RooflineTable(const Results& results) {
  const std::vector<Row> rows = MeasurementRows(results);
  if (rows.empty()) return "";
  int threads = rows[0].measurement->threads();
  for (const Row& row : rows) threads = std::min(threads, row.measurement->threads());
  const bool measured =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.measurement->has_measured_bytes(); });
  std::vector<Column> columns = {{"batch"}, {"variant", Align::kLeft}, {"MB counted"}};
  if (measured) columns.push_back({"MB measured"});
  for (const char* title : {"ms predicted", "ms measured", "gain predicted", "gain measured"}) {
    columns.push_back({title});
  }
  Table table(absl::StrCat("Bytes moved a run, and the roofline's prediction; threads: ", threads), columns);
  for (const Row& row : rows) {
    const auto& m = *row.measurement;
    if (m.threads() != threads || m.counted_bytes() == 0) continue;
    std::vector<std::string> cells = {absl::StrCat(m.batch()), row.variant->name(),
                                      MegabytesMoved(static_cast<double>(m.counted_bytes()))};
    if (measured) cells.push_back(MegabytesMoved(FUSELAGE_OPTIONAL(m, measured_bytes)));
    cells.push_back(Milliseconds(FUSELAGE_OPTIONAL(m, predicted_ms)));
    cells.push_back(Milliseconds(m.latency_ms().median()));
    cells.push_back(Times(FUSELAGE_OPTIONAL(m, predicted_speedup)));
    cells.push_back(SpeedupText(m));
    table.AddRow(std::move(cells));
  }
  if (table.empty()) return "";
  const std::string& counter = results.environment().memory_counter();
  return table.ToString() + (counter.empty() ? "" : absl::StrCat("MB measured: ", Escaped(counter), "\n"));
}

std::string LayersTable(const Results& results, int count) {
  const Results::Variant* variant = nullptr;
  for (const auto& candidate : results.variants()) {
    if (candidate.layers_size() > 0) variant = &candidate;
  }
  if (variant == nullptr || count <= 0) return "";
  std::vector<const Results::Layer*> layers;
  double total = 0;
  for (const auto& layer : variant->layers()) {
    layers.push_back(&layer);
    total += layer.ms();
  }
  std::stable_sort(layers.begin(), layers.end(), [](const auto* a, const auto* b) { return a->ms() > b->ms(); });
  layers.resize(std::min<size_t>(layers.size(), count));
  Table table(absl::StrCat("Slowest layers of ", Escaped(variant->name())), {{"layer", Align::kLeft},
                                                                             {"op", Align::kLeft},
                                                                             {"kernel", Align::kLeft},
                                                                             {"ms"},
                                                                             {"share"},
                                                                             {"ops/byte"},
                                                                             {"GMAC/s"},
                                                                             {"SNR dB"}});
  for (const auto* layer : layers) {
    table.AddRow({layer->name().empty() ? "-" : Shortened(layer->name(), kNameWidth), layer->op(), layer->variant(),
                  Number(layer->ms(), 3), absl::StrFormat("%.1f %%", total > 0 ? 100 * layer->ms() / total : 0),
                  Number(FUSELAGE_OPTIONAL(*layer, operations_per_byte), 1),
                  layer->macs() > 0 && layer->ms() > 0 ? Number(layer->macs() / layer->ms() / 1e6, 1) : "-",
                  Number(FUSELAGE_OPTIONAL(*layer, snr_db), 1)});
  }
  return table.ToString();
}

std::string GatesTable(const Results& results) {
  Table table("Gates", {{"gate", Align::kLeft},
                        {"of", Align::kLeft},
                        {"wanted"},
                        {"found"},
                        {"result", Align::kLeft},
                        {"reason", Align::kLeft}});
  for (const auto& gate : results.gates()) {
    const char* result = !gate.judged() ? "not judged" : gate.passed() ? "ok" : "FAILED";
    table.AddRow({gate.name(), gate.pass().empty() ? gate.variant() : absl::StrCat("pass ", gate.pass()),
                  Bound(gate.wanted()), Bound(FUSELAGE_OPTIONAL(gate, found)), result, gate.reason()});
  }
  return table.empty() ? "" : table.ToString();
}

std::string WarningLines(const Results& results) {
  std::string out;
  for (const std::string& warning : results.warnings()) absl::StrAppend(&out, "warning: ", Escaped(warning), "\n");
  return out;
}

namespace {

// "Peaks of one thread: 95 GFLOP/s FP32, 310 GOP/s INT8, 11.2 GB/s, 0.9 us a call"
std::string PeaksLine(const Results::Peaks& peaks) {
  return absl::StrFormat("Peaks of one thread: %.0f GFLOP/s FP32, %.0f GOP/s INT8, %.1f GB/s, %.2f us a call\n",
                         peaks.f32_flops_per_second() / 1e9, peaks.int8_ops_per_second() / 1e9,
                         peaks.bytes_per_second() / 1e9, peaks.seconds_per_call() * 1e6);
}

}  // namespace

std::string Report(const Results& results, int slowest_layers) {
  const auto& environment = results.environment();
  std::string out;
  if (results.status() != "complete") absl::StrAppend(&out, "\nINCOMPLETE: ", Escaped(results.error()), "\n");
  absl::StrAppend(&out, "\n");
  if (!results.title().empty()) absl::StrAppend(&out, Escaped(results.title()), "\n");
  absl::StrAppend(&out, Escaped(results.config()), " on ", Escaped(environment.cpu()), ", ", environment.cores(),
                  " cores, ", environment.isa(), "\n");
  if (!environment.gpu_arch().empty()) {
    absl::StrAppend(&out, Escaped(environment.gpu()), ", ", environment.gpu_arch(), ", driver for CUDA ",
                    environment.cuda_driver(), "\n");
  }
  if (environment.has_peaks()) absl::StrAppend(&out, PeaksLine(environment.peaks()));
  if (HasImages(results)) {
    absl::StrAppend(&out, "Images of ", Escaped(results.dataset().name()), " (", results.dataset().split(), ")");
    if (results.calibration().images() > 0) {
      absl::StrAppend(&out, ", calibrated on ", results.calibration().images(), " (", results.calibration().split(),
                      ")");
    }
    absl::StrAppend(&out, HasAccuracy(results) ? "\n" : "; no labels: accuracy not measured\n");
  } else if (results.variants_size() > 0) {
    absl::StrAppend(&out, results.inputs().empty() ? "Random inputs" : "Inputs of " + Escaped(results.inputs()),
                    "; no dataset: accuracy not measured\n");
  }
  // `explain` measures no variant.
  return out +
         Join({GraphTables(results), PassesTable(results), ExplanationTables(results),
               results.has_explanation() ? "" : AccuracyTable(results), LatencyTable(results), RooflineTable(results),
               LayersTable(results, slowest_layers), GatesTable(results), WarningLines(results)});
}

}  // namespace fuselage::report
