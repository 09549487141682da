// Which of the ops that could be quantized are faster in FP32, and which with weights of seven bits.
//
// An op in INT8 among ops in FP32 pays for conversions, and so does one in FP32 among ops in INT8: the choice is one
// for the whole graph. Both graphs are timed in turns, call by call; the division of the ops with the least time, what
// crosses it included, is a minimum cut; and what it promises is timed in turns with the two. The fastest of them is
// chosen. A third graph has all weights in seven bits: codes are the same, so that is a choice for each layer, which is
// timed without the cut, too: between ops in INT8 one in FP32 may take longer than it did among others in FP32.
#ifndef FUSELAGE_PASSES_QUANTIZE_PRECISION_H_
#define FUSELAGE_PASSES_QUANTIZE_PRECISION_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/core/pass.h"
#include "passes/core/remarks.h"
#include "passes/quantize/select.h"

namespace fuselage::quantize {

// What of a selection is not in INT8 with weights of eight bits.
struct Precisions {
  KeptInFloat kept;
  SevenBits seven_bits;
};

// The graph with all that `selection` selects in these precisions. With all of it kept it is that in FP32, whose form
// may be another: some ops have one for INT8.
using MakeQuantized = std::function<absl::StatusOr<std::unique_ptr<ir::Graph>>(const Precisions& precisions)>;

// What makes the graph fast; weights have seven bits only where these `may_be_seven_bits`. Remarks say what was timed.
absl::StatusOr<Precisions> FastestPrecisions(const ir::Graph& graph, const Selection& selection, bool may_be_seven_bits,
                                             const MakeQuantized& make_quantized, passes::Profiler& profiler,
                                             passes::Remarks& remarks);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_PRECISION_H_
