#include "passes/core/roofline.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace fuselage::passes {
namespace {

double Bytes(const ir::Type& type) {
  double bytes = 0;
  for (const TensorType& element : type.elements()) bytes += static_cast<double>(element.byte_size());
  return bytes;
}

// Renames its operand's memory, or names a part of it.
bool NamesMemory(const ir::OpSchema& op) { return op.view == ir::View::kSameOrder || op.takes_tuple; }

}  // namespace

Work WorkOf(const ir::Node& node) {
  Work work;
  if (!node.is_call() || NamesMemory(*node.op())) return work;
  work.calls = 1;
  work.on_codes = absl::StartsWith(node.op()->name, "int8.");
  work.bytes = Bytes(node.type());
  for (const ir::Node* operand : node.operands()) {
    if (operand != nullptr) work.bytes += Bytes(operand->type());
  }
  if (node.module() != nullptr) {
    for (const auto& [operand, parameter] : node.module()->parameters) {
      work.bytes += static_cast<double>(node.graph().FindParameterOrNull(parameter)->tensor->byte_size());
    }
  }
  const ir::Cost cost = node.graph().CostOf(node);
  work.operations = 2 * cost.macs + cost.operations;
  return work;
}

double PredictedSeconds(const Work& work, const MachinePeaks& peaks) {
  const double peak = work.on_codes ? peaks.int8_ops_per_second : peaks.f32_flops_per_second;
  return work.calls * peaks.seconds_per_call + std::max(work.operations / peak, work.bytes / peaks.bytes_per_second);
}

double PredictedSeconds(const ir::Graph& graph, const MachinePeaks& peaks) {
  double seconds = 0;
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    seconds += PredictedSeconds(WorkOf(*node), peaks);
  }
  return seconds;
}

double ArithmeticIntensity(const Work& work) { return work.bytes > 0 ? work.operations / work.bytes : 0; }

const MachinePeaks& TypicalPeaks() {
  static const MachinePeaks peaks = {/*f32_flops_per_second=*/100e9, /*int8_ops_per_second=*/400e9,
                                     /*bytes_per_second=*/10e9, /*seconds_per_call=*/1e-6};
  return peaks;
}

}  // namespace fuselage::passes
