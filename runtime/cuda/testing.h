// For tests of executables on a device, fake or not.
#ifndef FUSELAGE_RUNTIME_CUDA_TESTING_H_
#define FUSELAGE_RUNTIME_CUDA_TESTING_H_

#include <cstdint>

#include "ir/graph.h"
#include "runtime/executable.h"
#include "runtime/testing.h"

namespace fuselage::runtime::cuda {

// A residual block between quantize and linear, of 9 calls; outputs in f32, as codes of rank 4, and dequantized.
const ir::Graph& ResidualNetwork(GraphBuilder& g, int64_t channels = 8);

// Byte for byte, on seeded inputs.
void ExpectMatchesInterpreter(const ir::Graph& graph, Executable& executable, uint64_t seed);

}  // namespace fuselage::runtime::cuda

#endif  // FUSELAGE_RUNTIME_CUDA_TESTING_H_
