#include "passes/lower/lower.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/base/hash_map.h"
#include "ir/match/channel_affine.h"
#include "passes/core/quantized_form.h"
#include "passes/lower/codes.h"
#include "passes/lower/few_bits.h"
#include "passes/lower/moves.h"
#include "passes/module_call/module_call.h"

namespace fuselage::lower {
namespace {

using ir::Node;
using passes::Remarks;

// Plain i8 codes times a scale for each row, mul(to(codes, f32), scale), as quantize's per_token leaves them.
struct RowCodes {
  Node *codes = nullptr, *scale = nullptr;
};
std::optional<RowCodes> RowCodesOf(const Node& node) {
  if (!node.IsOp("mul") || !node.operand(0)->IsOp("to") || !node.operand(1)->type().is_tensor()) return std::nullopt;
  Node *codes = node.operand(0)->operand(0), *scale = node.operand(1);
  const TensorType &type = codes->tensor_type(), &scales = scale->tensor_type();
  if (type.dtype != DType::kI8 || type.quant || type.rank() == 0 || scales.dtype != DType::kF32) return std::nullopt;
  Shape wanted = type.shape;
  wanted.back() = 1;
  return scales.shape == wanted ? std::make_optional(RowCodes{codes, scale}) : std::nullopt;
}

// A weight that is dequantize_mxfp4 or dequantize_groups of constants.
bool IsInGroups(const Node& weight) {
  return (weight.IsOp("dequantize_mxfp4") || weight.IsOp("dequantize_groups")) &&
         weight.operand(0)->kind() == ir::NodeKind::kGetAttr && weight.operand(1)->kind() == ir::NodeKind::kGetAttr;
}

// quantize(dequantize(x)) is x: the quotient is within half a code, unless the product overflowed.
bool IsRoundTrip(const Node& dequantize, const Node& quantize) {
  const Node* codes = CodesOrNull(dequantize);
  return codes != nullptr && SameCodes(*codes, quantize) && std::isfinite(codes->tensor_type().quant->scale() * 256.0f);
}

// The scale of a per-tensor quantize: 0.1 rather than the double that is nearest to 0.1f.
double SpelledScale(const Node& quantize) {
  if (quantize.IsOp("int8.quantize")) return quantize.attribute("out_scale").as_float();
  const std::vector<double>& scales = quantize.attribute("scales").as_floats();
  return scales.empty() ? quantize.tensor_type().quant->scale() : scales[0];
}

// Everything about one rewrite, before the first edit.
struct Plan {
  const ir::OpSchema* schema = nullptr;  // What it becomes; null where it only moves to codes.
  Node* node = nullptr;                  // The float op, or a quantize or dequantize that is left.
  std::vector<ir::Argument> arguments;   // With codes in place of their dequantizes.
  std::vector<Node*> dequantizes;        // Each once.
  std::vector<Node*> quantizes;          // Readers that become the op's own rounding.
  ir::Type result;
  double out_scale = 1;          // The codes' scale, as the quantize spells it.
  int64_t group_size = 0;        // Of a weight in groups.
  std::optional<RowCodes> rows;  // Then the result is float.
  std::vector<Node*> affines;  // What scales and shifts the channels behind it, one after another, before its rounding.

  bool takes_as_it_is(const ir::Argument& argument) const {
    return schema != nullptr && passes::TakesAsItIs(*node, *schema, argument.index);
  }
  bool takes_row_scales() const { return schema != nullptr && schema->OperandIndex("input_scale") >= 0; }
};

class Lowering {
 public:
  Lowering(const kernels::KernelRegistry& kernels, ir::Graph& graph, Remarks& remarks)
      : kernels_(kernels), graph_(graph), remarks_(remarks) {}

