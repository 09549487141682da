// An operator is data: a schema, type inference and reference evaluation, found by name in an OpRegistry.
// Each lives in its own folder under ir/ops; adding one edits no enum.
#ifndef FUSELAGE_IR_OP_H_
#define FUSELAGE_IR_OP_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/base/attribute.h"
#include "ir/base/status.h"
#include "ir/base/tensor.h"
#include "ir/type.h"

namespace fuselage::ir {

struct OpSchema;

// One operand in the schema's order. A `parameter` operand (a weight, a bias) comes from the module in a call_module
// and is an ordinary operand in a call_function.
struct OperandSpec {
  std::string name;
  bool optional = false;
  bool parameter = false;
  bool variadic = false;  // Only the last: takes all remaining operands (concat).
  // Of a parameter that quantize makes codes, where the op has a quantized form: the axis of the output channels, each
  // of which may have a scale. -1: of others.
  int channel_axis = -1;
  // Its integers are positions along the axis of operand 0 that the attribute "dim" names.
  bool positions = false;
  // Small errors of it change which elements the result has: coordinates, scores that are compared.
  bool exact = false;
};

struct AttributeSpec {
  std::string name;
  AttributeKind kind;
  std::optional<Attribute> default_value;  // Without one the attribute is required.
};

// A call as inference and evaluation see it: operands in schema order whatever the node's kind, attributes with
// defaults. Getters abort on a name or kind that the schema does not have: that is a bug in the op.
class OpCall {
 public:
  OpCall(const OpSchema& schema, const AttributeMap& attributes) : schema_(schema), attributes_(attributes) {}

  const OpSchema& schema() const { return schema_; }
  const Attribute& attribute(absl::string_view name) const;
  bool GetBool(absl::string_view name) const { return attribute(name).as_bool(); }
  int64_t GetInt(absl::string_view name) const { return attribute(name).as_int(); }
  double GetFloat(absl::string_view name) const { return attribute(name).as_float(); }
  const std::string& GetString(absl::string_view name) const { return attribute(name).as_string(); }
  DType GetDType(absl::string_view name) const { return attribute(name).as_dtype(); }
  const std::vector<int64_t>& GetInts(absl::string_view name) const { return attribute(name).as_ints(); }
  const std::vector<double>& GetFloats(absl::string_view name) const { return attribute(name).as_floats(); }

 private:
  const OpSchema& schema_;
  const AttributeMap& attributes_;
};

// `operands[i]` is null where an optional operand is absent; variadic operands fill the tail.
struct InferCall : OpCall {
  using OpCall::OpCall;
  std::vector<const Type*> operands;

  int size() const { return static_cast<int>(operands.size()); }
  bool has(int i) const { return i < size() && operands[i] != nullptr; }
  // The tensor type of a present operand; the framework has checked that it is a tensor unless the schema takes tuples.
  const TensorType& tensor(int i) const { return operands[i]->tensor(); }
};

struct EvaluateCall : OpCall {
  using OpCall::OpCall;
  std::vector<const std::vector<Tensor>*> operands;  // One element for a tensor, several for a tuple.
  const Type* result_type = nullptr;                 // As inferred.

  int size() const { return static_cast<int>(operands.size()); }
  bool has(int i) const { return i < size() && operands[i] != nullptr; }
  const Tensor& tensor(int i) const { return (*operands[i])[0]; }
  const TensorType& result() const { return result_type->tensor(); }
};

// What the elements of an op's result are to those of its operand 0, where it computes none.
enum class View {
  kNone,       // It computes them.
  kSameOrder,  // All of them in the same row-major order, under another shape: reshape.
  kMoves,      // All of them, elsewhere: permute.
  kSelects,    // Some of them, or some repeatedly: slice, expand.
};

// What a call computes. What it moves follows from its types.
struct Cost {
  double macs = 0;        // Multiply-accumulates.
  double operations = 0;  // All other arithmetic.

