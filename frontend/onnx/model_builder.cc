#include "frontend/onnx/model_builder.h"

#include <algorithm>

namespace fuselage::onnx {
namespace {

void Describe(const std::string& name, const std::vector<Dim>& dims, DType dtype, schema::ValueInfoProto* value) {
  value->set_name(name);
  auto* type = value->mutable_type()->mutable_tensor_type();
  type->set_elem_type(ElementType(dtype));
  type->mutable_shape();
  for (const Dim& dim : dims) {
    auto* added = type->mutable_shape()->add_dim();
    if (dim.symbol.empty()) {
      added->set_dim_value(dim.value);
    } else {
      added->set_dim_param(dim.symbol);
    }
  }
}

}  // namespace

int ElementType(DType dtype) {
  switch (dtype) {
    case DType::kBool: return schema::TensorProto::BOOL;
    case DType::kU8: return schema::TensorProto::UINT8;
    case DType::kI8: return schema::TensorProto::INT8;
    case DType::kI16: return schema::TensorProto::INT16;
    case DType::kI32: return schema::TensorProto::INT32;
    case DType::kI64: return schema::TensorProto::INT64;
    case DType::kF16: return schema::TensorProto::FLOAT16;
    case DType::kF32: return schema::TensorProto::FLOAT;
    case DType::kF64: return schema::TensorProto::DOUBLE;
  }
  return 0;
}

Tensor Seeded(Shape shape, uint64_t seed, DType dtype) {
  return SeededTensor({dtype, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

schema::TensorProto ToProto(const std::string& name, const Tensor& tensor) {
  schema::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(ElementType(tensor.dtype()));
  for (int64_t dim : tensor.shape()) proto.add_dims(dim);
  proto.set_raw_data(tensor.raw_data(), tensor.byte_size());
  return proto;
}

ModelBuilder::ModelBuilder(int opset) {
  model_.set_ir_version(8);
  graph().set_name("test");
  auto* import = model_.add_opset_import();
  import->set_domain("");
  import->set_version(opset);
}

ModelBuilder& ModelBuilder::Input(const std::string& name, std::vector<Dim> dims, DType dtype) {
  Describe(name, dims, dtype, graph().add_input());
  return *this;
}

ModelBuilder& ModelBuilder::Initializer(const std::string& name, const Tensor& tensor) {
  *graph().add_initializer() = ToProto(name, tensor);
  return *this;
}

ModelBuilder& ModelBuilder::Output(const std::string& name, DType dtype) {
  auto* output = graph().add_output();
  output->set_name(name);
  output->mutable_type()->mutable_tensor_type()->set_elem_type(ElementType(dtype));
  return *this;
}

ModelBuilder& ModelBuilder::Output(const std::string& name, std::vector<Dim> dims, DType dtype) {
  Describe(name, dims, dtype, graph().add_output());
  return *this;
}

ModelBuilder& ModelBuilder::Node(const std::string& op, std::vector<std::string> inputs,
                                 std::vector<std::string> outputs, const std::string& name) {
  auto* node = graph().add_node();
  node->set_op_type(op);
  node->set_name(name);
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  return *this;
}

schema::AttributeProto* ModelBuilder::AddAttribute(const std::string& name,
                                                   schema::AttributeProto::AttributeType type) {
  auto* attribute = last_node().add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}

ModelBuilder& ModelBuilder::Domain(const std::string& domain) {
  last_node().set_domain(domain);
  const auto& imports = model_.opset_import();
  if (std::none_of(imports.begin(), imports.end(), [&](const auto& known) { return known.domain() == domain; })) {
    auto* import = model_.add_opset_import();
    import->set_domain(domain);
    import->set_version(1);
  }
  return *this;
}

ModelBuilder& ModelBuilder::Int(const std::string& name, int64_t value) {
  AddAttribute(name, schema::AttributeProto::INT)->set_i(value);
  return *this;
}

ModelBuilder& ModelBuilder::Float(const std::string& name, float value) {
  AddAttribute(name, schema::AttributeProto::FLOAT)->set_f(value);
  return *this;
}

ModelBuilder& ModelBuilder::String(const std::string& name, const std::string& value) {
  AddAttribute(name, schema::AttributeProto::STRING)->set_s(value);
  return *this;
}

ModelBuilder& ModelBuilder::Ints(const std::string& name, std::vector<int64_t> values) {
  auto* attribute = AddAttribute(name, schema::AttributeProto::INTS);
  for (int64_t value : values) attribute->add_ints(value);
  return *this;
}

ModelBuilder& ModelBuilder::Floats(const std::string& name, const std::vector<float>& values) {
  auto* attribute = AddAttribute(name, schema::AttributeProto::FLOATS);
  for (float value : values) attribute->add_floats(value);
  return *this;
}

ModelBuilder& ModelBuilder::Strings(const std::string& name, const std::vector<std::string>& values) {
  auto* attribute = AddAttribute(name, schema::AttributeProto::STRINGS);
  for (const std::string& value : values) attribute->add_strings(value);
  return *this;
}

ModelBuilder& ModelBuilder::Value(const std::string& name, const Tensor& tensor) {
  *AddAttribute(name, schema::AttributeProto::TENSOR)->mutable_t() = ToProto(name, tensor);
  return *this;
}

}  // namespace fuselage::onnx
