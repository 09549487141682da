#include "passes/normalize/rules.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/match/properties.h"
#include "passes/normalize/attention.h"
#include "passes/normalize/branches.h"
#include "passes/normalize/one_row.h"

namespace fuselage::normalize {
namespace {

using ir::Node;
using passes::Remarks;

const Node* OperandOrNull(const Node& node, int i) { return i < node.num_operands() ? node.operand(i) : nullptr; }

// matmul(x, constant [in, out]) => linear(x);  matmul(a [..., m, 1], b [..., 1, n]) => mul(a, b)
absl::StatusOr<std::vector<NewCall>> SimplifiedMatmul(const Node& node, Remarks& remarks) {
  Node* input = node.operand(0);
  const Node& weight = *node.operand(1);
  if (std::min(input->tensor_type().rank(), weight.tensor_type().rank()) >= 2 &&
      input->tensor_type().shape.back() == 1 && !IsConstant(weight)) {
    return std::vector<NewCall>{{"mul", {input, node.operand(1)}, {}, {}}};
  }
  if (!match::IsF32(node) || weight.tensor_type().rank() != 2) {
    return std::vector<NewCall>();
  }
  if (!IsConstant(weight)) {
    remarks.Missed(node, absl::StrCat("no linear: its weight is computed by %", weight.name()));
    return std::vector<NewCall>();
  }
  ASSIGN_OR_RETURN(const Constant constant, ConstantOf(weight));
  return std::vector<NewCall>{{"linear", {input}, {{"weight", Transposed(constant)}}, {}}};
}

// The bias of gemm(a, b, c) as one value per column, times beta. nullopt where it is none of that kind.
absl::StatusOr<std::optional<Constant>> GemmBias(const Node& c, int64_t columns, double beta) {
  const Shape& shape = c.tensor_type().shape;
  const bool repeated = c.tensor_type().num_elements() == 1;
  const bool per_column = !shape.empty() && shape.back() == columns && c.tensor_type().num_elements() == columns;
  if (!IsConstant(c) || (!repeated && !per_column)) return std::optional<Constant>();
  ASSIGN_OR_RETURN(Constant bias, ConstantOf(c));
  const bool as_it_is = shape == Shape{columns} && beta == 1;
  if (as_it_is) return std::optional<Constant>(std::move(bias));
  if (bias.tensor->dtype() != DType::kF32) return std::optional<Constant>();
  bias = Reshaped(bias, {columns});
  if (beta != 1) bias = Scaled(bias, beta);
  return std::optional<Constant>(std::move(bias));
}

// alpha * a * b + beta * c, as gemm and addmm spell it.
struct Gemm {
  Node* a;
  const Node& b;
  const Node* c;
  bool trans_a = false, trans_b = false;
};

Gemm GemmOf(const Node& node) {
  if (node.IsOp("addmm")) return {node.operand(1), *node.operand(2), node.operand(0)};
  return {node.operand(0), *node.operand(1), OperandOrNull(node, 2), node.attribute("trans_a").as_bool(),
          node.attribute("trans_b").as_bool()};
}

// gemm(a, constant b, constant c), addmm(constant c, a, constant b) => linear(a)
absl::StatusOr<std::vector<NewCall>> GemmToLinear(const Node& node, Remarks& remarks) {
  const std::vector<NewCall> none;
  const auto& [a, b, c, trans_a, trans_b] = GemmOf(node);
  const double alpha = node.attribute("alpha").as_float(), beta = node.attribute("beta").as_float();
  if (!match::IsF32(node)) return none;
  if (!IsConstant(b)) {
    remarks.Missed(node, absl::StrCat("no linear: its weight is computed by %", b.name()));
    return none;
  }
  if (trans_a) {
    remarks.Missed(node, "no linear: trans_a=true");
    return none;
  }
  ASSIGN_OR_RETURN(Constant weight, ConstantOf(b));
  if (alpha != 1 && weight.tensor->dtype() != DType::kF32) {
    remarks.Missed(node, absl::StrCat("no linear: alpha=", alpha, " on a quantized weight"));
    return none;
  }
  NewCall linear{"linear", {a}, {}, {}};
  if (node.IsOp("gemm")) linear.attributes.emplace("activation", node.attribute("activation"));
  std::optional<Constant> bias;
  if (c != nullptr && beta != 0) {
    ASSIGN_OR_RETURN(bias, GemmBias(*c, node.tensor_type().shape.back(), beta));
    if (!bias) {
      remarks.Missed(node, absl::StrCat("no linear: its bias %", c->name(), " is not one constant per column"));
      return none;
    }
  }
  if (!trans_b) weight = Transposed(weight);
  if (alpha != 1) weight = Scaled(weight, alpha);
  linear.parameters.emplace_back("weight", std::move(weight));
  if (bias) linear.parameters.emplace_back("bias", *std::move(bias));
  return std::vector<NewCall>{std::move(linear)};
}

// linear(x, constant weight, computed bias) => linear(x) + bias
absl::StatusOr<std::vector<NewCall>> ComputedBiasToAdd(const Node& node) {
  const Node* weight = OperandOrNull(node, 1);
  Node* bias = node.num_operands() > 2 ? node.operand(2) : nullptr;
  const bool computed = node.module() == nullptr && bias != nullptr && !IsConstant(*bias) && IsConstant(*weight);
  if (!computed || !match::IsF32(node) || node.attribute("activation").as_string() != "none") {
    return std::vector<NewCall>();
  }
  ASSIGN_OR_RETURN(Constant constant, ConstantOf(*weight));
  return std::vector<NewCall>{{"linear", {node.operand(0)}, {{"weight", std::move(constant)}}, {}},
                              {"add", {bias}, {}, {}}};
}

// avg_pool whose one window is the whole input => global_avg_pool
std::vector<NewCall> PoolToGlobal(const Node& node) {
  const Shape& in = node.operand(0)->tensor_type().shape;
  const std::vector<int64_t>& kernel = node.attribute("kernel_size").as_ints();
  const std::vector<int64_t>& padding = node.attribute("padding").as_ints();
  const Shape& out = node.tensor_type().shape;
  const bool one_window = std::all_of(out.begin() + 2, out.end(), [](int64_t d) { return d == 1; });
  const bool covers = one_window && Shape(in.begin() + 2, in.end()) == kernel;
  const bool padded = std::any_of(padding.begin(), padding.end(), [](int64_t p) { return p != 0; });
  if (!covers || padded) return {};
  return {{"global_avg_pool", {node.operand(0)}, {}, {}}};
}

// adaptive_avg_pool to one element => global_avg_pool; to sizes that divide the input's => avg_pool
std::vector<NewCall> AdaptiveToPool(const Node& node, Remarks& remarks) {
  const Shape& in = node.operand(0)->tensor_type().shape;
  const std::vector<int64_t>& out = node.attribute("output_size").as_ints();
  if (std::all_of(out.begin(), out.end(), [](int64_t size) { return size == 1; })) {
    return {{"global_avg_pool", {node.operand(0)}, {}, {}}};
  }
  std::vector<int64_t> window;
  for (size_t i = 0; i < out.size(); ++i) {
    if (in[2 + i] % out[i] != 0) {
      remarks.Missed(node, absl::StrCat("stays adaptive: ", in[2 + i], " is no multiple of ", out[i]));
      return {};
    }
    window.push_back(in[2 + i] / out[i]);
  }
  return {{absl::StrCat("avg_pool", out.size(), "d"),
           {node.operand(0)},
           {},
           {{"kernel_size", window}, {"stride", window}}}};
}

// reshape that merges the dimensions [start, end] and keeps dimension 0 => flatten
std::vector<NewCall> ReshapeToFlatten(const Node& node) {
  const Shape& in = node.operand(0)->tensor_type().shape;
  const Shape& out = node.tensor_type().shape;
  if (out.size() >= in.size()) return {};
  const size_t merged = in.size() - out.size() + 1;
  for (size_t start = 1; start < out.size(); ++start) {
    if (!std::equal(out.begin(), out.begin() + start, in.begin())) break;
    const size_t end = start + merged - 1;
    if (!std::equal(out.begin() + start + 1, out.end(), in.begin() + end + 1)) continue;
    const bool to_last = end + 1 == in.size();
    // Element counts agree, so the merged dimension does where no other is 0.
    if (std::count(in.begin(), in.end(), 0) > 0) return {};
    AttributeMap attributes = {{"start_dim", static_cast<int64_t>(start)},
                               {"end_dim", to_last ? int64_t{-1} : static_cast<int64_t>(end)}};
    return {{"flatten", {node.operand(0)}, {}, std::move(attributes)}};
  }
  return {};
}

// Axis i of the result is axis dims[i] of operand 0. Empty: `node` is no permute or transpose.
absl::StatusOr<std::vector<int64_t>> AxesOf(const Node& node) {
  std::vector<int64_t> dims;
  if (!node.is_call() || (!node.IsOp("permute") && !node.IsOp("transpose"))) return dims;
  const int rank = node.tensor_type().rank();
  dims.resize(rank);
  if (node.IsOp("permute")) {
    for (int i = 0; i < rank; ++i) {
      ASSIGN_OR_RETURN(dims[i], NormalizeAxis(node.attribute("dims").as_ints()[i], rank));
    }
    return dims;
  }
  std::iota(dims.begin(), dims.end(), 0);
  ASSIGN_OR_RETURN(const int dim0, NormalizeAxis(node.attribute("dim0").as_int(), rank));
  ASSIGN_OR_RETURN(const int dim1, NormalizeAxis(node.attribute("dim1").as_int(), rank));
  std::swap(dims[dim0], dims[dim1]);
  return dims;
}

// Tokens are an image's pixels in their order. Where they lie in NHWC, nothing moves between the two, if the permute is
// one of an image. For x [N, C, H, W] and flatten [N, C, H*W]:
//   permute(flatten(x), 0, 2, 1)               =>  flatten(permute(x, 0, 2, 3, 1))       [N, H*W, C]
// For x [N, H*W, C]:
//   reshape(permute(x, 0, 2, 1), N, C, H, W)   =>  permute(reshape(x, N, H, W, C), 0, 3, 1, 2)
bool SwapsLastTwoOfThree(const Node& node) {
  const absl::StatusOr<std::vector<int64_t>> axes = AxesOf(node);
  return axes.ok() && *axes == std::vector<int64_t>{0, 2, 1};
}
bool IsEmpty(const Node& node) { return node.tensor_type().num_elements() == 0; }  // A reshape's 0 says something else.
std::vector<NewCall> TokensOfImage(const Node& node) {
  const Node& view = *node.operand(0);
  if (!SwapsLastTwoOfThree(node) || !IsView(view)) return {};
  const Shape &image = view.operand(0)->tensor_type().shape, &tokens = view.tensor_type().shape;
  if (image.size() != 4 || image[0] != tokens[0] || image[1] != tokens[1] || IsEmpty(node)) return {};
  return {{"permute", {view.operand(0)}, {}, {{"dims", std::vector<int64_t>{0, 2, 3, 1}}}},
          {"flatten", {}, {}, {{"start_dim", int64_t{1}}, {"end_dim", int64_t{2}}}}};
}

// A detector's channels, those of an anchor together, behind its pixels. For x [N, A*K, H, W]:
//   permute(reshape(x, N, A, K, H, W), 0, 1, 3, 4, 2)
//     =>  permute(reshape(permute(x, 0, 2, 3, 1), N, H, W, A, K), 0, 3, 1, 2, 4)
std::vector<NewCall> AnchorsOfImage(const Node& node) {
  const Node& view = *node.operand(0);
  const absl::StatusOr<std::vector<int64_t>> axes = AxesOf(node);
  if (!axes.ok() || *axes != std::vector<int64_t>{0, 1, 3, 4, 2} || !IsView(view) || IsEmpty(node)) return {};
  const Shape &image = view.operand(0)->tensor_type().shape, &anchors = view.tensor_type().shape;
  if (image != Shape{anchors[0], anchors[1] * anchors[2], anchors[3], anchors[4]}) return {};
  const std::vector<int64_t> pixels = {0, image[2], image[3], anchors[1], anchors[2]};
  return {{"permute", {view.operand(0)}, {}, {{"dims", std::vector<int64_t>{0, 2, 3, 1}}}},
          {"reshape", {}, {}, {{"shape", pixels}}},
          {"permute", {}, {}, {{"dims", std::vector<int64_t>{0, 3, 1, 2, 4}}}}};
}

std::vector<NewCall> ImageOfTokens(const Node& node) {
  const Node& permute = *node.operand(0);
  const Shape &tokens = permute.tensor_type().shape, &image = node.tensor_type().shape;
  if (tokens.size() != 3 || !SwapsLastTwoOfThree(permute)) return {};
  if (image.size() != 4 || image[0] != tokens[0] || image[1] != tokens[1] || IsEmpty(node)) return {};
  return {{"reshape", {permute.operand(0)}, {}, {{"shape", std::vector<int64_t>{0, image[2], image[3], image[1]}}}},
          {"permute", {}, {}, {{"dims", std::vector<int64_t>{0, 3, 1, 2}}}}};
}

// permute(permute(x)) => permute(x); transpose is one too
absl::StatusOr<std::vector<NewCall>> PermutesToOne(const Node& node) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> inner, AxesOf(*node.operand(0)));
  if (inner.empty()) return std::vector<NewCall>();
  ASSIGN_OR_RETURN(std::vector<int64_t> dims, AxesOf(node));
  for (int64_t& axis : dims) axis = inner[axis];
  return std::vector<NewCall>{{"permute", {node.operand(0)->operand(0)}, {}, {{"dims", std::move(dims)}}}};
}