  absl::StatusOr<bool> Run() {
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (IsQuantize(*node) && HasCodes(*node)) {
        ASSIGN_OR_RETURN(node, FoldRoundTrip(node));
      }
    }
    for (Node* node : graph_.Snapshot()) RETURN_IF_ERROR(GiveParameters(node));
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (!node->is_call() || IsQuantize(*node) || IsDequantize(*node) || node->num_uses() == 0) continue;
      ASSIGN_OR_RETURN(node, LowerOp(node));
    }
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (node->num_uses() == 0) continue;
      if (node->IsOp("quantize")) {
        ASSIGN_OR_RETURN(node, LowerConversion(node, "int8.quantize"));
      } else if (node->IsOp("dequantize")) {
        ASSIGN_OR_RETURN(node, LowerConversion(node, "int8.dequantize"));
      }
    }
    return changed_;
  }

 private:
  // --- dequantize(x) of codes without parameters => dequantize(quantize(dequantize(x))), for ops that take codes: the
  // same codes, of a type that has them.
  absl::Status GiveParameters(Node* node) {
    if (!node->IsOp("dequantize") || node->num_operands() > 1) return absl::OkStatus();
    const TensorType& codes = node->operand(0)->tensor_type();
    const bool plain = !codes.quant && (codes.dtype == DType::kU8 || codes.dtype == DType::kI8);
    const std::vector<Node*> readers = node->users();
    const bool wanted = std::any_of(readers.begin(), readers.end(), [&](const Node* reader) {
      return reader->op() != nullptr && graph_.ops().FindQuantizedFormOrNull(reader->op()->name) != nullptr;
    });
    if (!plain || !wanted || node->attribute("scales").as_floats().size() != 1) return absl::OkStatus();
    AttributeMap attributes = {
        {"dtype", codes.dtype}, {"scales", node->attribute("scales")}, {"zero_points", node->attribute("zero_points")}};
    ASSIGN_OR_RETURN(Node * quantize, graph_.AddFunction(absl::StrCat(node->name(), "_q"), "quantize", {node},
                                                         std::move(attributes), node->next()));
    ASSIGN_OR_RETURN(Node * again, graph_.AddFunction(absl::StrCat(node->name(), "_dq"), "dequantize", {quantize}, {},
                                                      quantize->next()));
    node->ReplaceAllUsesWith(again);
    quantize->set_operand(0, node);
    remarks_.Applied(*quantize, absl::StrCat("%", node->operand(0)->name(), " as codes of a type with parameters"));
    changed_ = true;
    return absl::OkStatus();
  }

  // --- quantize(view(dequantize(x))) => view(x). Returns the node that stands where `quantize` stood, or before.
  absl::StatusOr<Node*> FoldRoundTrip(Node* quantize) {
    std::vector<Node*> views;  // From the quantize upwards.
    Node* top = quantize->operand(0);
    while (top->op() != nullptr && top->op()->view != ir::View::kNone && top->has_one_use()) {
      views.push_back(top);
      top = top->operand(0);
    }
    if (!IsDequantize(*top) || !IsRoundTrip(*top, *quantize)) return quantize;
    ir::Type type = top->operand(0)->type();
    for (auto it = views.rbegin(); it != views.rend(); ++it) {
      std::vector<const ir::Type*> operands = graph_.OperandTypes(**it);
      operands[0] = &type;
      absl::StatusOr<ir::Type> next = ir::Infer(*(*it)->op(), (*it)->attributes(), std::move(operands));
      if (!next.ok()) return quantize;
      type = *std::move(next);
    }
    if (type != quantize->type()) return quantize;

    Node* value = top->operand(0);
    std::vector<Node*> on_codes;
    for (auto it = views.rbegin(); it != views.rend(); ++it) {
      std::vector<Node*> operands = (*it)->operands();
      operands[0] = value;
      ASSIGN_OR_RETURN(value, AddSameCall(**it, std::move(operands)));
      on_codes.insert(on_codes.begin(), value);
    }
    const std::string remark = absl::StrCat("stays in codes: %", quantize->name(), " undoes %", top->name());
    Node* before = quantize->previous();
    quantize->ReplaceAllUsesWith(value);
    graph_.Erase(quantize);
    for (size_t i = 0; i < views.size(); ++i) {
      if (before == views[i]) before = on_codes[i];
      graph_.Replace(views[i], on_codes[i]);
    }
    remarks_.Applied(*value, remark);
    if (before != top) EraseIfDead(top);
    changed_ = true;
    return before;
  }

  absl::StatusOr<Node*> AddSameCall(Node& call, std::vector<Node*> operands) {
    switch (call.kind()) {
      case ir::NodeKind::kCallModule:
        return graph_.AddModuleCall(call.name(), call.target(), std::move(operands), &call);
      case ir::NodeKind::kCallMethod:
        return graph_.AddMethod(call.name(), call.target(), std::move(operands), call.attributes(), &call);
      default: return graph_.AddFunction(call.name(), call.target(), std::move(operands), call.attributes(), &call);
    }
  }

  // --- Q?(op(DQ...)) => int8.op. Returns the node that now stands for `node`.
  absl::StatusOr<Node*> LowerOp(Node* node) {
    Plan plan;
    plan.node = node;
    plan.arguments = node->arguments();
    plan.schema = FormOrNull(plan);
    for (const ir::Argument& argument : plan.arguments) {
      std::vector<Node*>& found = plan.dequantizes;
      if (argument.is_computed_parameter() && IsInGroups(*argument.value)) {
        found.insert(found.end(), {argument.value, argument.value->operand(0), argument.value->operand(1)});
      }
      if (argument.spec->parameter || argument.absent() || plan.takes_as_it_is(argument)) continue;
      if (std::find(found.begin(), found.end(), argument.value) != found.end()) continue;
      if (IsDequantize(*argument.value)) {
        found.push_back(argument.value);
      } else if (plan.takes_row_scales() && RowCodesOf(*argument.value)) {
        found.insert(found.end(), {argument.value, argument.value->operand(0)});
      }
    }
    if (plan.dequantizes.empty()) return LowerOnCodes(plan);
    if (plan.schema == nullptr) {
      if (node->op()->keeps_range) return MoveToCodes(plan);
      if (node->op()->view != ir::View::kNone) return node;
      return Miss(node, absl::StrCat("there is no quantized form of ", node->op()->name));
    }
    if (kernels_.FindOrNull(plan.schema->name) == nullptr)
      return Miss(node, absl::StrCat("no kernel for ", plan.schema->name));
    std::string reason = TakeCodes(plan);
    if (reason.empty()) {
      ASSIGN_OR_RETURN(Node * lowered, FinishWithAffine(plan));
      if (lowered != nullptr) return lowered;
      reason = ChooseResult(plan, *plan.node);
    }
    return reason.empty() ? Finish(plan) : Miss(node, reason);
  }

  // maximum(x) of codes x, as files with operators of codes have it, => int8.maximum(x).
  absl::StatusOr<Node*> LowerOnCodes(Plan& plan) {
    const bool on_codes = plan.node->op()->keeps_range && HasCodes(*plan.node) &&
                          kernels_.FindOrNull(plan.schema == nullptr ? "" : plan.schema->name) != nullptr;
    if (!on_codes) return plan.node;  // A float op among float values.
    plan.result = plan.node->type();
    return Finish(plan);
  }

  // The form of the op where it computes on codes: int8.linear_groups, where its weight is in groups.
  const ir::OpSchema* FormOrNull(const Plan& plan) const {
    const std::string& op = plan.node->op()->name;
    for (const ir::Argument& argument : plan.arguments) {
      if (!argument.is_computed_parameter() || !IsInGroups(*argument.value)) continue;
      return graph_.ops().FindOrNull(absl::StrCat("int8.", op, "_groups"));
    }
    return graph_.ops().FindQuantizedFormOrNull(op);
  }

  // --- quantize(cat(dequantize(x), dequantize(y))) => cat(x, y), with equal parameters.
  absl::StatusOr<Node*> MoveToCodes(Plan& plan) {
    std::string reason = TakeCodes(plan);
    if (reason.empty()) reason = ChooseResult(plan, *plan.node);
    if (!reason.empty()) return Miss(plan.node, reason);
    std::vector<Node*> operands;
    std::vector<const ir::Type*> types;
    for (const ir::Argument& argument : plan.arguments) {
      operands.push_back(argument.value);
      types.push_back(argument.absent() ? nullptr : &argument.value->type());
    }
    const absl::StatusOr<ir::Type> type = ir::Infer(*plan.node->op(), plan.node->attributes(), types);
    if (!type.ok()) return Miss(plan.node, type.status().message());
    if (*type != plan.result) {
      return Miss(plan.node,
                  absl::StrCat("its readers want ", ToString(plan.result), ", its codes are ", ToString(*type)));
    }
    ASSIGN_OR_RETURN(Node * codes, AddSameCall(*plan.node, std::move(operands)));
    codes->AddSources(SourcesOf(plan));
    for (Node* quantize : plan.quantizes) {
      quantize->ReplaceAllUsesWith(codes);
      graph_.Erase(quantize);
    }
    graph_.Replace(plan.node, codes);
    for (Node* dequantize : plan.dequantizes) EraseIfDead(dequantize);
    remarks_.Applied(*codes, "on codes");
    changed_ = true;
    return codes;
  }

  static std::vector<std::string> SourcesOf(const Plan& plan) {
    std::vector<std::string> sources = plan.node->SourcesOrSelf();
    for (const Node* affine : plan.affines) {
      for (std::string& source : affine->SourcesOrSelf()) sources.push_back(std::move(source));
    }
    for (const auto* nodes : {&plan.quantizes, &plan.dequantizes}) {
      for (const Node* node : *nodes) {
        for (std::string& source : node->SourcesOrSelf()) sources.push_back(std::move(source));
      }
    }
    return sources;
  }

  // A quantize or a dequantize that no lowered op took in.
  absl::StatusOr<Node*> LowerConversion(Node* node, absl::string_view op) {
    Plan plan;
    plan.node = node;
    plan.arguments = node->arguments();
    plan.result = node->type();
    plan.schema = graph_.ops().FindOrNull(op);
    if (plan.schema == nullptr || kernels_.FindOrNull(op) == nullptr) {
      return Miss(node, absl::StrCat("no ", plan.schema == nullptr ? "operator " : "kernel for ", op));
    }
    if (node->IsOp("quantize") ? !HasCodes(*node) : CodesOrNull(*node) == nullptr) {
      return Miss(node, "parameters that are per axis, computed, or not those of the codes");
    }
    plan.arguments.resize(1);
    if (node->IsOp("quantize")) plan.out_scale = SpelledScale(*node);
    return Finish(plan);
  }

  std::string TakeCodes(Plan& plan) const {
    const ir::Parameter* weight_scale = nullptr;
    for (ir::Argument& argument : plan.arguments) {
      if (argument.is_computed_parameter()) {
        const Node& value = *argument.value;
        if (!IsInGroups(value)) return absl::StrCat(argument.spec->name, " is computed, wanted a constant");
        argument.parameter = graph_.FindParameterOrNull(value.operand(0)->target());
        weight_scale = graph_.FindParameterOrNull(value.operand(1)->target());
        plan.group_size = value.attribute("group_size").as_int();
        continue;
      }
      if (argument.spec->parameter || argument.absent()) continue;
      const Node& value = *argument.value;
      const bool is_index = plan.schema == nullptr && value.type().is_tensor() && !IsFloat(value.tensor_type().dtype);
      if (is_index) continue;
      if (plan.takes_row_scales() && (plan.rows = RowCodesOf(value))) {
        argument.value = plan.rows->codes;
        continue;
      }
      if (plan.takes_as_it_is(argument)) continue;
      if (!IsDequantize(value)) return absl::StrCat("operand %", value.name(), " is not quantized");
      Node* codes = CodesOrNull(value);
      if (codes == nullptr) {
        const Node& source = *value.operand(0);
        return absl::StrCat("%", value.name(), " reads %", source.name(), " of type ", ToString(source.type()),
                            ", wanted codes with its own per-tensor parameters");
      }
      argument.value = codes;
    }
    if (weight_scale != nullptr) AddArgument(plan, "weight_scale", nullptr, weight_scale);
    if (plan.rows) AddArgument(plan, "input_scale", plan.rows->scale, nullptr);
    return "";
  }

  // One that the float op lacks.
  static void AddArgument(Plan& plan, absl::string_view name, Node* value, const ir::Parameter* parameter) {
    const int index = plan.schema->OperandIndex(name);
    if (index < 0) return;
    plan.arguments.push_back({&plan.schema->operands[index], index, value, parameter});
    std::stable_sort(plan.arguments.begin(), plan.arguments.end(), [&](const auto& a, const auto& b) {
      return plan.schema->OperandIndex(a.spec->name) < plan.schema->OperandIndex(b.spec->name);
    });
  }

  // Codes where all readers of `value`, the node's or what stands behind it, quantize alike, floats where the kernel
  // can.
  static std::string ChooseResult(Plan& plan, const Node& value) {
    const Node* first = nullptr;
    std::string misfit = plan.rows ? "each row has a scale" : "";
    for (const ir::Use& use : value.uses()) {
      if (!IsQuantize(*use.user) || use.index != 0 || !HasCodes(*use.user)) {
        misfit = use.user->kind() == ir::NodeKind::kOutput
                     ? "its float result is a graph output"
                     : absl::StrCat("its float result is read by %", use.user->name());
      } else if (first == nullptr) {
        first = use.user;
      } else if (!SameCodes(*first, *use.user)) {
        misfit = absl::StrCat("its readers %", first->name(), " and %", use.user->name(), " quantize differently");
      }
    }
    if (misfit.empty()) {
      plan.result = first->type();
      plan.out_scale = SpelledScale(*first);
      plan.quantizes = value.users();
      return "";
    }
    if (plan.schema == nullptr) return misfit;
    if (!plan.schema->float_result) return absl::StrCat(misfit, ", and ", plan.schema->name, " has no float result");
    for (const TensorType& type : plan.node->type().elements()) {
      if (type.dtype != DType::kF32) return absl::StrCat("result is ", ToString(plan.node->type()), ", wanted f32");
    }
    plan.result = plan.node->type();
    return "";
  }

  // Q(affine(conv2d(DQ...))) => int8.conv2d, which scales and shifts its channels before they are rounded. Null: there
  // is no such op behind the node, or no kernel that does it.
  absl::StatusOr<Node*> FinishWithAffine(Plan plan) {
    if (plan.schema->OperandIndex("post_scale") < 0) return nullptr;
    for (Node* last = plan.node; last->has_one_use(); plan.affines.push_back(last)) {
      last = last->only_user();
      if (match::LayerInFrontOrNull(*last) != plan.node) break;
    }
    if (plan.affines.empty()) return nullptr;
    const Node& last = *plan.affines.back();
    if (!ChooseResult(plan, last).empty() || plan.quantizes.empty()) return nullptr;
    const match::ChannelAffine affine = *match::ChannelAffineOf(last);
    std::vector<std::string> added;
    for (const auto& [name, values] : {std::make_pair("post_scale", affine.scale), {"post_shift", affine.shift}}) {
      Tensor tensor(DType::kF32, {static_cast<int64_t>(values.size())});
      std::copy(values.begin(), values.end(), tensor.data<float>());
      added.push_back(graph_.AddParameter(absl::StrCat(last.name(), ".", name),
                                          std::make_shared<const Tensor>(std::move(tensor))));
      AddArgument(plan, name, nullptr, graph_.FindParameterOrNull(added.back()));
    }
    module_call::Call call = CallOf(plan);
    const absl::StatusOr<module_call::Accepted> accepted = module_call::Ask(call, graph_, kernels_);
    if (!accepted.ok() || accepted->type != plan.result) {
      for (const std::string& name : added) graph_.EraseParameter(name);
      return nullptr;
    }
    const std::string name = last.name();
    ASSIGN_OR_RETURN(Node * lowered, Rewrite(plan, std::move(call)));
    remarks_.Applied(*lowered, absl::StrCat(lowered->op()->name, " with %", name, ", kernel ", accepted->variant));
    return lowered;
  }

  static module_call::Call CallOf(const Plan& plan) {
    const bool codes = plan.result.is_tensor() && plan.result.tensor().quant.has_value();
    module_call::Call call = {plan.schema->name, passes::FormAttributes(*plan.node, *plan.schema), {}, {}};
    for (auto& [name, value] :
         AttributeMap{{"out_dtype", plan.result.elements()[0].dtype},
                      {"out_scale", plan.out_scale},
                      {"group_size", plan.group_size},
                      {"out_zero_point", int64_t{codes ? plan.result.tensor().quant->zero_point() : 0}}}) {
      if (plan.schema->FindAttributeOrNull(name) != nullptr) call.attributes.insert_or_assign(name, value);
    }
    for (const auto& [spec, index, value, parameter] : plan.arguments) {
      if (!spec->parameter) {
        call.operands.push_back(value);
      } else if (parameter != nullptr) {
        call.parameters[spec->name] = parameter->name;
      }
    }
    return call;
  }

  // Asks op and kernel, and then, where both agree, rewrites.
  absl::StatusOr<Node*> Finish(const Plan& plan) {
    const bool codes = plan.result.is_tensor() && plan.result.tensor().quant.has_value();
    module_call::Call call = CallOf(plan);
    absl::StatusOr<module_call::Accepted> accepted = module_call::Ask(call, graph_, kernels_);
    const std::optional<Activation> clamp = accepted.ok() || codes ? std::nullopt : TakeClamp(call);
    if (clamp) {
      absl::StatusOr<module_call::Accepted> bare = module_call::Ask(call, graph_, kernels_);
      if (bare.ok()) accepted = std::move(bare);
    }
    if (!accepted.ok()) return Miss(plan.node, accepted.status().message());
    if (accepted->type != plan.result) {
      return Miss(plan.node, absl::StrCat("its readers want ", ToString(plan.result), ", ", call.op, " gives ",
                                          ToString(accepted->type)));
    }
    ASSIGN_OR_RETURN(Node * lowered, Rewrite(plan, std::move(call)));
    const std::string& op = lowered->op()->name;
    const bool float_result = !codes && !lowered->IsOp("int8.dequantize");
    remarks_.Applied(*lowered,
                     absl::StrCat(op, float_result ? " with float result" : "", ", kernel ", accepted->variant));
    return clamp ? ClampBehind(lowered, *clamp) : lowered;
  }

  // The clamp at the end of the call's activation, where there is one; then the call has what is in front of it.
  static std::optional<Activation> TakeClamp(module_call::Call& call) {
    const auto it = call.attributes.find("activation");
    if (it == call.attributes.end()) return std::nullopt;
    const absl::StatusOr<Activation> activation = ParseActivation(it->second.as_string());
    if (!activation.ok() || activation->bounds().is_none()) return std::nullopt;
    it->second = ToString(activation->without_bounds());
    return activation->bounds();
  }

  // The clamp takes the name and readers of `lowered`, whose values it makes those of the float op.
  absl::StatusOr<Node*> ClampBehind(Node* lowered, const Activation& clamp) {
    ASSIGN_OR_RETURN(Node * floats, graph_.AddModuleCall(absl::StrCat(lowered->name(), "_f"), lowered->target(),
                                                         lowered->operands(), lowered));
    floats->AddSources(lowered->sources());
    ASSIGN_OR_RETURN(Node * clamped, graph_.AddFunction(lowered->name(), "clamp", {floats},
                                                        {{"min", clamp.min}, {"max", clamp.max}}, lowered));
    graph_.Replace(lowered, clamped);
    return clamped;
  }

  // The new node takes name, place, readers and module path of the old.
  absl::StatusOr<Node*> Rewrite(const Plan& plan, module_call::Call call) {
    changed_ = true;
    const std::vector<std::string> sources = SourcesOf(plan);
    for (Node* quantize : plan.quantizes) {
      quantize->ReplaceAllUsesWith(plan.node);
      graph_.Erase(quantize);
    }
    for (size_t i = plan.affines.size(); i-- > 0;) {
      const std::vector<Node*> operands = plan.affines[i]->operands();
      HashSet<Node*> constants(operands.begin(), operands.end());
      graph_.Erase(plan.affines[i]);
      for (Node* constant : operands) {
        if (constant->kind() == ir::NodeKind::kGetAttr && constants.erase(constant) > 0) EraseIfDead(constant);
      }
    }
    const ir::Module* module = plan.node->module();
    const std::string path = module != nullptr ? module->path : plan.node->name();
    ASSIGN_OR_RETURN(Node * lowered, module_call::Replace({plan.node}, path, std::move(call), graph_));
    lowered->AddSources(sources);
    for (Node* dequantize : plan.dequantizes) EraseIfDead(dequantize);
    return lowered;
  }

  void EraseIfDead(Node* node) {
    if (node->num_uses() == 0) graph_.Erase(node);
  }

  absl::StatusOr<Node*> Miss(Node* node, absl::string_view reason) {
    remarks_.Missed(*node, std::string(reason));
    return node;
  }

  const kernels::KernelRegistry& kernels_;
  ir::Graph& graph_;
  Remarks& remarks_;
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> Lower::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  if (kernels_ == nullptr) return absl::InvalidArgumentError("needs kernels, and the caller gives none");
  ASSIGN_OR_RETURN(const bool moved, MoveCodes(graph, remarks));
  ASSIGN_OR_RETURN(const bool widened, WidenWeights(graph, remarks));
  ASSIGN_OR_RETURN(const bool lowered, Lowering(*kernels_, graph, remarks).Run());
  return moved || widened || lowered;
}

