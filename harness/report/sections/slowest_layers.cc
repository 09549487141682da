#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/cells.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {
namespace {

constexpr int kNameWidth = 32;

}  // namespace

// Those of the last variant that has any.
std::string SlowestLayers(const Results& results, const Options& options) {
  const Results::Variant* variant = nullptr;
  for (const auto& candidate : results.variants()) {
    if (candidate.layers_size() > 0) variant = &candidate;
  }
  if (variant == nullptr || options.slowest_layers <= 0) return "";
  std::vector<const Results::Layer*> layers;
  double total = 0;
  for (const auto& layer : variant->layers()) {
    layers.push_back(&layer);
    total += layer.ms();
  }
  std::stable_sort(layers.begin(), layers.end(), [](const auto* a, const auto* b) { return a->ms() > b->ms(); });
  layers.resize(std::min<size_t>(layers.size(), options.slowest_layers));
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

}  // namespace fuselage::report::sections
