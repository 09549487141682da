#include "passes/cleanup/identities.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ir/batch.h"
#include "ir/match/properties.h"

namespace fuselage::cleanup {
namespace {

using ir::Node;

bool AllAre(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
}

bool IsSorted(const std::vector<int64_t>& dims, int rank) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if ((dims[i] < 0 ? dims[i] + rank : dims[i]) != static_cast<int64_t>(i)) return false;
  }
  return static_cast<int>(dims.size()) == rank;
}

bool SameAxis(const Node& node, const char* a, const char* b) {
  const int64_t rank = node.tensor_type().rank();
  return (node.attribute(a).as_int() - node.attribute(b).as_int()) % rank == 0;
}

// A get_attr whose every element is `value`, with its sign.
bool IsConstantOf(const Node& node, double value) {
  if (node.kind() != ir::NodeKind::kGetAttr) return false;
  const Tensor& tensor = *node.graph().FindParameterOrNull(node.target())->tensor;
  if (tensor.type().quant) return false;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (tensor.At(i) != value || std::signbit(tensor.At(i)) != std::signbit(value)) return false;
  }
  return true;
}

bool ReturnsOperand0(const Node& node) {
  const ir::OpSchema& op = *node.op();
  const Node& input = *node.operand(0);
  if (op.view == ir::View::kSameOrder || op.name == "to") return true;  // The caller compares the types.
  if (op.name == "dropout") return !node.attribute("training").as_bool();
  if (op.name == "expand") return node.attribute(ir::kBatchAttribute).as_int() == 0;
  if (op.name == "permute") return IsSorted(node.attribute("dims").as_ints(), input.tensor_type().rank());
  if (op.name == "transpose") return SameAxis(node, "dim0", "dim1");
  if (op.name == "slice") return match::TakesAll(node);
  if (op.name == "pad") return AllAre(node.attribute("pads").as_ints(), 0);
  if (op.name == "cat") return node.num_operands() == 1;
  return false;
}

}  // namespace

Node* SameAsOrNull(const Node& node) {
  if (!node.is_call() || node.num_operands() == 0 || node.operand(0) == nullptr) return nullptr;
  if (node.type() == node.operand(0)->type() && ReturnsOperand0(node)) return node.operand(0);
  if (node.num_operands() != 2 || node.operand(1) == nullptr) return nullptr;
  const bool is_mul = node.IsOp("mul");
  const double neutral = is_mul || node.IsOp("div") ? 1 : 0;
  if (!is_mul && !node.IsOp("div") && !node.IsOp("sub")) return nullptr;
  if (node.type() == node.operand(0)->type() && IsConstantOf(*node.operand(1), neutral)) return node.operand(0);
  if (is_mul && node.type() == node.operand(1)->type() && IsConstantOf(*node.operand(0), neutral)) {
    return node.operand(1);
  }
  return nullptr;
}

}  // namespace fuselage::cleanup
