// Where each op of a graph runs, and what its crossings between INT8 and float cost.
#ifndef FUSELAGE_HARNESS_EXPLAIN_EXPLAIN_H_
#define FUSELAGE_HARNESS_EXPLAIN_EXPLAIN_H_

#include "absl/types/span.h"
#include "harness/results.pb.h"
#include "ir/graph.h"
#include "runtime/executable.h"

namespace fuselage::harness {

// `steps` is the profile of an executable of `graph`; `passes` are those that made it, whose missed remarks say why an
// op stayed outside INT8. Rows are in the order of the schedule.
Results::Explanation Explain(const ir::Graph& graph, absl::Span<const runtime::StepProfile> steps,
                             const google::protobuf::RepeatedPtrField<Results::Pass>& passes);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_EXPLAIN_EXPLAIN_H_
