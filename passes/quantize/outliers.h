// Outlier features. In trained transformers a few features of a token are tens of times larger than all others, most of
// all in the sums around the second linear of a block (Bondarenko et al., "Understanding and Overcoming the Challenges
// of Efficient Transformer Quantization", EMNLP 2021). One scale for all features then leaves most of them a few codes.
#ifndef FUSELAGE_PASSES_QUANTIZE_OUTLIERS_H_
#define FUSELAGE_PASSES_QUANTIZE_OUTLIERS_H_

#include <optional>
#include <string>
#include <vector>

#include "ir/base/hash_map.h"
#include "ir/graph.h"
#include "passes/quantize/quantize.pb.h"
#include "passes/quantize/scales.h"
#include "passes/quantize/select.h"

namespace fuselage::quantize {

// Ranges by name of the value.
using Ranges = HashMap<std::string, Range>;

// The range of a group's sources together; nothing where one of them has none.
std::optional<Range> RangeOf(const std::vector<ir::Node*>& sources, const Ranges& ranges);

// Values of tokens, [..., tokens, features], that `selection` makes codes of: what linears read; and operands and
// results of ops without products, element by element, whose operands linears make or whose results they read. In the
// graph's order.
std::vector<const ir::Node*> TokensOf(const QuantizeOptions& options, const ir::Graph& graph,
                                      const Selection& selection);

struct Outliers {
  KeptInFloat kept;                    // Ops element by element.
  std::vector<std::string> per_token;  // Linears, by name.
};

// What the options' least_feature_codes says of `selection`, by the ranges of its groups' sources and those of the
// median features of TokensOf.
Outliers FindOutliers(const QuantizeOptions& options, const Selection& selection, const Ranges& ranges,
                      const Ranges& median_features);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_OUTLIERS_H_
