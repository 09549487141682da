// A network whose inputs have no dimension for the batch, as one for single samples.
#ifndef FUSELAGE_COMPILER_SAMPLE_DIMENSION_H_
#define FUSELAGE_COMPILER_SAMPLE_DIMENSION_H_

#include "absl/status/status.h"
#include "ir/graph.h"

namespace fuselage::compiler {

// Puts a dimension of 1 in front of each input and output that does not begin with one: the state f32[2,1,128] of an
// LSTM becomes f32[1,2,1,128], the same bytes. So every input counts samples in dimension 0, of which a run takes one.
absl::Status AddSampleDimension(ir::Graph* graph);

}  // namespace fuselage::compiler

#endif  // FUSELAGE_COMPILER_SAMPLE_DIMENSION_H_