// view(linear(view(x))) => linear(x), for an x [..., in] and a result [..., out] of the same leading dimensions
std::vector<NewCall> LinearOfRows(const Node& node) {
  const Node* linear = node.operand(0);
  if (!linear->IsOp("linear") || linear->kind() != ir::NodeKind::kCallModule || linear->num_operands() != 1 ||
      linear->users().size() != 1 || !IsView(*linear->operand(0))) {
    return {};
  }
  Node* x = linear->operand(0)->operand(0);
  Shape wanted = x->tensor_type().shape;
  if (wanted.empty() || wanted.back() != linear->operand(0)->tensor_type().shape.back()) return {};
  wanted.back() = linear->tensor_type().shape.back();
  if (node.tensor_type().shape != wanted) return {};
  NewCall call = CallWithoutOperands(*linear);
  call.operands = {x};
  return {std::move(call)};
}

bool IsInOrder(const std::vector<int64_t>& axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool IsNoOp(const Node& node) {
  if (node.IsOp("to")) return node.type() == node.operand(0)->type();
  if (node.IsOp("permute")) return IsInOrder(node.attribute("dims").as_ints());
  if (node.IsOp("pad")) {
    const std::vector<int64_t>& pads = node.attribute("pads").as_ints();
    return std::count(pads.begin(), pads.end(), 0) == static_cast<int64_t>(pads.size());
  }
  if (node.IsOp("slice")) return match::TakesAll(node);
  return node.IsOp("identity") || (node.IsOp("dropout") && !node.attribute("training").as_bool());
}

// Whether all elements of a constant are this.
bool IsAll(const Node& node, double value) {
  if (node.kind() != ir::NodeKind::kGetAttr || node.tensor_type().quant) return false;
  const Tensor& constant = *node.graph().FindParameterOrNull(node.target())->tensor;
  for (int64_t i = 0; i < constant.num_elements(); ++i) {
    if (constant.At(i) != value) return false;
  }
  return true;
}

// The operand that others leave as it is: x + 0, x - 0, x * 1, x / 1, where(true, x, y), where(false, y, x). Masks of
// texts that nothing is left out of.
Node* UnchangedOrNull(const Node& node) {
  if (!node.is_call() || !node.op()->elementwise || !node.type().is_tensor()) return nullptr;
  const auto same = [&](int i) { return node.operand(i)->type() == node.type() ? node.operand(i) : nullptr; };
  if (node.IsOp("where")) return IsAll(*node.operand(0), 1) ? same(1) : IsAll(*node.operand(0), 0) ? same(2) : nullptr;
  const bool sum = node.IsOp("add"), product = node.IsOp("mul");
  if (!sum && !product && !node.IsOp("sub") && !node.IsOp("div")) return nullptr;
  if (sum && node.attribute("activation").as_string() != "none") return nullptr;
  const double neutral = sum || node.IsOp("sub") ? 0 : 1;
  if (same(0) != nullptr && IsAll(*node.operand(1), neutral)) return node.operand(0);
  const bool swaps = product || (sum && node.attribute("alpha").as_float() == 1);
  return swaps && same(1) != nullptr && IsAll(*node.operand(0), neutral) ? node.operand(1) : nullptr;
}

}  // namespace

