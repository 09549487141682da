#include "frontend/onnx/call.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "frontend/onnx/tensors.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx {
namespace {

using schema::AttributeProto;

// Models of the first IR version state no type: it shows in which field is set.
AttributeProto::AttributeType TypeOf(const AttributeProto& attribute) {
  if (attribute.type() != AttributeProto::UNDEFINED) return attribute.type();
  if (attribute.has_f()) return AttributeProto::FLOAT;
  if (attribute.has_i()) return AttributeProto::INT;
  if (attribute.has_s()) return AttributeProto::STRING;
  if (attribute.has_t()) return AttributeProto::TENSOR;
  if (attribute.has_g()) return AttributeProto::GRAPH;
  if (attribute.floats_size() > 0) return AttributeProto::FLOATS;
  if (attribute.ints_size() > 0) return AttributeProto::INTS;
  return AttributeProto::UNDEFINED;
}

const std::string& NameOf(const schema::NodeProto& node) {
  if (!node.name().empty() || node.output().empty()) return node.name();
  return node.output(0);
}

}  // namespace

std::string NodeLabel(const schema::NodeProto& node) { return Quote(NameOf(node)); }

absl::Status CheckAttributes(const schema::NodeProto& node, absl::string_view specs) {
  const std::vector<absl::string_view> allowed = absl::StrSplit(specs, ' ', absl::SkipEmpty());
  for (int i = 0; i < node.attribute_size(); ++i) {
    const AttributeProto& attribute = node.attribute(i);
    const std::string label = absl::StrCat("attribute ", Quote(attribute.name()));
    for (int j = 0; j < i; ++j) {
      if (node.attribute(j).name() == attribute.name()) {
        return absl::InvalidArgumentError(absl::StrCat("found ", label, " twice, wanted it once"));
      }
    }
    if (!attribute.ref_attr_name().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(label, ": found a reference to ", Quote(attribute.ref_attr_name()), " outside of a function"));
    }
    absl::string_view wanted;
    for (absl::string_view spec : allowed) {
      const std::pair<absl::string_view, absl::string_view> name_and_type = absl::StrSplit(spec, '=');
      if (name_and_type.first == attribute.name()) wanted = name_and_type.second;
    }
    if (wanted.empty()) {
      return absl::UnimplementedError(
          absl::StrCat("found ", label, ", wanted ", specs.empty() ? "none" : absl::StrCat("one of ", specs)));
    }
    const std::string found = AttributeProto::AttributeType_Name(TypeOf(attribute));
    // An empty list of the first IR version looks like nothing.
    if (found != wanted && TypeOf(attribute) != AttributeProto::UNDEFINED) {
      return absl::InvalidArgumentError(absl::StrCat(label, ": found ", found, ", wanted ", wanted));
    }
  }
  return absl::OkStatus();
}

Call::Call(const schema::NodeProto& node, std::string target, int opset, std::vector<Value> operands,
           std::vector<bool> wanted, Builder* builder, Inliner* inliner)
    : node_(node),
      target_(std::move(target)),
      opset_(opset),
      name_(NameOf(node)),
      operands_(std::move(operands)),
      wanted_(std::move(wanted)),
      results_(wanted_.size()),
      builder_(builder),
      inliner_(inliner) {}

const std::string& Call::operator_name() const { return node_.op_type(); }

int Call::num_named_outputs() const {
  return static_cast<int>(std::count_if(node_.output().begin(), node_.output().end(),
                                        [](const std::string& name) { return !name.empty(); }));
}

