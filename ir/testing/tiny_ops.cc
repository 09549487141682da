#include "ir/testing/tiny_ops.h"

#include "absl/strings/str_cat.h"

namespace fuselage::testing {
namespace {

using ir::EvaluateCall;
using ir::InferCall;
using ir::OpSchema;
using ir::Type;

absl::StatusOr<Type> SameAsFirst(const InferCall& call) {
  for (int i = 1; i < call.size(); ++i) {
    if (call.has(i) && call.tensor(i).shape != call.tensor(0).shape && !call.schema().operands[i].parameter) {
      return absl::InvalidArgumentError(absl::StrCat("operand ", i, " has shape ", ToString(call.tensor(i).shape),
                                                     ", wanted ", ToString(call.tensor(0).shape)));
    }
  }
  return Type(call.tensor(0));
}

template <typename F>
std::function<absl::StatusOr<std::vector<Tensor>>(const EvaluateCall&)> Map(F f) {
  return [f](const EvaluateCall& call) -> absl::StatusOr<std::vector<Tensor>> {
    Tensor y(call.result());
    for (int64_t i = 0; i < y.num_elements(); ++i) y.Set(i, f(call, i));
    std::vector<Tensor> result;
    result.push_back(std::move(y));
    return result;
  };
}

}  // namespace

void RegisterTinyOps(ir::OpRegistry& ops) {
  OpSchema relu;
  relu.name = "relu";
  relu.aliases = {"torch.relu"};
  relu.operands = {{"input"}};
  relu.attributes = {{"slope", AttributeKind::kFloat, Attribute(0.0)}};
  relu.module_form = true;
  relu.infer = SameAsFirst;
  relu.evaluate = Map([](const EvaluateCall& call, int64_t i) {
    const double x = call.tensor(0).At(i);
    return x > 0 ? x : call.GetFloat("slope") * x;
  });
  ops.Register(relu);

  OpSchema add;
  add.name = "add";
  add.operands = {{"input"}, {"other"}};
  add.infer = SameAsFirst;
  add.evaluate = Map([](const EvaluateCall& call, int64_t i) { return call.tensor(0).At(i) + call.tensor(1).At(i); });
  ops.Register(add);

  OpSchema scale;
  scale.name = "scale";
  scale.operands = {{"input"}, {"weight", false, true}, {"bias", true, true}, {"residual", true}};
  scale.attributes = {{"factors", AttributeKind::kFloats, Attribute(std::vector<double>{})},
                      {"names", AttributeKind::kStrings, Attribute(std::vector<std::string>{})},
                      {"steps", AttributeKind::kInts, Attribute(std::vector<int64_t>{})},
                      {"mode", AttributeKind::kString, Attribute("a")},
                      {"as", AttributeKind::kDType, Attribute(DType::kF32)},
                      {"on", AttributeKind::kBool, Attribute(true)}};
  scale.infer = SameAsFirst;
  scale.evaluate = Map([](const EvaluateCall& call, int64_t i) {
    const double bias = call.has(2) ? call.tensor(2).At(0) : 0;
    return call.tensor(0).At(i) * call.tensor(1).At(0) + bias + (call.has(3) ? call.tensor(3).At(i) : 0);
  });
  ops.Register(scale);

  OpSchema halves;
  halves.name = "halves";
  halves.operands = {{"input"}};
  halves.infer = [](const InferCall& call) -> absl::StatusOr<Type> {
    TensorType half = call.tensor(0);
    if (half.rank() != 1 || half.shape[0] % 2 != 0) return absl::InvalidArgumentError("wanted an even length");
    half.shape[0] /= 2;
    return Type::Tuple({half, half});
  };
  halves.evaluate = [](const EvaluateCall& call) -> absl::StatusOr<std::vector<Tensor>> {
    std::vector<Tensor> result;
    for (int half = 0; half < 2; ++half) {
      Tensor y(call.result_type->elements()[half]);
      for (int64_t i = 0; i < y.num_elements(); ++i) y.Set(i, call.tensor(0).At(half * y.num_elements() + i));
      result.push_back(std::move(y));
    }
    return result;
  };
  ops.Register(halves);

  OpSchema getitem;
  getitem.name = "getitem";
  getitem.operands = {{"tuple"}};
  getitem.attributes = {{"index", AttributeKind::kInt, std::nullopt}};
  getitem.takes_tuple = true;
  getitem.infer = [](const InferCall& call) -> absl::StatusOr<Type> {
    const int64_t index = call.GetInt("index");
    if (index < 0 || index >= static_cast<int64_t>(call.operands[0]->elements().size())) {
      return absl::InvalidArgumentError(absl::StrCat("index ", index, " is out of range"));
    }
    return Type(call.operands[0]->elements()[index]);
  };
  getitem.evaluate = [](const EvaluateCall& call) -> absl::StatusOr<std::vector<Tensor>> {
    std::vector<Tensor> result;
    result.push_back((*call.operands[0])[call.GetInt("index")]);
    return result;
  };
  ops.Register(getitem);

  OpSchema cat;
  cat.name = "cat";
  ir::OperandSpec inputs{"inputs"};
  inputs.variadic = true;
  cat.operands = {inputs};
  cat.infer = [](const InferCall& call) -> absl::StatusOr<Type> {
    TensorType type = call.tensor(0);
    for (int i = 1; i < call.size(); ++i) type.shape[0] += call.tensor(i).shape[0];
    return Type(type);
  };
  cat.evaluate = [](const EvaluateCall& call) -> absl::StatusOr<std::vector<Tensor>> {
    Tensor y(call.result());
    int64_t next = 0;
    for (int k = 0; k < call.size(); ++k) {
      for (int64_t i = 0; i < call.tensor(k).num_elements(); ++i) y.Set(next++, call.tensor(k).At(i));
    }
    std::vector<Tensor> result;
    result.push_back(std::move(y));
    return result;
  };
  ops.Register(cat);
}

}  // namespace fuselage::testing