NewCall CallWithoutOperands(const Node& node) {
  NewCall call{node.op()->name, {}, {}, node.attributes()};
  for (const ir::Argument& argument : node.arguments()) {
    if (!argument.spec->parameter || argument.parameter == nullptr) continue;
    const std::string& name = argument.parameter->name;
    call.parameters.emplace_back(argument.spec->name,
                                 Constant{argument.parameter->tensor, name, name, /*as_stored=*/true});
  }
  return call;
}

bool IsView(const Node& node) { return node.is_call() && node.op()->view == ir::View::kSameOrder; }

absl::StatusOr<std::vector<NewCall>> Simplified(const Node& node, Remarks& remarks) {
  const std::string& op = node.op()->name;
  if (IsView(node)) {
    std::vector<NewCall> linear = LinearOfRows(node);
    if (!linear.empty()) return linear;
  }
  if (op == "matmul") return SimplifiedMatmul(node, remarks);
  if (op == "gemm" || op == "addmm") return GemmToLinear(node, remarks);
  if (op == "linear") return ComputedBiasToAdd(node);
  if (op == "avg_pool1d" || op == "avg_pool2d" || op == "avg_pool3d") return PoolToGlobal(node);
  if (absl::StartsWith(op, "adaptive_avg_pool")) return AdaptiveToPool(node, remarks);
  if (op == "relu6") return std::vector<NewCall>{{"clamp", {node.operand(0)}, {}, {{"min", 0.0}, {"max", 6.0}}}};
  if (op == "permute" || op == "transpose") {
    for (const auto rule : {TokensOfImage, AnchorsOfImage}) {
      std::vector<NewCall> calls = rule(node);
      if (!calls.empty()) return calls;
    }
    return PermutesToOne(node);
  }
  if (op == "scaled_dot_product_attention") return SimplifiedAttention(node);
  if (op == "softmax" && node.attribute("dim").as_int() == node.tensor_type().rank() - 1) {
    return std::vector<NewCall>{{"softmax", {node.operand(0)}, {}, {}}};
  }
  if (op == "unsqueeze") return ImageOfTokens(node);
  if (op == "getitem") return PartOfSplit(node);
  if (op == "reshape") {
    for (const auto rule : {AddInPlaceOfViews, ImageOfTokens}) {
      std::vector<NewCall> calls = rule(node);
      if (!calls.empty()) return calls;
    }
    return ReshapeToFlatten(node);
  }
  if (op == "clamp" && match::IsF32(node) && node.attribute("min").as_float() == 0 &&
      node.attribute("max").as_float() == std::numeric_limits<double>::infinity()) {
    return std::vector<NewCall>{{"relu", {node.operand(0)}, {}, {}}};
  }
  return std::vector<NewCall>();
}

absl::StatusOr<std::vector<NewCall>> MeanToPool(const Node& node) {
  const int rank = node.operand(0)->tensor_type().rank();
  std::vector<int64_t> dims;
  for (int64_t dim : node.attribute("dims").as_ints()) {
    ASSIGN_OR_RETURN(const int axis, NormalizeAxis(dim, rank));
    dims.push_back(axis);
  }
  std::sort(dims.begin(), dims.end());
  std::vector<int64_t> spatial;
  for (int axis = 2; axis < rank; ++axis) spatial.push_back(axis);
  if (rank < 3 || dims != spatial || !match::IsF32(node)) return std::vector<NewCall>();
  std::vector<NewCall> calls = {{"global_avg_pool", {node.operand(0)}, {}, {}}};
  if (!node.attribute("keepdim").as_bool()) calls.push_back({"flatten", {}, {}, {}});
  return calls;
}

Node* SameOrNull(const Node& node) {
  if (IsNoOp(node)) return node.operand(0);
  for (const auto find : {UnchangedOrNull, SlicedOperandOrNull}) {
    if (Node* same = find(node); same != nullptr) return same;
  }
  return ViewedAndBackOrNull(node);
}

}  // namespace fuselage::normalize
