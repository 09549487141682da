#include "harness/report/tables.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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
  Table table("Variants", {{"variant", Align::kLeft},
                           {"runs on", Align::kLeft},
                           {"images"},
                           {"top-1"},
                           {"top-5"},
                           {"agreement"},
                           {"weights"}});
  for (const auto* variant : All(results)) {
    table.AddRow({variant->name(), absl::StrCat(variant->backend(), " ", variant->isa()),
                  absl::StrCat(variant->images()), Percent(FUSELAGE_OPTIONAL(*variant, top1)),
                  Percent(FUSELAGE_OPTIONAL(*variant, top5)), Percent(FUSELAGE_OPTIONAL(*variant, agreement_with_fp32)),
                  Megabytes(variant->weight_bytes())});
  }
  return table.empty() ? "" : table.ToString();
}

std::string LatencyTable(const Results& results) {
  Table table("Latency in ms", {{"batch"},
                                {"threads"},
                                {"variant", Align::kLeft},
                                {"runs"},
                                {"min"},
                                {"median"},
                                {"mean"},
                                {"p90"},
                                {"p99"},
                                {"images/s"},
                                {"memory"},
                                {"speedup"}});
  struct Row {
    const Results::Variant* variant;
    const Results::Measurement* measurement;
  };
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
  for (const Row& row : rows) {
    const auto& m = *row.measurement;
    const auto& latency = m.latency_ms();
    table.AddRow({absl::StrCat(m.batch()), absl::StrCat(m.threads()), row.variant->name(),
                  absl::StrCat(m.repetitions()), Number(latency.min(), 2), Number(latency.median(), 2),
                  Number(latency.mean(), 2), Number(latency.p90(), 2), Number(latency.p99(), 2),
                  Number(m.images_per_second(), 1), Megabytes(m.peak_memory_bytes()),
                  Times(FUSELAGE_OPTIONAL(m, speedup))});
  }
  return table.empty() ? "" : table.ToString();
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
                                                                             {"GMAC/s"},
                                                                             {"SNR dB"}});
  for (const auto* layer : layers) {
    table.AddRow({layer->name().empty() ? "-" : Shortened(layer->name(), kNameWidth), layer->op(), layer->variant(),
                  Number(layer->ms(), 3), absl::StrFormat("%.1f %%", total > 0 ? 100 * layer->ms() / total : 0),
                  layer->macs() > 0 && layer->ms() > 0 ? Number(layer->macs() / layer->ms() / 1e6, 1) : "-",
                  Number(FUSELAGE_OPTIONAL(*layer, snr_db), 1)});
  }
  return table.ToString();
}

std::string GatesTable(const Results& results) {
  Table table("Gates",
              {{"gate", Align::kLeft}, {"variant", Align::kLeft}, {"wanted"}, {"found"}, {"result", Align::kLeft}});
  for (const auto& gate : results.gates()) {
    table.AddRow({gate.name(), gate.variant(), Number(gate.wanted(), 2), Number(FUSELAGE_OPTIONAL(gate, found), 2),
                  gate.passed() ? "ok" : "FAILED"});
  }
  return table.empty() ? "" : table.ToString();
}

std::string WarningLines(const Results& results) {
  std::string out;
  for (const std::string& warning : results.warnings()) absl::StrAppend(&out, "warning: ", Escaped(warning), "\n");
  return out;
}

std::string Report(const Results& results, int slowest_layers) {
  const auto& environment = results.environment();
  std::string out;
  if (results.status() != "complete") absl::StrAppend(&out, "\nINCOMPLETE: ", Escaped(results.error()), "\n");
  absl::StrAppend(&out, "\n", Escaped(results.config()), " on ", Escaped(environment.cpu()), ", ", environment.cores(),
                  " cores, ", environment.isa(), "\n");
  if (!results.dataset().name().empty()) {
    absl::StrAppend(&out, "Images of ", Escaped(results.dataset().name()), " (", results.dataset().split(), ")");
    if (results.calibration().images() > 0) {
      absl::StrAppend(&out, ", calibrated on ", results.calibration().images(), " (", results.calibration().split(),
                      ")");
    }
    absl::StrAppend(&out, "\n");
  }
  return out + Join({PassesTable(results), AccuracyTable(results), LatencyTable(results),
                     LayersTable(results, slowest_layers), GatesTable(results), WarningLines(results)});
}

}  // namespace fuselage::report
