#include "ir/match/channel_affine.h"

#include <algorithm>
#include <cmath>

#include "ir/base/activation.h"
#include "ir/base/elementwise.h"
#include "ir/match/properties.h"

namespace fuselage::match {
namespace {

using ir::Node;

// x * scale + shift, of each channel; without x a constant.
struct Term {
  bool of_x = false;
  std::vector<double> scale, shift;
};

// The steps of a chain, or the one that an op is. Empty where it is neither.
std::vector<ElementwiseInstruction> StepsOf(const Node& node) {
  absl::StatusOr<std::vector<ElementwiseStep>> steps;
  if (node.IsOp("fused_elementwise")) {
    steps = ParseElementwiseSteps(node.attribute("steps").as_strings(), node.num_operands());
  } else {
    ElementwiseStep step = {node.op()->name, {}, node.attributes()};
    for (int i = 0; i < node.num_operands(); ++i) step.operands.push_back(i);
    steps = std::vector<ElementwiseStep>{std::move(step)};
  }
  if (!steps.ok() || !IsElementwiseStep((*steps)[0].op)) return {};
  absl::StatusOr<std::vector<ElementwiseInstruction>> program = CompileElementwise(*steps);
  return program.ok() ? *std::move(program) : std::vector<ElementwiseInstruction>();
}

// A constant of one value, or of one for each channel of `shape`; nothing where it is none.
std::optional<Term> ConstantOf(const Node& node, const Shape& shape) {
  const int64_t channels = shape[1];
  const Tensor& values = *node.graph().FindParameterOrNull(node.target())->tensor;
  if (values.dtype() != DType::kF32 || values.rank() > static_cast<int>(shape.size())) return std::nullopt;
  const int axis = 1 - static_cast<int>(shape.size()) + values.rank();  // Of the channels, as shapes are broadcast.
  for (int i = 0; i < values.rank(); ++i) {
    if (values.dim(i) != 1 && !(i == axis && values.dim(i) == channels)) return std::nullopt;
  }
  Term term;
  term.scale.assign(channels, 0);
  for (int64_t c = 0; c < channels; ++c) {
    term.shift.push_back(values.data<float>()[values.num_elements() == 1 ? 0 : c]);
  }
  return term;
}

// a op b; nothing where that is no such term.
std::optional<Term> Combined(const ElementwiseInstruction& step, const Term& a, const Term& b) {
  const bool add = step.op == ElementwiseOp::kAdd && step.p == 1 && step.q == 0;
  const bool subtract = step.op == ElementwiseOp::kSub;
  const bool multiply = step.op == ElementwiseOp::kMul && !(a.of_x && b.of_x);
  const bool divide = step.op == ElementwiseOp::kDiv && !b.of_x;
  if (!add && !subtract && !multiply && !divide) return std::nullopt;
  Term term;
  term.of_x = a.of_x || b.of_x;
  for (size_t c = 0; c < a.scale.size(); ++c) {
    if (add || subtract) {
      const double sign = add ? 1 : -1;
      term.scale.push_back(a.scale[c] + sign * b.scale[c]);
      term.shift.push_back(a.shift[c] + sign * b.shift[c]);
      continue;
    }
    const Term& of_x = b.of_x ? b : a;
    const double factor = b.of_x ? a.shift[c] : divide ? 1 / b.shift[c] : b.shift[c];
    term.scale.push_back(of_x.scale[c] * factor);
    term.shift.push_back(of_x.shift[c] * factor);
  }
  return term;
}

// Of the node alone.
std::optional<ChannelAffine> OwnAffineOf(const Node& node) {
  if (!node.is_call() || node.op() == nullptr || !node.op()->elementwise || !IsF32(node)) return std::nullopt;
  const Shape& shape = node.tensor_type().shape;
  if (shape.size() < 2) return std::nullopt;
  ChannelAffine affine;
  std::vector<Term> values;
  for (Node* operand : node.operands()) {
    if (operand == nullptr) return std::nullopt;
    std::optional<Term> term;
    if (operand->kind() == ir::NodeKind::kGetAttr) {
      term = ConstantOf(*operand, shape);
    } else if (affine.of == nullptr && IsF32(*operand) && operand->tensor_type().shape == shape) {
      affine.of = operand;
      term = Term{true, std::vector<double>(shape[1], 1), std::vector<double>(shape[1], 0)};
    }
    if (!term) return std::nullopt;
    values.push_back(*std::move(term));
  }
  const std::vector<ElementwiseInstruction> steps = StepsOf(node);
  if (affine.of == nullptr || steps.empty()) return std::nullopt;
  for (const ElementwiseInstruction& step : steps) {
    std::optional<Term> term = Combined(step, values[step.a], values[step.b]);
    if (!term) return std::nullopt;
    values.push_back(*std::move(term));
  }
  if (!values.back().of_x) return std::nullopt;
  for (int64_t c = 0; c < shape[1]; ++c) {
    affine.scale.push_back(static_cast<float>(values.back().scale[c]));
    affine.shift.push_back(static_cast<float>(values.back().shift[c]));
  }
  return affine;
}

// What `outer` makes of what `inner` makes.
ChannelAffine Composed(const ChannelAffine& inner, const ChannelAffine& outer) {
  ChannelAffine both;
  both.of = inner.of;
  for (size_t c = 0; c < inner.scale.size(); ++c) {
    both.scale.push_back(inner.scale[c] * outer.scale[c]);
    both.shift.push_back(std::fma(inner.shift[c], outer.scale[c], outer.shift[c]));
  }
  return both;
}

bool IsFinite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

}  // namespace

std::optional<ChannelAffine> ChannelAffineOf(const Node& node) {
  std::optional<ChannelAffine> affine = OwnAffineOf(node);
  while (affine && affine->of->has_one_use()) {
    const std::optional<ChannelAffine> inner = OwnAffineOf(*affine->of);
    if (!inner) break;
    affine = Composed(*inner, *affine);
  }
  return affine && IsFinite(affine->scale) && IsFinite(affine->shift) ? affine : std::nullopt;
}

const Node* LayerInFrontOrNull(const Node& node) {
  const std::optional<ChannelAffine> affine = ChannelAffineOf(node);
  if (!affine || !affine->of->IsOp("conv2d") || !affine->of->has_one_use() || affine->of->num_operands() > 1) {
    return nullptr;
  }
  const absl::StatusOr<Activation> activation = ParseActivation(affine->of->attribute("activation").as_string());
  return activation.ok() && activation->is_function() ? affine->of : nullptr;
}

}  // namespace fuselage::match
