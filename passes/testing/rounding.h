// What NumericContract::kQuantizes means of a graph, checked without a bound that somebody chose.
#ifndef FUSELAGE_PASSES_TESTING_ROUNDING_H_
#define FUSELAGE_PASSES_TESTING_ROUNDING_H_

#include "absl/status/status.h"
#include "ir/graph.h"
#include "passes/core/pass.h"
#include "passes/quantize/quantize.pb.h"

namespace fuselage::testing {

// Options of the pass with which CheckRounding must hold. Other observers, the default too, let extremes saturate.
inline QuantizeOptions ByTheExtremes() {
  QuantizeOptions options;
  options.mutable_observer()->mutable_min_max();
  return options;
}

// A pass turned `before`, a float graph without dead nodes, into `after`, calibrated on `samples`, with affine codes by
// the samples' extremes (ByTheExtremes). Beside giving some layers a form that codes have (quantize/transposed.h) it
// rounded, and did nothing else:
//   undone, the text is what it was: every dequantize(quantize(x)) is x, every module has its old parameters;
//   x, on all samples, is within half a step of a code's value: nothing saturates; where nothing but maxima is taken of
//   x, these are, and what loses may saturate, which moves no maximum further;
//   no step is coarser than it must be: 255 of them reach from the least element of some value of `before` to the
//   largest of one, zero included;
//   a weight is within half a step of its code's value, and the largest of each channel has the largest code, of seven
//   bits or of eight;
//   or it is one that codes with such a step stand for, to the last bit or two (passes/weight_rounding);
//   a corrected bias moves no further than such errors of input and weight can move the layer's result.
// So the float graph, with an error of at most half a step added to each of these, has the outputs of `after`: how far
// they move is up to the graph. Internal says what does not hold, and where.
absl::Status CheckRounding(const ir::Graph& before, const ir::Graph& after, passes::Runner& samples);

}  // namespace fuselage::testing

#endif  // FUSELAGE_PASSES_TESTING_ROUNDING_H_
