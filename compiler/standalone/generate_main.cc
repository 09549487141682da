// Writes the sources of a network that stands alone; fuselage_model.bzl runs it.
//   generate MODEL NAMESPACE BATCH HEADER_NAME HEADER SOURCE WEIGHTS [ISA...]
#include <fstream>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "compiler/compiler.h"
#include "compiler/standalone/generate.h"
#include "ir/base/status.h"

namespace fuselage::standalone {
namespace {

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (file.write(text.data(), static_cast<std::streamsize>(text.size())).flush()) return absl::OkStatus();
  return absl::UnavailableError(path + ": cannot be written");
}

absl::Status Main(int argc, char** argv) {
  GenerateOptions options;
  if (argc < 8 || !absl::SimpleAtoi(argv[3], &options.batch)) {
    return absl::InvalidArgumentError(
        "usage: generate MODEL NAMESPACE BATCH HEADER_NAME HEADER SOURCE WEIGHTS [ISA...]");
  }
  options.name = argv[2];
  options.header_path = argv[4];
  options.weights_path = argv[7];
  for (int i = 8; i < argc; ++i) {
    ASSIGN_OR_RETURN(const kernels::Isa isa, kernels::IsaFromName(argv[i]));
    options.isas.push_back(isa);
  }
  ASSIGN_OR_RETURN(const Model model, Load(argv[1]));
  absl::StatusOr<Sources> sources = Generate(model, options);
  if (!sources.ok()) return Annotate(sources.status(), argv[1]);
  RETURN_IF_ERROR(WriteFile(argv[5], sources->header));
  RETURN_IF_ERROR(WriteFile(argv[6], sources->source));
  return WriteFile(argv[7], sources->weights);
}

}  // namespace
}  // namespace fuselage::standalone

int main(int argc, char** argv) {
  const absl::Status status = fuselage::standalone::Main(argc, argv);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
