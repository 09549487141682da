// Appends calls to a graph, and evaluates at once those whose operands are all constants.
#ifndef FUSELAGE_FRONTEND_ONNX_BUILDER_H_
#define FUSELAGE_FRONTEND_ONNX_BUILDER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "frontend/onnx/onnx.h"
#include "ir/base/budget.h"
#include "ir/base/hash_map.h"
#include "ir/graph.h"

namespace fuselage::onnx {

// What an ONNX name stands for: a constant, or the result of a node; neither where an optional input is absent.
struct Value {
  std::string name;                                     // ONNX's: messages and the parameter of a constant carry it.
  std::shared_ptr<const std::vector<Tensor>> constant;  // One tensor.
  ir::Node* node = nullptr;
  // What the constant were if the symbolic batch were one more; null where that is the same.
  std::shared_ptr<const std::vector<Tensor>> at_next_batch = nullptr;

  // The file stores the constant in a narrower type than the IR has (widened.h).
  bool widened = false;

  // Of the elements along an axis only the first *count exist, i64[1] (rows.h); all where it is null.
  struct Rows {
    ir::Node* count = nullptr;
    int axis = 0;
  };
  Rows rows = {};
  // What the constant were if there were room for one more row of those that `follows` counts, and for none; null where
  // it follows no rows. `at_no_row` is null, too, where it cannot be computed.
  std::shared_ptr<const std::vector<Tensor>> at_next_row = nullptr, at_no_row = nullptr;
  ir::Node* follows = nullptr;

  bool present() const { return constant != nullptr || node != nullptr; }
  const Tensor* TensorOrNull() const { return constant == nullptr ? nullptr : &(*constant)[0]; }
  const TensorType& type() const { return constant != nullptr ? (*constant)[0].type() : node->tensor_type(); }
  const Shape& shape() const { return type().shape; }
};

class Builder {
 public:
  Builder(ir::Graph* graph, Budget* budget, const LoadOptions& options)
      : graph_(graph), budget_(budget), options_(options) {}

  Budget& budget() { return *budget_; }

  // The tensor's bytes have been charged.
  static Value Constant(std::string name, Tensor tensor);
  // The same, charged here.
  absl::StatusOr<Value> ChargedConstant(std::string name, Tensor tensor);

  // A call with one result. A `dequantize` of a constant stays a call: its codes are weights.
  absl::StatusOr<Value> Emit(const std::string& name, absl::string_view target, const std::vector<Value>& operands,
                             AttributeMap attributes = {});

  // A call with a tuple as its result; `wanted[i]` says whether anyone reads element i.
  absl::StatusOr<std::vector<Value>> EmitTuple(const std::string& name, absl::string_view target,
                                               const std::vector<Value>& operands, AttributeMap attributes,
                                               const std::vector<bool>& wanted);

  // Likewise, whatever rows the operands have: those of the results are the caller's to say (rows.h).
  absl::StatusOr<Value> EmitAsIs(const std::string& name, absl::string_view target, const std::vector<Value>& operands,
                                 AttributeMap attributes);
  absl::StatusOr<std::vector<Value>> EmitTupleAsIs(const std::string& name, absl::string_view target,
                                                   const std::vector<Value>& operands, AttributeMap attributes,
                                                   const std::vector<bool>& wanted);
  const ir::OpSchema* FindOpOrNull(absl::string_view target) const { return graph_->ops().FindOrNull(target); }

  // Dimension 0 of the input is symbolic: whatever depends on it is known to (see ShapeAtNextBatch).
  void MarkBatch(const ir::Node* placeholder);
  // The shape of a value if the symbolic batch were one more. The value's own where that has no part in it, or where
  // the graph so far holds for one batch only.
  const Shape& ShapeAtNextBatch(const Value& value) const;
  // `tensor`, which has been charged, is what the constant `value` were if the batch were one more.
  void SetAtNextBatch(Value& value, Tensor tensor);
  // The constant `value` follows rows that `follows` counts: what it were for one more, and for none, which have been
  // charged. Nothing where all are the same.
  void SetAtRows(Value& value, absl::StatusOr<Tensor> next, absl::StatusOr<Tensor> none, ir::Node* follows);
  // The count that these constants follow, null where they follow none; Unimplemented where there are two.
  static absl::StatusOr<ir::Node*> FollowedBy(const std::vector<Value>& values);
  // What KeepMade was told; null where nobody did. Numbers of rows that are computed alike are one, and known to be.
  const Value* MadeOrNull(const std::string& key) const;
  const Value& KeepMade(std::string key, Value value) { return made_[std::move(key)] = std::move(value); }

  // Says that the constant's value, which depends on the batch, is in the graph as it is.
  void WarnOfFixedBatch(const Value& value);

  // The node of a value; a constant becomes a parameter and a get_attr node on its first use. Null for an absent one.
  absl::StatusOr<ir::Node*> NodeOf(const Value& value);

 private:
  // A number that follows from how many rows data says there are.
  absl::StatusOr<ir::Node*> ComputedSize(const Value& value);
  // The results' bytes are charged.
  absl::StatusOr<std::vector<Tensor>> EvaluateConstants(const ir::OpSchema& schema,
                                                        const std::vector<const std::vector<Tensor>*>& operands,
                                                        const AttributeMap& attributes);
  absl::StatusOr<std::vector<Value>> Fold(const std::string& name, const ir::OpSchema& schema,
                                          const std::vector<Value>& operands, const AttributeMap& attributes);
  absl::StatusOr<ir::Node*> AddFunction(const std::string& name, absl::string_view target,
                                        std::vector<ir::Node*> operands, AttributeMap attributes);
  absl::StatusOr<ir::Node*> Call(const std::string& name, absl::string_view target, const std::vector<Value>& operands,
                                 AttributeMap attributes);

  ir::Graph* graph_;
  Budget* budget_;
  const LoadOptions& options_;
  // By tensors that the graph's parameters keep alive, or `kept_`: a later one cannot come to lie where one of them was.
  HashMap<const Tensor*, ir::Node*> get_attrs_;
  std::vector<std::shared_ptr<const std::vector<Tensor>>> kept_;
  // The types of nodes that depend on the symbolic batch, were it one more.
  HashMap<const ir::Node*, ir::Type> at_next_batch_;
  HashMap<std::string, Value> made_;
};

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_BUILDER_H_
