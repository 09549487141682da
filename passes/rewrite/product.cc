#include "passes/rewrite/product.h"

#include <algorithm>
#include <cmath>

namespace fuselage::rewrite {
namespace {

using ir::Node;

constexpr size_t kMostCalls = 16;

bool IsWhole(double x) { return x == std::floor(x); }

class Expansion {
 public:
  Product Run(Node* result) {
    Expand(result, 1);
    return std::move(product_);
  }

 private:
  // The product is to have node^exponent.
  void Expand(Node* node, double exponent) {
    const bool own = product_.calls.empty() || node->has_one_use();
    if (!own || !node->is_call() || !node->type().is_tensor() || !IsFloat(node->tensor_type().dtype) ||
        !IsWhole(exponent) || product_.calls.size() == kMostCalls) {
      return Take(node, exponent);
    }
    const std::optional<double> power = PowerOf(*node);
    if (node->IsOp("mul") || node->IsOp("div")) {
      product_.calls.push_back(node);
      Expand(node->operand(0), exponent);
      Expand(node->operand(1), node->IsOp("mul") ? exponent : -exponent);
    } else if (node->IsOp("neg")) {
      product_.calls.push_back(node);
      product_.coefficient *= std::fmod(exponent, 2) == 0 ? 1 : -1;
      Expand(node->operand(0), exponent);
    } else if (node->IsOp("reciprocal")) {
      product_.calls.push_back(node);
      Expand(node->operand(0), -exponent);
    } else if (power && (IsWhole(*power) || std::fabs(exponent) == 1)) {
      product_.calls.push_back(node);
      Expand(node->operand(0), exponent * *power);
    } else {
      Take(node, exponent);
    }
  }

  // The exponent of sqrt, and of pow by a constant.
  static std::optional<double> PowerOf(const Node& node) {
    if (node.IsOp("sqrt")) return 0.5;
    const std::optional<double> power = node.IsOp("pow") ? NumberOf(*node.operand(1)) : std::nullopt;
    return power && std::isfinite(*power) ? power : std::nullopt;
  }

  void Take(Node* node, double exponent) {
    const std::optional<double> number = NumberOf(*node);
    if (number && std::isfinite(*number) && *number != 0 && (*number > 0 || IsWhole(exponent))) {
      product_.coefficient *= std::pow(*number, exponent);
      return;
    }
    const auto it = std::find_if(product_.factors.begin(), product_.factors.end(),
                                 [&](const auto& factor) { return factor.first == node; });
    if (it == product_.factors.end()) {
      product_.factors.emplace_back(node, exponent);
    } else {
      it->second += exponent;
    }
  }

  Product product_;
};

}  // namespace

Product ProductOf(Node* result) { return Expansion().Run(result); }

std::optional<double> NumberOf(const Node& node) {
  if (node.kind() != ir::NodeKind::kGetAttr) return std::nullopt;
  const Tensor& tensor = *node.graph().FindParameterOrNull(node.target())->tensor;
  if (!IsFloat(tensor.dtype()) || tensor.num_elements() == 0) return std::nullopt;
  const double number = tensor.At(0);
  if (std::isnan(number)) return std::nullopt;
  for (int64_t i = 1; i < tensor.num_elements(); ++i) {
    if (tensor.At(i) != number) return std::nullopt;
  }
  return number;
}

}  // namespace fuselage::rewrite