  Cost operator+(const Cost& other) const { return {macs + other.macs, operations + other.operations}; }
};

struct OpSchema {
  std::string name;                  // "conv2d"
  std::vector<std::string> aliases;  // Other spellings of the target: "torch.relu", "relu_".
  std::vector<OperandSpec> operands;
  std::vector<AttributeSpec> attributes;

  bool module_form = false;  // normalize turns function and method calls into call_module.
  bool elementwise = false;  // Output element i depends on element i of the operands alone (after broadcasting).
  // Item i along axis 0 of the result depends on items i of the operands that are no parameters alone (conv2d), where
  // the result has two axes or more, and no attribute "axis" or "dim" names axis 0. Elementwise ops need not say it.
  bool itemwise = false;
  bool takes_tuple = false;  // Operand 0 may be a tuple (getitem).
  View view = View::kNone;
  // Each element of the result is one of a float operand's, or 0 (cat, max_pool2d, pad): codes pass through as they are,
  // and share their parameters.
  bool keeps_range = false;
  bool takes_maxima = false;  // Each element of the result is the largest of some of operand 0's (max_pool2d, amax).
  // f(s * x) = s * f(x) for s > 0, all operands that are no parameters scaled alike and without an activation (relu, add,
  // avg_pool2d): so does each batch item and channel by itself, where the result has as many.
  bool homogeneous = false;
  // A relu on the result may become the attribute activation="relu" (see passes/fusion).
  bool fusable_activation = false;
  // For "int8.conv2d": "conv2d", whose quantized form it is. lower makes quantize(conv2d(dequantize(x))) one.
  std::string quantized_form_of;
  // For a quantized form: its result may stay f32 (out_dtype): linear(dequantize(x)) is one too.
  bool float_result = false;
  // For a quantized form: quantize does not choose it, since no scale bounds the error (of a quotient by codes near 0).
  bool unbounded_error = false;

  // Operand types -> result type. InvalidArgument says what was found and what was wanted; the caller names the node.
  std::function<absl::StatusOr<Type>(const InferCall&)> infer;
  // Operand values -> one tensor per element of the result type. The reference: exact or in double, never fast.
  std::function<absl::StatusOr<std::vector<Tensor>>(const EvaluateCall&)> evaluate;

  // What a call that has passed inference computes. Where it is null: that of the float op for a quantized form, else
  // operations_per_element for each element of the result, which Register sets to 1 for elementwise ops.
  std::function<Cost(const InferCall&, const Type& result)> cost;
  double operations_per_element = 0;

  const AttributeSpec* FindAttributeOrNull(absl::string_view attribute) const;
  int OperandIndex(absl::string_view operand) const;  // -1 where there is none.
};

class OpRegistry {
 public:
  OpRegistry() = default;
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  // Aborts on a name or alias that is taken, and on a second quantized form of an op.
  void Register(OpSchema schema);

  // By name or alias.
  const OpSchema* FindOrNull(absl::string_view name) const;
  // The op whose `quantized_form_of` is `name`.
  const OpSchema* FindQuantizedFormOrNull(absl::string_view name) const;
  // What a call costs that has passed inference. `operands` in schema order.
  Cost CostOf(const OpSchema& schema, const AttributeMap& attributes, std::vector<const Type*> operands,
              const Type& result) const;
  std::vector<const OpSchema*> SortedByName() const;

 private:
  absl::flat_hash_map<std::string, std::unique_ptr<OpSchema>> ops_;
  absl::flat_hash_map<std::string, const OpSchema*> by_alias_, quantized_forms_;
};

// Checks arity and attribute kinds against the schema, then infers. `operands` in schema order.
absl::StatusOr<Type> Infer(const OpSchema& schema, const AttributeMap& attributes, std::vector<const Type*> operands);

// Evaluates by the reference, and checks that what came back has the inferred type.
absl::StatusOr<std::vector<Tensor>> Evaluate(const OpSchema& schema, const AttributeMap& attributes,
                                             std::vector<const std::vector<Tensor>*> operands, const Type& result_type);

}  // namespace fuselage::ir

#endif  // FUSELAGE_IR_OP_H_
