// The IR, after torch.fx (Reed et al., "torch.fx", MLSys 2022): a list of nodes in topological order, a table of
// modules, and parameters. A Graph owns all three; Node* borrows.
#ifndef FUSELAGE_IR_GRAPH_H_
#define FUSELAGE_IR_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/base/attribute.h"
#include "ir/base/status.h"
#include "ir/op.h"
#include "ir/type.h"

namespace fuselage::ir {

enum class NodeKind { kPlaceholder, kGetAttr, kCallFunction, kCallMethod, kCallModule, kOutput };

absl::string_view NodeKindName(NodeKind kind);  // "placeholder", "get_attr", "call_function", ...

class Graph;
class Node;

struct Parameter;

// An operator with its constant arguments under a path ("layer1.0.conv1"), which several nodes may call.
struct Module {
  std::string path;
  const OpSchema* op = nullptr;
  AttributeMap attributes;
  std::map<std::string, std::string> parameters;  // Operand name ("weight") -> parameter name.
  std::vector<Parameter*> operands;  // The same by the index of the schema's operand; null where it is none.

  // The nodes that call it. A pass that changes a module must see exactly one: a shared module serves others too.
  absl::flat_hash_set<Node*> call_sites;

  mutable int64_t visit = 0;  // The last walk of the verifier that came here.
};

// A constant tensor of the graph. `uses` counts the modules and get_attr nodes that name it (tied weights have
// several).
struct Parameter {
  std::string name;
  std::shared_ptr<const Tensor> tensor;
  std::optional<uint64_t> seed;  // Printed as seed(n): the tensor is SeededTensor(type, n).
  int uses = 0;
  Type type;                 // The tensor's.
  uint64_t fingerprint = 0;  // The tensor's (ir/fingerprint.h).

  mutable int64_t visit = 0;  // The last walk of the verifier that came here, and the uses that it found.
  mutable int found_uses = 0;
};

// One operand slot of a node, a link in its value's list of uses.
struct Use {
  Node* value = nullptr;  // Null: an absent optional operand.
  Node* user = nullptr;
  int index = 0;

 private:
  friend class Node;
  friend class Graph;
  friend class Verifier;
  Use* previous = nullptr;
  Use* next = nullptr;
};

// One operand of a call as its schema has it, wherever its value comes from.
struct Argument {
  const OperandSpec* spec = nullptr;
  int index = -1;                        // Among the node's operands; -1: a parameter of its module, or absent.
  Node* value = nullptr;                 // The node's operand; null: a parameter of its module, or absent.
  const Parameter* parameter = nullptr;  // The module's, or that of the get_attr which `value` is.

  bool absent() const { return value == nullptr && parameter == nullptr; }
  // A weight or a bias that an operand of the node computes.
  bool is_computed_parameter() const { return spec->parameter && value != nullptr && parameter == nullptr; }
};

class Node {
 public:
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  NodeKind kind() const { return kind_; }
  bool is_call() const {
    return kind_ == NodeKind::kCallFunction || kind_ == NodeKind::kCallMethod || kind_ == NodeKind::kCallModule;
  }
  const std::string& name() const { return name_; }  // Without the "%".
  // The op as spelled (function, method), the module's path (module), or the parameter's name (get_attr).
  const std::string& target() const { return target_; }
  Graph& graph() const { return *graph_; }

  // The op that a call runs; null for the other kinds.
  const OpSchema* op() const { return op_; }
  bool IsOp(absl::string_view name) const { return op_ != nullptr && op_->name == name; }
  // The module that a call_module calls; null for the other kinds.
  Module* module() const { return module_; }

  const Type& type() const { return type_; }
  const TensorType& tensor_type() const { return type_.tensor(); }

  int num_operands() const { return static_cast<int>(operands_.size()); }
  Node* operand(int i) const { return operands_[i].value; }  // Null where an optional operand is absent.
  std::vector<Node*> operands() const;
  void set_operand(int i, Node* value);
  // A call's, in the order of its schema; a variadic operand is one for each value.
  std::vector<Argument> arguments() const;

  // The attributes of the call: the node's own, or the module's.
  const AttributeMap& attributes() const;
  // With the schema's default; aborts on a name the schema does not have.
  const Attribute& attribute(absl::string_view name) const;

  // Each use once, in order of creation; a user with two operands on this node appears twice.
  std::vector<Use> uses() const;
  int num_uses() const { return num_uses_; }
  bool has_one_use() const { return num_uses_ == 1; }
  // Each user once, in order of creation of the uses.
  std::vector<Node*> users() const;
  // The user of a value with one use.
  Node* only_user() const;

