// The network in FP16, what a float graph is compared with where a device has half-precision kernels; and a network of
// FP16 in FP32.
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

// The same graph with each f16 value and parameter as f32, but for its inputs and outputs, which are cast. Values
// between are not rounded to f16, so results are nearer to exact arithmetic than the file's own, and what overflowed
// may not: so computes every runtime without FP16 kernels, such as onnxruntime on a CPU.
absl::StatusOr<std::unique_ptr<ir::Graph>> SinglePrecision(const ir::Graph& graph);

// How many calls other than casts take or give f16.
int CountHalfCalls(const ir::Graph& graph);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_HALF_PRECISION_H_
