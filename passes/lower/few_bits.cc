#include "passes/lower/few_bits.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/quant_params.h"

namespace fuselage::lower {
namespace {

constexpr int kMost = 64;

// 1 where the weight has large codes, or none but zeros, or is no i8 around 0.
int FactorOf(const Tensor& weight) {
  if (weight.dtype() != DType::kI8 || !weight.type().quant) return 1;
  const std::vector<int32_t>& zero_points = weight.type().quant->zero_points;
  if (std::any_of(zero_points.begin(), zero_points.end(), [](int32_t zero) { return zero != 0; })) return 1;
  int largest = 0;
  for (const int8_t code : weight.values<int8_t>()) {
    largest = std::max(largest, std::abs(int{code}));
    if (largest > kMost / 2) return 1;
  }
  int factor = 1;
  while (largest > 0 && 2 * factor * largest <= kMost) factor *= 2;
  return factor;
}

Tensor Times(const Tensor& weight, int factor) {
  Tensor result(DType::kI8, weight.shape());
  std::transform(weight.values<int8_t>().begin(), weight.values<int8_t>().end(), result.data<int8_t>(),
                 [&](int8_t code) { return static_cast<int8_t>(factor * code); });
  QuantParams quant = *weight.type().quant;
  for (float& scale : quant.scales) scale /= static_cast<float>(factor);
  result.set_type({DType::kI8, weight.shape(), std::move(quant), Layout::kRowMajor});
  return result;
}

}  // namespace

absl::StatusOr<bool> WidenWeights(ir::Graph& graph, passes::Remarks& remarks) {
  std::map<std::string, std::string> widened;  // By the name of the parameter.
  bool changed = false;
  for (ir::Node* node : graph.Snapshot()) {
    const std::vector<ir::Node*> readers = node->users();
    const auto quantizes = [](const ir::Node* reader) { return reader->is_call() && reader->IsOp("quantize"); };
    if (node->kind() != ir::NodeKind::kCallModule || !std::all_of(readers.begin(), readers.end(), quantizes)) continue;
    const Tensor* weight = graph.ParameterOfOrNull(*node, "weight");
    const Tensor* bias = graph.ParameterOfOrNull(*node, "bias");
    if (weight == nullptr || bias == nullptr || bias->dtype() != DType::kF32) continue;
    const int factor = FactorOf(*weight);
    if (factor == 1) continue;
    Tensor codes = Times(*weight, factor);
    if (!CheckQuantParams(*codes.type().quant, DType::kI8, codes.shape()).ok()) continue;
    ir::Module* module = node->module();
    std::map<std::string, std::string> parameters = module->parameters;
    std::string& name = widened[parameters.at("weight")];
    if (name.empty()) {
      name = graph.AddParameter(absl::StrCat(parameters.at("weight"), "_times", factor),
                                std::make_shared<const Tensor>(std::move(codes)));
    }
    parameters["weight"] = name;
    RETURN_IF_ERROR(graph.UpdateModule(module, module->op->name, module->attributes, std::move(parameters)));
    remarks.Applied(*node, absl::StrCat("its weight's codes are times ", factor, ": its bias has finer steps"));
    changed = true;
  }
  return changed;
}

}  // namespace fuselage::lower
