// The network in FP16: what a float graph is compared with where a device has half-precision kernels.
#ifndef FUSELAGE_RUNTIME_HALF_PRECISION_H_
#define FUSELAGE_RUNTIME_HALF_PRECISION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"

namespace fuselage::runtime {

// The same graph with each f32 value and parameter as f16, but for its inputs and outputs, which are cast:
//   x -> conv(x; w)   =>   x -> to(x, f16) -> conv'(x; w as f16) -> to(f32)
// Parameters are rounded half to even: from 65520 on, to infinity, which `warnings`, where not null, says of each
// parameter. It is no error, for a mask of -1e9 means just that. Nodes keep their names and sources. Unimplemented: a
// graph with quantized values.
absl::StatusOr<std::unique_ptr<ir::Graph>> HalfPrecision(const ir::Graph& graph,
                                                         std::vector<std::string>* warnings = nullptr);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_HALF_PRECISION_H_
