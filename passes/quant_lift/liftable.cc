#include "passes/quant_lift/liftable.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fuselage::quant_lift {
namespace {

using ir::Node;

// --- What each op says of axes.

Axes ScaleAxis(const Node& quantize) {
  const int64_t axis = quantize.attribute("axis").as_int();
  return axis == QuantParams::kPerTensor ? Axes{} : Axes{axis};
}

Axes Dims(const Node& quantize) {
  const Axes& dims = quantize.attribute("dims").as_ints();
  return dims.empty() ? dims : CanonicalAxes(dims, quantize.operand(0)->tensor_type().shape);
}

Axes GroupSize(const Node& quantize) {
  return {std::min(quantize.attribute("group_size").as_int(), quantize.operand(0)->tensor_type().shape.back())};
}

absl::StatusOr<Axes> ScaleAxisInFront(const View& view, const Axes& axis) {
  if (axis.empty()) return axis;
  ASSIGN_OR_RETURN(const int64_t in_front, AxisInFront(view, axis[0]));
  return Axes{in_front};
}

absl::StatusOr<Axes> DimsInFront(const View& view, const Axes& dims) {
  if (dims.empty()) return dims;
  return AxesInFront(view, dims);
}

absl::StatusOr<Axes> GroupSizeInFront(const View& view, const Axes& group_size) {
  RETURN_IF_ERROR(CheckGroupsInFront(view, group_size[0]));
  return group_size;
}

struct LiftableOp {
  absl::string_view op;
  absl::string_view attribute;  // That speaks of axes.
  Axes (*own)(const Node& quantize);
  absl::StatusOr<Axes> (*in_front)(const View& view, const Axes& behind);
};
constexpr LiftableOp kLiftable[] = {
    {"dynamic_quantize_asymmetric", "dims", Dims, DimsInFront},
    {"dynamic_quantize_mxfp4", "group_size", GroupSize, GroupSizeInFront},
    {"dynamic_quantize_symmetric", "dims", Dims, DimsInFront},
    {"quantize", "axis", ScaleAxis, ScaleAxisInFront},
};

const LiftableOp* FindOrNull(const Node& node) {
  for (const LiftableOp& liftable : kLiftable) {
    if (node.IsOp(liftable.op)) return &liftable;
  }
  return nullptr;
}

// The codes' type for a value of `shape`.
TensorType CodesType(const Quantizing& quantizing, const Shape& shape) {
  TensorType codes = quantizing.quantize->type().elements()[0];
  codes.shape = shape;
  if (codes.quant && !quantizing.axes.empty()) codes.quant->axis = static_cast<int>(quantizing.axes[0]);
  return codes;
}

}  // namespace

bool IsLiftable(const Node& node) { return FindOrNull(node) != nullptr; }

int ResultIndex(const Node& getitem) {
  const int64_t index = getitem.attribute("index").as_int();
  const auto size = static_cast<int64_t>(getitem.operand(0)->type().elements().size());
  return static_cast<int>(index < 0 ? index + size : index);
}

Quantizing OwnQuantizing(const Node& quantize) { return {&quantize, FindOrNull(quantize)->own(quantize)}; }

absl::StatusOr<Quantizing> InFrontOf(const Node& view, const View& axes, const Quantizing& behind) {
  Quantizing in_front{behind.quantize, {}};
  ASSIGN_OR_RETURN(in_front.axes, FindOrNull(*behind.quantize)->in_front(axes, behind.axes));
  const TensorType codes = CodesType(behind, axes.to);
  if (!codes.quant) return in_front;
  // The codes carry their parameters through the view, so its inference has a say.
  const ir::Type operand(CodesType(in_front, axes.from));
  std::vector<const ir::Type*> operands = view.graph().OperandTypes(view);
  operands[0] = &operand;
  ASSIGN_OR_RETURN(const ir::Type type, ir::Infer(*view.op(), view.attributes(), std::move(operands)));
  if (type == ir::Type(codes)) return in_front;
  return absl::UnimplementedError(
      absl::StrCat("codes behind it would be ", ir::ToString(type), ", wanted ", ToString(codes)));
}

AttributeMap AttributesOf(const Quantizing& quantizing) {
  const std::string name(FindOrNull(*quantizing.quantize)->attribute);
  const bool list = quantizing.quantize->attribute(name).kind() == AttributeKind::kInts;
  AttributeMap attributes = quantizing.quantize->attributes();
  if (list) {
    attributes.insert_or_assign(name, quantizing.axes);
  } else if (!quantizing.axes.empty()) {
    attributes.insert_or_assign(name, quantizing.axes[0]);
  }
  return attributes;
}

absl::StatusOr<ir::Type> ResultsOf(const Quantizing& quantizing, const TensorType& input) {
  const ir::Type type(input);
  std::vector<const ir::Type*> operands = quantizing.quantize->graph().OperandTypes(*quantizing.quantize);
  operands[0] = &type;
  return ir::Infer(*quantizing.quantize->op(), AttributesOf(quantizing), std::move(operands));
}

int Keys::Of(const Quantizing& quantizing) {
  const Node& quantize = *quantizing.quantize;
  const TensorType& codes = quantize.type().elements()[0];
  std::string text =
      absl::StrCat(quantize.op()->name, ";", DTypeName(codes.dtype), ";", absl::StrJoin(quantizing.axes, ","));
  if (codes.quant) {
    // As bytes: decimal text takes a hundred times as long.
    const auto append = [&text](const auto& list) {
      text.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(list[0]));
    };
    text += ";typed;";
    append(codes.quant->scales);
    append(codes.quant->zero_points);
  } else {
    for (int i = 1; i < static_cast<int>(quantize.op()->operands.size()); ++i) {
      absl::StrAppend(&text, ";", OperandText(quantize, i));
    }
  }
  return Number(std::move(text));
}

// A scale or a zero point. Its shape says nothing beyond the axis: one value may be [] or [1].
std::string Keys::OperandText(const Node& quantize, int i) {
  const Node* operand = i < quantize.num_operands() ? quantize.operand(i) : nullptr;
  if (operand == nullptr) return "none";
  if (operand->kind() != ir::NodeKind::kGetAttr) return absl::StrCat("%", operand->name());
  const auto [it, added] = constants_.emplace(operand->target(), 0);
  if (added) {
    const Tensor& tensor = *operand->graph().FindParameterOrNull(operand->target())->tensor;
    const absl::string_view bytes(static_cast<const char*>(tensor.raw_data()), tensor.byte_size());
    const bool zeros = absl::c_all_of(bytes, [](char byte) { return byte == 0; });
    // A zero point of zeros is none.
    it->second = zeros ? -1 : Number(absl::StrCat("constant ", DTypeName(tensor.dtype()), bytes));
  }
  return it->second < 0 ? "none" : absl::StrCat("@", it->second);
}

}  // namespace fuselage::quant_lift
