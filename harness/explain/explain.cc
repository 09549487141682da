#include "harness/explain/explain.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"

namespace fuselage::harness {
namespace {

using StepsByNode = HashMap<std::string, size_t>;

// Those with a scale for each row have it in a value of its own.
bool IsCodes(const TensorType& type) { return type.quant.has_value() || type.dtype == DType::kI8; }

// The first of the values that arrive at run time; null where there is none.
const TensorType* InputOrNull(const ir::Node& node) {
  for (const ir::Node* operand : node.operands()) {
    if (operand != nullptr && operand->kind() != ir::NodeKind::kGetAttr && operand->type().is_tensor()) {
      return &operand->tensor_type();
    }
  }
  return nullptr;
}

// Bytes, or codes by a table of these: there are no floats.
bool IsOfBytes(const ir::Node& node) {
  const TensorType* input = InputOrNull(node);
  if (input == nullptr || input->dtype != DType::kU8 || !node.type().is_tensor()) return false;
  return ByteSize(node.tensor_type().dtype) == 1;
}

// Nothing but a change between codes and floats: quantize, dequantize and their kernels.
bool IsConversion(const ir::Node& node) { return absl::StrContains(node.op()->name, "quantize"); }

int64_t RunTimeBytes(const ir::Node& node) {
  int64_t bytes = 0;
  for (const TensorType& type : node.type().elements()) bytes += type.byte_size();
  for (const ir::Node* operand : node.operands()) {
    if (operand == nullptr) continue;
    for (const TensorType& type : operand->type().elements()) bytes += type.byte_size();
  }
  return bytes;
}

void AddCrossing(const ir::Node& node, Results::ExplainedOp* row) {
  const TensorType* input = InputOrNull(node);
  if (input == nullptr || node.type().elements().empty()) return;
  const TensorType& output = node.type().elements()[0];
  const bool crosses = IsCodes(*input) ? output.dtype == DType::kF32 : IsCodes(output);
  if (!crosses || IsOfBytes(node)) return;
  row->set_crossing(absl::StrCat(DTypeName(input->dtype), " -> ", DTypeName(output.dtype)));
  // A kernel that gives floats instead of codes reads nothing more for it.
  row->set_crossing_bytes(IsConversion(node) ? RunTimeBytes(node) : output.byte_size());
}

std::string RunsIn(const ir::Node& node, const runtime::StepProfile* step) {
  if (IsConversion(node)) return "crossing";
  if (step != nullptr && step->kind == runtime::StepKind::kReference) return "reference";
  const TensorType* input = InputOrNull(node);
  return IsOfBytes(node) || (input != nullptr && IsCodes(*input)) ? "INT8" : "FP32";
}

// The reasons that passes gave for leaving the node, or one that it came from, alone.
std::string WhyNot(const ir::Node& node, const HashMap<std::string, std::string>& reasons) {
  const auto own = reasons.find(node.name());
  if (own != reasons.end()) return own->second;
  for (const std::string& source : node.sources()) {
    const auto found = reasons.find(source);
    if (found != reasons.end()) return found->second;
  }
  return "";
}

Results::ExplainedOp RowOf(const runtime::StepProfile& step) {
  Results::ExplainedOp row;
  row.set_node(step.node);
  row.set_op(step.op);
  row.set_kernel(step.variant);
  row.set_bytes(step.bytes);
  row.set_layout(step.layout);
  return row;
}

}  // namespace

Results::Explanation Explain(const ir::Graph& graph, absl::Span<const runtime::StepProfile> steps,
                             const google::protobuf::RepeatedPtrField<Results::Pass>& passes) {
  HashMap<std::string, std::string> reasons;
  for (const auto& pass : passes) {
    for (const auto& decision : pass.decisions()) {
      if (decision.kind() != "missed") continue;
      std::string& all = reasons[decision.node()];
      const std::string reason = absl::StrCat(pass.name(), ": ", decision.message());
      if (!absl::StrContains(all, reason)) absl::StrAppend(&all, all.empty() ? "" : "; ", reason);
    }
  }
  StepsByNode index;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].node.empty()) index.emplace(steps[i].node, i);
  }

  Results::Explanation explanation;
  size_t next = 0;  // Steps before it have their row.
  const auto add_inserted = [&](size_t end) {
    for (; next < end; ++next) {
      if (!steps[next].node.empty()) continue;
      *explanation.add_placements() = RowOf(steps[next]);
      explanation.mutable_placements()->rbegin()->set_runs_in("layout");
    }
  };
  for (const ir::Node* node : graph.Snapshot()) {
    if (!node->is_call()) continue;
    const auto found = index.find(node->name());
    const runtime::StepProfile* step = found == index.end() ? nullptr : &steps[found->second];
    if (step != nullptr) add_inserted(found->second);
    auto* row = explanation.add_placements();
    if (step != nullptr) *row = RowOf(*step);
    row->set_node(node->name());
    row->set_op(node->op()->name);
    row->set_runs_in(RunsIn(*node, step));
    AddCrossing(*node, row);
    if (row->runs_in() == "crossing") continue;
    explanation.set_ops(explanation.ops() + 1);
    if (row->runs_in() == "INT8") {
      explanation.set_int8_ops(explanation.int8_ops() + 1);
      continue;
    }
    if (row->runs_in() == "FP32") explanation.set_fp32_ops(explanation.fp32_ops() + 1);
    if (row->runs_in() == "reference") explanation.set_reference_ops(explanation.reference_ops() + 1);
    row->set_why(WhyNot(*node, reasons));
  }
  add_inserted(steps.size());
  for (const runtime::StepProfile& step : steps) explanation.set_bytes(explanation.bytes() + step.bytes);
  for (const auto& row : explanation.placements()) {
    explanation.set_crossing_bytes(explanation.crossing_bytes() + row.crossing_bytes());
  }
  return explanation;
}

}  // namespace fuselage::harness
