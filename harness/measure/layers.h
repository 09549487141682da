// Layers: what each step of an executable costs, and how far each quantized layer is from FP32.
#ifndef FUSELAGE_HARNESS_MEASURE_LAYERS_H_
#define FUSELAGE_HARNESS_MEASURE_LAYERS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/measure/engine.h"
#include "harness/results.pb.h"
#include "ir/graph.h"
#include "kernels/core/registry.h"

namespace fuselage::harness {

// SNR in dB of each quantized layer of `quantized` (an int8.* call other than quantize and dequantize) against the node
// of `baseline` with the same name, or with the name of its last source: both graphs run `input` with every such node
// as an output. A layer without a counterpart of its shape is left out.
absl::StatusOr<std::map<std::string, double>> LayerSnrs(const ir::Graph& baseline, const ir::Graph& quantized,
                                                        const Tensor& input, const kernels::KernelRegistry& kernels,
                                                        runtime::ThreadPool* pool, const EngineOptions& options);

// Runs with the profile on: every step of the schedule with its median time.
absl::StatusOr<std::vector<Results::Layer>> ProfileLayers(runtime::Executable& executable, const Tensor& input,
                                                          int runs);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_LAYERS_H_
