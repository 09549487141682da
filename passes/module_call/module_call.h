// A call of a module that takes the place of other nodes, or asks for another variant: op and kernel are asked first,
// then the graph is rewritten.
#ifndef FUSELAGE_PASSES_MODULE_CALL_MODULE_CALL_H_
#define FUSELAGE_PASSES_MODULE_CALL_MODULE_CALL_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "kernels/core/registry.h"

namespace fuselage::module_call {

// A call that is yet to be made.
struct Call {
  std::string op;
  AttributeMap attributes;                        // With defaults.
  std::map<std::string, std::string> parameters;  // As ir::Module has them.
  std::vector<ir::Node*> operands;
};

struct Accepted {
  ir::Type type;        // Of the call's result.
  std::string variant;  // Of the kernel that would run it.
};

// Or why op or kernel refuses. Packs no weights where the kernel's entry can answer without.
absl::StatusOr<Accepted> Ask(const Call& call, const ir::Graph& graph, const kernels::KernelRegistry& kernels);

// The variants that may run a call of a module, its own first (kernels::KernelEntry::variants). None where there is no
// choice.
std::vector<std::string> VariantsOf(const ir::Node& node, const kernels::KernelRegistry& kernels);

// Puts `call` in the place of `chain`, whose nodes stand in their order and are read by each other alone but for the
// last. It takes the last one's name, place and readers and the sources of all; its module's path is `path`, with a
// suffix where that is still taken once the chain is gone.
absl::StatusOr<ir::Node*> Replace(const std::vector<ir::Node*>& chain, std::string path, Call call, ir::Graph& graph);

// The steps of Replace, for a call that has several results.
// Takes the uses of `value` from it, so that it can be erased and give its name away. They lack a value until Attach.
std::vector<ir::Use> Detach(const ir::Node& value);
void Attach(const std::vector<ir::Use>& uses, ir::Node* value);
// Erases a node without uses, and its module where no other node calls that.
void EraseWithModule(ir::Node* node, ir::Graph& graph);

}  // namespace fuselage::module_call

#endif  // FUSELAGE_PASSES_MODULE_CALL_MODULE_CALL_H_
