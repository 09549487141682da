// One ONNX node as its converter sees it: checked attributes, resolved operands, and where the results go.
#ifndef FUSELAGE_FRONTEND_ONNX_CALL_H_
#define FUSELAGE_FRONTEND_ONNX_CALL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "frontend/onnx/builder.h"

namespace fuselage::onnx::schema {
class AttributeProto;
class GraphProto;
class NodeProto;
class TensorProto;
}  // namespace fuselage::onnx::schema

namespace fuselage::onnx {

// "'name'", "'output'" where the node has no name.
std::string NodeLabel(const schema::NodeProto& node);

// Each attribute is among `specs` ("auto_pad=STRING kernel_shape=INTS"), once, and of that type.
absl::Status CheckAttributes(const schema::NodeProto& node, absl::string_view specs);

// The numbers of a list: i32 or i64 of rank 0 or 1. `what` names it in an error.
absl::StatusOr<std::vector<int64_t>> IntsOf(const Tensor& tensor, absl::string_view what);

// Puts a node's subgraph in its place.
class Inliner {
 public:
  virtual ~Inliner() = default;
  // The subgraph's outputs, given its inputs; what else it reads comes from
  // around the node.
  virtual absl::StatusOr<std::vector<Value>> Inline(const schema::GraphProto& subgraph, std::vector<Value> inputs) = 0;
};

class Call {
 public:
  // `target`: see below. `wanted[i]`: someone reads output i. Attributes have passed CheckAttributes.
  Call(const schema::NodeProto& node, std::string target, int opset, std::vector<Value> operands,
       std::vector<bool> wanted, Builder* builder, Inliner* inliner);

  int opset() const { return opset_; }
  Builder& builder() { return *builder_; }
  const std::string& name() const { return name_; }
  const std::string& operator_name() const;
  // The op that the operator becomes, by its converter's row.
  const std::string& target() const { return target_; }

  // --- Attributes.
  bool HasAttribute(absl::string_view name) const { return FindOrNull(name) != nullptr; }
  int64_t Int(absl::string_view name, int64_t otherwise) const;
  double Float(absl::string_view name, double otherwise) const;
  std::string String(absl::string_view name, absl::string_view otherwise) const;
  std::vector<int64_t> Ints(absl::string_view name) const;  // Empty where absent.
  std::vector<float> Floats(absl::string_view name) const;
  std::vector<std::string> Strings(absl::string_view name) const;
  // Null where absent.
  const schema::TensorProto* TensorOrNull(absl::string_view name) const;
  // The outputs of the subgraph that is attribute `name`.
  absl::StatusOr<std::vector<Value>> Inline(absl::string_view name, std::vector<Value> inputs);
  // 0 or 1.
  absl::StatusOr<bool> Flag(absl::string_view name, bool otherwise) const;

  // --- Operands.
  int num_operands() const { return static_cast<int>(operands_.size()); }
  bool has(int i) const { return i < num_operands() && operands_[i].present(); }
  // Absent where the node has fewer.
  const Value& operand(int i) const { return i < num_operands() ? operands_[i] : absent_; }
  const std::vector<Value>& operands() const { return operands_; }
  const TensorType& type(int i) const { return operands_[i].type(); }
  const Shape& shape(int i) const { return type(i).shape; }
  int rank(int i) const { return type(i).rank(); }
  // A constant operand's values; Unimplemented where it is computed. kFixed: where they depend on the batch, the graph
  // will hold for this one alone, which is worth a warning, and those that follow rows (rows.h) must follow operand
  // 0's; kFollowed: the caller looks after that.
  enum class Batch { kFixed, kFollowed };
  absl::StatusOr<const Tensor*> Constant(int i, Batch batch = Batch::kFixed) const;
  absl::StatusOr<std::vector<int64_t>> ConstantInts(int i, Batch batch = Batch::kFixed) const;  // Rank 0 or 1.
  absl::StatusOr<double> ConstantScalar(int i, Batch batch = Batch::kFixed) const;              // One element.
  // Unimplemented where the constant follows rows that operand 0 does not have.
  absl::Status CheckFollowsRows(int i) const;

  // --- Results.
  int num_outputs() const { return static_cast<int>(wanted_.size()); }
  int num_named_outputs() const;  // Whether or not someone reads them.
  bool wants(int i) const { return i < num_outputs() && wanted_[i]; }
  const std::vector<bool>& wanted() const { return wanted_; }
  void Set(int i, Value value) { results_[i] = std::move(value); }
  std::vector<Value>& results() { return results_; }

  // The node that carries this node's name; helpers add a suffix: "conv1.weight_dequantize".
  absl::StatusOr<Value> Emit(absl::string_view target, const std::vector<Value>& operands,
                             AttributeMap attributes = {}) {
    return builder_->Emit(name_, target, operands, std::move(attributes));
  }
  absl::StatusOr<Value> EmitHelper(absl::string_view suffix, absl::string_view target,
                                   const std::vector<Value>& operands, AttributeMap attributes = {});
  // A constant of rank 0 for a helper to read.
  absl::StatusOr<Value> Scalar(absl::string_view suffix, DType dtype, double value);
  // Emit, as result 0.
  absl::Status Result(absl::string_view target, const std::vector<Value>& operands, AttributeMap attributes = {});

 private:
  const schema::AttributeProto* FindOrNull(absl::string_view name) const;

  const schema::NodeProto& node_;
  std::string target_;
  int opset_;
  std::string name_;
  std::vector<Value> operands_;
  std::vector<bool> wanted_;
  std::vector<Value> results_;
  Builder* builder_;
  Inliner* inliner_;
  Value absent_;
};

// A list that is attribute `name` before `opset`, and constant input `i` from then on. Empty where absent.
absl::StatusOr<std::vector<int64_t>> ListByOpset(const Call& call, absl::string_view name, int i, int opset);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_CALL_H_
