#include "passes/core/roofline.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "ir/base/hash_map.h"

namespace fuselage::passes {
namespace {

double Elements(const ir::Node& node) {
  double elements = 0;
  for (const TensorType& type : node.type().elements()) elements += static_cast<double>(type.num_elements());
  return elements;
}

double Bytes(const ir::Type& type) {
  double bytes = 0;
  for (const TensorType& element : type.elements()) bytes += static_cast<double>(element.byte_size());
  return bytes;
}

// The operator without "int8.".
absl::string_view BaseName(const ir::Node& node) {
  absl::string_view name = node.op()->name;
  absl::ConsumePrefix(&name, "int8.");
  return name;
}

// Renames its operand's memory, or names a part of it.
bool IsFree(absl::string_view op) {
  static const auto& free = *new HashMap<absl::string_view, bool>{
      {"flatten", true}, {"reshape", true},  {"squeeze", true}, {"unsqueeze", true},
      {"getitem", true}, {"identity", true}, {"dropout", true}};
  return free.contains(op);
}

// Multiply-accumulates for one element of the result.
double Reduction(const ir::Node& node, absl::string_view op) {
  const Tensor* weight = node.graph().ParameterOfOrNull(node, "weight");
  if (absl::StartsWith(op, "conv") && weight != nullptr && weight->dim(0) > 0) {
    // A transposed convolution's weight is [in, out, ...]: its work follows the input, not the result.
    if (absl::StartsWith(op, "conv_transpose")) {
      const double inputs = static_cast<double>(node.operand(0)->tensor_type().num_elements());
      const double per_input = static_cast<double>(weight->num_elements()) / static_cast<double>(weight->dim(0));
      return inputs * per_input / std::max(Elements(node), 1.0);
    }
    return static_cast<double>(weight->num_elements() / weight->dim(0));
  }
  if (op == "linear" || op == "matmul" || op == "gemm" || op == "addmm") {
    const ir::Node* a = node.operand(op == "addmm" ? 1 : 0);
    const Shape& shape = a->tensor_type().shape;
    const bool transposed = op == "gemm" && node.attribute("trans_a").as_bool();
    return static_cast<double>(shape.empty() ? 1 : transposed ? shape[0] : shape.back());
  }
  return 0;
}

// Operations for one element of the result of an op that multiplies no matrices. A transcendental function is a
// polynomial of about this many.
double OperationsPerElement(const ir::Node& node, absl::string_view op) {
  constexpr double kTranscendental = 20;
  static const auto& costs = *new HashMap<absl::string_view, double>{{"sigmoid", kTranscendental},
                                                                                 {"tanh", kTranscendental},
                                                                                 {"silu", kTranscendental},
                                                                                 {"gelu", kTranscendental},
                                                                                 {"softmax", kTranscendental},
                                                                                 {"batch_norm", 2},
                                                                                 {"hardswish", 4},
                                                                                 {"hardsigmoid", 3},
                                                                                 {"quantize", 3},
                                                                                 {"dequantize", 2}};
  if (const auto it = costs.find(op); it != costs.end()) return it->second;
  if (op == "fused_elementwise") {
    double sum = 0;
    for (const std::string& step : node.attribute("steps").as_strings()) {
      const auto it = costs.find(absl::string_view(step).substr(0, step.find('(')));
      sum += it == costs.end() ? 1 : it->second;
    }
    return sum;
  }
  if (node.op()->FindAttributeOrNull("kernel_size") != nullptr) {
    double window = 1;
    for (const int64_t k : node.attribute("kernel_size").as_ints()) window *= static_cast<double>(k);
    return window;
  }
  if (op == "mean" || op == "global_avg_pool") {
    return static_cast<double>(node.operand(0)->tensor_type().num_elements()) / std::max(Elements(node), 1.0);
  }
  return node.op()->elementwise ? 1 : 0;
}

}  // namespace

Work WorkOf(const ir::Node& node) {
  Work work;
  if (!node.is_call()) return work;
  const absl::string_view op = BaseName(node);
  if (IsFree(op)) return work;
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
  const double reduction = Reduction(node, op);
  work.operations = Elements(node) * (reduction > 0 ? 2 * reduction : OperationsPerElement(node, op));
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
