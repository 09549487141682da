// A network as a .fuse file, which is mapped and not copied: docs/artifact.md.
#ifndef FUSELAGE_COMPILER_ARTIFACT_H_
#define FUSELAGE_COMPILER_ARTIFACT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/load.h"
#include "ir/base/budget.h"
#include "kernels/core/isa.h"
#include "kernels/core/registry.h"

namespace fuselage::compiler {

// The version of the format that is written. A reader takes it and all before it.
inline constexpr uint32_t kArtifactVersion = 1;
// Raised with every change of what a kernel packs under one layout: artifact_test says when. Weights that were packed
// by another version are packed again.
inline constexpr int kPackingVersion = 1;

// By its first bytes.
bool IsArtifact(const std::string& path);

// `network`, and its weights packed for each of `isas`, which this CPU must run. An old file stays whole, and mapped by
// whoever has mapped it, until the new one takes its place. InvalidArgument: an instruction set that this CPU has not,
// or what MakeProgram says; Unavailable: the file cannot be written.
absl::Status WriteArtifact(const LoadedGraph& network, const kernels::KernelRegistry& kernels,
                           absl::Span<const kernels::Isa> isas, const std::string& path);

// The file may be anything. Errors begin with the path and name what was found and what was wanted: InvalidArgument:
// damaged, or no such file was ever written; Unimplemented: of a newer version, or with operators that `ops` lacks;
// ResourceExhausted: more than the options allow. All tensors are verified but packed ones: these when they are first
// used (StoredWeights::status). Why weights will be packed again is a warning of the network's, in place of
// `options.warnings`.
absl::StatusOr<LoadedGraph> ReadArtifact(const std::string& path, const ir::OpRegistry& ops,
                                         const ImportOptions& options = {});

// The same of a file's bytes, 64-byte aligned, which live as long as `owner`. Errors begin with `name`.
absl::StatusOr<LoadedGraph> ReadArtifact(absl::string_view bytes, std::shared_ptr<const void> owner,
                                         const std::string& name, const ir::OpRegistry& ops,
                                         const ImportOptions& options = {});

}  // namespace fuselage::compiler

#endif  // FUSELAGE_COMPILER_ARTIFACT_H_