namespace {

// Does the call take the codes that its operand, a dequantize, reads in its place?
bool TakesCodesOf(const Node& node, int operand) {
  std::vector<const ir::Type*> types = node.graph().OperandTypes(node);
  types[operand] = &node.operand(operand)->operand(0)->type();
  return ir::Infer(*node.op(), node.attributes(), std::move(types)).ok();
}

}  // namespace

absl::Status Lower::Ensures(const ir::Graph& graph) const {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->is_call()) continue;
    const bool lowered = absl::StartsWith(node->op()->name, "int8.") && !IsQuantize(*node);
    for (int i = 0; i < node->num_operands(); ++i) {
      const Node* operand = node->operand(i);
      if (operand == nullptr || !IsDequantize(*operand)) continue;
      if (lowered && !passes::TakesAsItIs(*node, *node->op(), i) && TakesCodesOf(*node, i)) {
        return absl::InternalError(absl::StrCat("%", node->name(), " is lowered and reads %", operand->name()));
      }
      if (IsQuantize(*node) && HasCodes(*node) && IsRoundTrip(*operand, *node)) {
        return absl::InternalError(absl::StrCat("%", node->name(), " undoes %", operand->name()));
      }
    }
  }
  return absl::OkStatus();
}

void Register(passes::PassRegistry& registry) {
  registry.Register<LowerOptions>([](const LowerOptions&, const passes::PassEnvironment& environment) {
    return std::make_unique<Lower>(environment.kernels);
  });
}

}  // namespace fuselage::lower
