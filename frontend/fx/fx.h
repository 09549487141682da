// Reads a torch.fx graph, as tools/export_fx.py writes it: "<stem>.ir" holds the nodes, "<stem>.safetensors" beside it
// the parameters that the text has as data(fingerprint).
//
// Both files are untrusted. Every error names the file, and the tensor or the place in the text:
//   InvalidArgument  the text breaks a rule of ir/text.h; the header, a range or a type of a tensor is wrong; or a
//                    tensor is not the one that the text was written with;
//   Unimplemented    the text names an element type that is not supported;
//   ResourceExhausted  more than ImportOptions::max_memory_bytes, or kMostImportedNodes;
//   NotFound, PermissionDenied  a file cannot be opened.
#ifndef FUSELAGE_FRONTEND_FX_FX_H_
#define FUSELAGE_FRONTEND_FX_FX_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ir/base/budget.h"
#include "ir/graph.h"
#include "ir/op.h"

namespace fuselage::fx {

// `path` ends in ".ir"; `ops` must outlive the graph. The parameters' file is mapped, and needed only by a text that
// has data(...). Each tensor is copied once, into memory of its own; other tensors of the file are not looked at.
absl::StatusOr<std::unique_ptr<ir::Graph>> Load(const std::string& path, const ir::OpRegistry& ops,
                                                const ImportOptions& options = {});

}  // namespace fuselage::fx

#endif  // FUSELAGE_FRONTEND_FX_FX_H_
