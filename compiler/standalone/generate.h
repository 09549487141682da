// Generate: a compiled network as C++ that runs it without graph, protobuf or file: tables of its steps, which
// network.h reads, its weights in read-only memory, and a header with its inputs and outputs as typed arrays.
#ifndef FUSELAGE_COMPILER_STANDALONE_GENERATE_H_
#define FUSELAGE_COMPILER_STANDALONE_GENERATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "kernels/core/isa.h"

namespace fuselage::standalone {

struct GenerateOptions {
  std::string name;          // The namespace: a C++ identifier.
  std::string header_path;   // As the source includes it.
  std::string weights_path;  // As the assembler finds it.
  int64_t batch = 1;
  // The sources name kernels for these alone, which this CPU must run, and hold weights packed for each. None: kernels
  // for all, and Init packs.
  std::vector<kernels::Isa> isas;
};

struct Sources {
  std::string header, source, weights;
};

// The sources run on any machine: kernels are made for what it has of the instruction sets, scalar ones where it has
// none of them. Unimplemented lists the nodes without a kernel of our own: those that oneDNN or an op's reference
// evaluation would run.
absl::StatusOr<Sources> Generate(const Model& model, const GenerateOptions& options);

}  // namespace fuselage::standalone

#endif  // FUSELAGE_COMPILER_STANDALONE_GENERATE_H_