  // Moves every use of this node to `replacement`: O(uses).
  void ReplaceAllUsesWith(Node* replacement);

  Node* previous() const { return previous_; }
  Node* next() const { return next_; }

  // Names of the nodes of the imported graph that this one came from; a node that was never rewritten has none.
  const std::vector<std::string>& sources() const { return sources_; }
  // The sources, or the node's own name where it is original.
  std::vector<std::string> SourcesOrSelf() const;
  void AddSources(const std::vector<std::string>& sources);  // Keeps the first of duplicates.

 private:
  friend class Graph;
  friend class Verifier;
  Node() = default;

  void LinkOperand(Use* use, Node* value);
  void UnlinkOperand(Use* use);

  // A call or get_attr, of which nothing else makes a use: dead where it has none.
  bool IsRemovable() const { return is_call() || kind_ == NodeKind::kGetAttr; }

  // What walks over large graphs look at comes first and shares a cache line.
  Node* previous_ = nullptr;
  Node* next_ = nullptr;
  Graph* graph_ = nullptr;
  NodeKind kind_ = NodeKind::kPlaceholder;
  int num_uses_ = 0;
  const OpSchema* op_ = nullptr;
  Module* module_ = nullptr;
  Use* first_use_ = nullptr;
  Use* last_use_ = nullptr;
  // The last walk of the verifier that came here: its number, and what its users need of this node.
  mutable int64_t visit_ = 0;
  mutable uint64_t name_hash_ = 0, type_hash_ = 0;
  std::vector<Use> operands_;  // Linked into lists: only Graph::AppendOutput moves them.
  Type type_;
  std::string name_, target_;
  AttributeMap attributes_;
  Parameter* parameter_ = nullptr;  // A get_attr's.
  std::vector<std::string> sources_;
};

class Graph {
 public:
  // `ops` must outlive the graph.
  Graph(std::string name, const OpRegistry& ops);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const std::string& name() const { return name_; }
  const OpRegistry& ops() const { return *ops_; }

  // --- Nodes. Each Add infers the type, and fails without a trace on unknown targets, wrong arity or attributes.
  // `name` is a wish: it becomes unique by a suffix "_1". `before` == nullptr appends (in front of the output node,
  // where there is one). Attributes equal to the schema's default are dropped: one spelling for one call.
  absl::StatusOr<Node*> AddPlaceholder(absl::string_view name, TensorType type, Node* before = nullptr);
  absl::StatusOr<Node*> AddGetAttr(absl::string_view name, absl::string_view parameter, Node* before = nullptr);
  absl::StatusOr<Node*> AddFunction(absl::string_view name, absl::string_view target, std::vector<Node*> operands,
                                    AttributeMap attributes = {}, Node* before = nullptr);
  absl::StatusOr<Node*> AddMethod(absl::string_view name, absl::string_view target, std::vector<Node*> operands,
                                  AttributeMap attributes = {}, Node* before = nullptr);
  absl::StatusOr<Node*> AddModuleCall(absl::string_view name, absl::string_view path, std::vector<Node*> operands,
                                      Node* before = nullptr);
  // One, last.
  absl::StatusOr<Node*> AddOutput(std::vector<Node*> operands);

  // Removes a node without uses.
  void Erase(Node* node);
  // Puts `replacement` in the place of `node`: it takes over its uses, name and sources, and `node` is erased. Without
  // sources on either side it has none, for its name says it.
  void Replace(Node* node, Node* replacement);
  // Appends `value` as a further result of the graph (to tap an intermediate value).
  void AppendOutput(Node* value);

  Node* first() const { return first_; }
  Node* last() const { return last_; }
  int64_t num_nodes() const { return num_nodes_; }
  Node* output() const { return output_; }  // Null while the graph is being built.
  std::vector<Node*> placeholders() const;
  Node* FindNodeOrNull(absl::string_view name) const;
  // All nodes now, in order: safe to erase from while walking.
  std::vector<Node*> Snapshot() const;