const AttributeProto* Call::FindOrNull(absl::string_view name) const {
  for (const AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t Call::Int(absl::string_view name, int64_t otherwise) const {
  const AttributeProto* attribute = FindOrNull(name);
  return attribute == nullptr ? otherwise : attribute->i();
}

double Call::Float(absl::string_view name, double otherwise) const {
  const AttributeProto* attribute = FindOrNull(name);
  return attribute == nullptr ? otherwise : attribute->f();
}

std::string Call::String(absl::string_view name, absl::string_view otherwise) const {
  const AttributeProto* attribute = FindOrNull(name);
  return attribute == nullptr ? std::string(otherwise) : attribute->s();
}

std::vector<int64_t> Call::Ints(absl::string_view name) const {
  const AttributeProto* attribute = FindOrNull(name);
  if (attribute == nullptr) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<float> Call::Floats(absl::string_view name) const {
  const AttributeProto* attribute = FindOrNull(name);
  if (attribute == nullptr) return {};
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::string> Call::Strings(absl::string_view name) const {
  const AttributeProto* attribute = FindOrNull(name);
  if (attribute == nullptr) return {};
  return {attribute->strings().begin(), attribute->strings().end()};
}

const schema::TensorProto* Call::TensorOrNull(absl::string_view name) const {
  const AttributeProto* attribute = FindOrNull(name);
  return attribute == nullptr ? nullptr : &attribute->t();
}

absl::StatusOr<std::vector<Value>> Call::Inline(absl::string_view name, std::vector<Value> inputs) {
  const AttributeProto* attribute = FindOrNull(name);
  if (attribute == nullptr || !attribute->has_g()) {
    return absl::InvalidArgumentError(absl::StrCat("found no subgraph '", name, "', wanted it"));
  }
  return inliner_->Inline(attribute->g(), std::move(inputs));
}

absl::StatusOr<bool> Call::Flag(absl::string_view name, bool otherwise) const {
  const int64_t value = Int(name, otherwise);
  if (value != 0 && value != 1) {
    return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "': found ", value, ", wanted 0 or 1"));
  }
  return value == 1;
}

absl::StatusOr<const Tensor*> Call::Constant(int i, Batch batch) const {
  const Tensor* tensor = operand(i).TensorOrNull();
  if (tensor == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("input ", i, ": found the computed value ", Quote(operand(i).name), ", wanted a constant"));
  }
  if (batch == Batch::kFollowed) return tensor;
  RETURN_IF_ERROR(CheckFollowsRows(i));
  builder_->WarnOfFixedBatch(operand(i));
  return tensor;
}

absl::Status Call::CheckFollowsRows(int i) const {
  if (operand(i).follows == nullptr || operand(i).follows == operand(0).rows.count) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("input ", i, ": found ", Quote(operand(i).name),
                                               ", which follows from how many elements data says there are, wanted a "
                                               "constant"));
}

absl::StatusOr<std::vector<int64_t>> Call::ConstantInts(int i, Batch batch) const {
  ASSIGN_OR_RETURN(const Tensor* tensor, Constant(i, batch));
  return IntsOf(*tensor, absl::StrCat("input ", i, " ", Quote(operand(i).name)));
}

absl::StatusOr<std::vector<int64_t>> IntsOf(const Tensor& tensor, absl::string_view what) {
  if (tensor.rank() > 1 || (tensor.dtype() != DType::kI64 && tensor.dtype() != DType::kI32)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": found ", ToString(tensor.type()), ", wanted a list of i64"));
  }
  std::vector<int64_t> values(tensor.num_elements());
  for (size_t k = 0; k < values.size(); ++k) {
    values[k] = tensor.dtype() == DType::kI64 ? tensor.data<int64_t>()[k] : tensor.data<int32_t>()[k];
  }
  return values;
}

absl::StatusOr<double> Call::ConstantScalar(int i, Batch batch) const {
  ASSIGN_OR_RETURN(const Tensor* tensor, Constant(i, batch));
  if (tensor->num_elements() != 1 || std::isnan(tensor->At(0))) {
    return absl::InvalidArgumentError(absl::StrCat("input ", i, " ", Quote(operand(i).name), ": found ",
                                                   ToString(tensor->type()),
                                                   tensor->num_elements() == 1 ? " of NaN" : "", ", wanted a number"));
  }
  return tensor->At(0);
}

absl::StatusOr<Value> Call::EmitHelper(absl::string_view suffix, absl::string_view target,
                                       const std::vector<Value>& operands, AttributeMap attributes) {
  return builder_->Emit(absl::StrCat(name_, ".", suffix), target, operands, std::move(attributes));
}

absl::StatusOr<Value> Call::Scalar(absl::string_view suffix, DType dtype, double value) {
  Tensor tensor(dtype, Shape{});
  tensor.Set(0, value);
  return builder_->ChargedConstant(absl::StrCat(name_, ".", suffix), std::move(tensor));
}

absl::Status Call::Result(absl::string_view target, const std::vector<Value>& operands, AttributeMap attributes) {
  ASSIGN_OR_RETURN(Value value, Emit(target, operands, std::move(attributes)));
  Set(0, std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ListByOpset(const Call& call, absl::string_view name, int i, int opset) {
  if (call.opset() < opset) {
    if (call.has(i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("found ", name, " as an input, wanted an attribute before opset ", opset));
    }
    return call.Ints(name);
  }
  if (call.HasAttribute(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", name, " as an attribute, wanted an input from opset ", opset, " on"));
  }
  if (!call.has(i)) return std::vector<int64_t>();
  return call.ConstantInts(i);
}

}  // namespace fuselage::onnx
