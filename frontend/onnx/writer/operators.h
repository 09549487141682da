// How calls of the IR become ONNX operators. A file of operators/ has those of one family: a row for each op, which
// says how it is written, or why it cannot be, and the functions that write them. A new file needs no more than to be
// there.
#ifndef FUSELAGE_FRONTEND_ONNX_WRITER_OPERATORS_H_
#define FUSELAGE_FRONTEND_ONNX_WRITER_OPERATORS_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "frontend/onnx/model_builder.h"
#include "ir/base/activation.h"
#include "ir/base/hash_map.h"
#include "ir/op.h"
#include "ir/type.h"

namespace fuselage::onnx::writer {

// The opset of a model whose operators ask for no newer one.
inline constexpr int kOldestWrittenOpset = 13;

using Values = std::vector<std::string>;  // By their names; "" where absent.

// The model while it is written, in the form that operators have in `opset`.
class Emitter {
 public:
  explicit Emitter(int opset) : model_(opset), opset_(opset), needed_(opset) {}

  ModelBuilder& model() { return model_; }
  int opset() const { return opset_; }
  // An operator of a newer opset makes the whole model one of that: it is written again (see needed).
  void Require(int opset) { needed_ = opset > needed_ ? opset : needed_; }
  int needed() const { return needed_; }

  // A node with the name of its first result; absent operands at the end are dropped.
  ModelBuilder& Emit(const std::string& op, Values in, Values results);
  ModelBuilder& Emit(const std::string& op, Values in, const std::string& result) {
    return Emit(op, std::move(in), Values{result});
  }

 private:
  ModelBuilder model_;
  int opset_, needed_;
};

// One call, or one step of fused_elementwise.
struct Call {
  const ir::OpCall& op;
  const char* onnx;                    // The row's operator.
  std::string name;                    // The result's; a tuple's are Element(0), Element(1), ...
  Values in;                           // In the schema's order.
  std::vector<const ir::Type*> types;  // The operands', null where absent; a step has none.
  const ir::Type& result;              // A step's is the whole chain's, whose element type it shares.
  Emitter& to;

  DType dtype() const { return result.tensor().dtype; }
  const TensorType& type(int i) const { return types[i]->tensor(); }
  bool has(size_t i) const { return i < in.size() && !in[i].empty(); }
  Activation activation() const { return ParseActivation(op.GetString("activation")).value(); }

  std::string Suffixed(absl::string_view suffix) const;  // "y:scale": a name with ':' is in no graph.
  std::string Element(int64_t i) const;
  // Initializers; their names.
  std::string Constant(absl::string_view suffix, const Tensor& tensor) const;
  std::string Ints(absl::string_view suffix, const std::vector<int64_t>& values) const;
  std::string Number(absl::string_view suffix, double value, DType dtype) const;

  // The result by one operator, whose attributes follow.
  ModelBuilder& Emit(const std::string& op, Values operands) const { return to.Emit(op, std::move(operands), name); }
  // Of `x` over the attribute "dims", all where it is empty.
  void EmitReduction(const std::string& operator_name, const std::string& x, bool keepdims,
                     const std::string& result) const;
  absl::Status Declined(absl::string_view why) const;
};

// How calls of one op are written.
struct Operator {
  absl::string_view op;  // Without "1d", "2d", "3d", where it comes in several ranks.
  absl::Status (*write)(const Call& c);
  const char* onnx;  // The operator; where there is none to write, why.
};

class Operators {
 public:
  // Aborts on an op that has a row already.
  void Add(std::initializer_list<Operator> operators);
  const Operator* FindOrNull(absl::string_view op) const;

 private:
  HashMap<absl::string_view, Operator> by_op_;
};

// Those of all files of operators/.
void RegisterAll(Operators& operators);

// One operator with the same operands and no attributes, for ops that need no function of their own.
absl::Status WriteSame(const Call& c);

// Unimplemented, naming the op and what it cannot say: of an op without a row, of one whose row says why, or of this
// call.
absl::Status WriteOperator(const ir::OpCall& op, Values in, std::vector<const ir::Type*> types, const ir::Type& result,
                           const std::string& name, Emitter& to);

// Why no call of the op can be written, or "" where some can; null where the table has no row for it.
const char* WhyNotOrNull(absl::string_view op);

}  // namespace fuselage::onnx::writer

#endif  // FUSELAGE_FRONTEND_ONNX_WRITER_OPERATORS_H_