  // --- Modules.
  // `path` must be free (see UniqueModulePath); checks attributes and parameters against the schema.
  absl::StatusOr<Module*> AddModule(absl::string_view path, absl::string_view op, AttributeMap attributes,
                                    std::map<std::string, std::string> parameters);
  Module* FindModuleOrNull(absl::string_view path) const;
  std::string UniqueModulePath(absl::string_view wish) const;
  const std::map<std::string, std::unique_ptr<Module>, std::less<>>& modules() const { return modules_; }
  // Replaces op, attributes and parameters of a module; the types of its call sites are inferred anew, and must stay.
  absl::Status UpdateModule(Module* module, absl::string_view op, AttributeMap attributes,
                            std::map<std::string, std::string> parameters);
  // `path` must be free.
  void RenameModule(Module* module, absl::string_view path);
  // Without call sites.
  void EraseModule(Module* module);
  int64_t EraseUncalledModules();  // Returns how many.

  // --- Parameters.
  // `name` is a wish, as for nodes; returns the name it got.
  std::string AddParameter(absl::string_view name, std::shared_ptr<const Tensor> tensor,
                           std::optional<uint64_t> seed = std::nullopt);
  const Parameter* FindParameterOrNull(absl::string_view name) const;
  const std::map<std::string, Parameter, std::less<>>& parameters() const { return parameters_; }
  void EraseParameter(absl::string_view name);  // Without uses.
  int64_t EraseUnusedParameters();              // Returns how many.

  // Calls and get_attrs without uses, known without a walk.
  int64_t num_dead_nodes() const { return num_dead_nodes_; }

  // The tensor of the op's parameter operand, wherever it comes from: the module, or a get_attr operand of a function
  // call. Null where it is absent or computed.
  const Tensor* ParameterOfOrNull(const Node& node, absl::string_view operand) const;

  // Types of all operands in schema order, as Infer takes them. The pointers live as long as the graph is not changed.
  std::vector<const Type*> OperandTypes(const Node& node) const;

  // What a call computes.
  Cost CostOf(const Node& node) const;

  // The type that the node's operands now imply.
  absl::StatusOr<Type> InferType(const Node& node) const;
  // Infers every type again, in order; stops at the first node that does not fit.
  absl::Status InferAllTypes();
  // Changes dimension 0 of every placeholder to `batch` and infers all types again.
  absl::Status SetBatch(int64_t batch);

  std::unique_ptr<Graph> Clone() const;

  // Symmetric use lists, definition before use, unique names, resolvable targets, schema conformance, inferred type ==
  // stated type, sane quantization parameters, parameter and call-site counts. On the way it computes the graph's
  // fingerprint (ir/fingerprint.h). It leaves marks in the graph: not on two threads at once.
  absl::Status Verify(uint64_t* fingerprint = nullptr) const;

 private:
  friend class Node;
  friend class Verifier;
  absl::StatusOr<Node*> AddCall(NodeKind kind, absl::string_view name, absl::string_view target, const OpSchema* op,
                                Module* module, std::vector<Node*> operands, AttributeMap attributes, Node* before);
  std::unique_ptr<Node> NewNode(NodeKind kind, absl::string_view target, const std::vector<Node*>& operands);
  Node* Insert(std::unique_ptr<Node> node, absl::string_view name, Node* before);
  void CountUses(Parameter& parameter, int delta);
  void CountParameters(const std::vector<Parameter*>& parameters, int delta);

  std::string name_;
  const OpRegistry* ops_;
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  Node* output_ = nullptr;
  int64_t num_nodes_ = 0;
  int64_t num_dead_nodes_ = 0, num_uncalled_modules_ = 0, num_unused_parameters_ = 0;
  // Keys are views of the names that nodes, modules and parameters own. The ordered tables are for printing: finding a
  // name among a hundred thousand takes them a cache miss a level.
  absl::flat_hash_map<absl::string_view, Node*> nodes_by_name_;
  absl::flat_hash_map<absl::string_view, Module*> modules_by_path_;
  absl::flat_hash_map<absl::string_view, Parameter*> parameters_by_name_;
  mutable absl::flat_hash_map<std::string, int64_t> next_suffix_;
  std::map<std::string, std::unique_ptr<Module>, std::less<>> modules_;
  std::map<std::string, Parameter, std::less<>> parameters_;
  mutable int64_t last_visit_ = 0;                          // The number of the verifier's last walk.
  mutable absl::flat_hash_set<uint64_t> consistent_calls_;  // Hashes of calls whose types fit (verify.cc).
};

// Letters, digits, '_', '.', and '/' stay; anything else becomes '_'. Never empty.
std::string SanitizedName(absl::string_view name);

}  // namespace fuselage::ir

#endif  // FUSELAGE_IR_GRAPH_H_
