// The IR's canonical text: Print(Parse(text)) == text.
//
//   graph @tiny {
//     param @c1.w: f32[4,3,3,3] = seed(1)
//     module @c1 = conv2d(padding=[1, 1], weight=@c1.w)
//     %x: f32[1,3,8,8] = placeholder
//     %y: f32[1,4,8,8] = call_module @c1(%x)
//     %z: f32[1,4,8,8] = call_method relu(%y)
//     output(%z)
//   }
//
// A parameter is written as a list of its values where it has at most 16, as seed(n) where it is SeededTensor(type, n),
// and otherwise as data(fingerprint), its bytes being in a .safetensors file beside the text.
// Attributes follow operands: `call_function quantize(%x, dtype=u8, scales=[0.1])`; an absent optional operand in front
// of a present one is `none`; ` from(a, b)` at the end of a line names the source nodes.
#ifndef FUSELAGE_IR_TEXT_H_
#define FUSELAGE_IR_TEXT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/base/budget.h"
#include "ir/graph.h"

namespace fuselage::ir {

std::string Print(const Graph& graph);

// One node as its line of the text, for messages.
std::string PrintNode(const Node& node);

// Does the text leave the parameter's values to the .safetensors file?
bool IsPrintedAsData(const Parameter& parameter);

// Finds the tensor of a parameter that the text has as data(...), whatever its quantization parameters, which the text
// gives; null where there is none.
using ParameterSource = std::function<std::shared_ptr<const Tensor>(absl::string_view name)>;

// Errors are InvalidArgument and begin with "<file>:<line>:<column>: ". The result is verified.
absl::StatusOr<std::unique_ptr<Graph>> Parse(absl::string_view text, const OpRegistry& ops,
                                             absl::string_view file = "<text>",
                                             const ParameterSource& source = nullptr);

// A text from outside.
struct UntrustedText {
  absl::string_view text, file;
  ParameterSource source;  // May be null.
  const ImportOptions& options;
  Budget& budget;  // Charged with the graph and its parameters, but for those that the source holds.
};

// The same, within limits. ResourceExhausted: more than the budget, or than kMostImportedNodes.
absl::StatusOr<std::unique_ptr<Graph>> ParseUntrusted(const UntrustedText& in, const OpRegistry& ops);

}  // namespace fuselage::ir

#endif  // FUSELAGE_IR_TEXT_H_
