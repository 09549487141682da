// ONNX models in memory: what the writer and the tests build.
#ifndef FUSELAGE_FRONTEND_ONNX_MODEL_BUILDER_H_
#define FUSELAGE_FRONTEND_ONNX_MODEL_BUILDER_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/base/tensor.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx {

// A fixed or symbolic dimension.
struct Dim {
  Dim(int64_t value) : value(value) {}         // NOLINT
  Dim(int value) : value(value) {}             // NOLINT
  Dim(const char* symbol) : symbol(symbol) {}  // NOLINT
  int64_t value = -1;
  std::string symbol;
};

// SeededTensor of a plain type.
Tensor Seeded(Shape shape, uint64_t seed, DType dtype = DType::kF32);

// TensorProto::DataType of an element type.
int ElementType(DType dtype);

// The tensor as raw_data.
schema::TensorProto ToProto(const std::string& name, const Tensor& tensor);

class ModelBuilder {
 public:
  explicit ModelBuilder(int opset = 13);

  ModelBuilder& Input(const std::string& name, std::vector<Dim> dims, DType dtype = DType::kF32);
  ModelBuilder& Initializer(const std::string& name, const Tensor& tensor);
  ModelBuilder& Output(const std::string& name, DType dtype = DType::kF32);  // Its shape is not stated.
  ModelBuilder& Output(const std::string& name, std::vector<Dim> dims, DType dtype);

  // Its attributes follow: Node("Conv", ...).Ints("pads", {1, 1, 1, 1}).
  ModelBuilder& Node(const std::string& op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                     const std::string& name = "");
  ModelBuilder& Domain(const std::string& domain);
  ModelBuilder& Int(const std::string& name, int64_t value);
  ModelBuilder& Float(const std::string& name, float value);
  ModelBuilder& String(const std::string& name, const std::string& value);
  ModelBuilder& Floats(const std::string& name, const std::vector<float>& values);
  ModelBuilder& Strings(const std::string& name, const std::vector<std::string>& values);
  ModelBuilder& Ints(const std::string& name, std::vector<int64_t> values);
  ModelBuilder& Value(const std::string& name, const Tensor& tensor);

  schema::ModelProto& proto() { return model_; }
  schema::GraphProto& graph() { return *model_.mutable_graph(); }
  schema::NodeProto& last_node() { return *graph().mutable_node(graph().node_size() - 1); }
  std::string Bytes() const { return model_.SerializeAsString(); }

 private:
  schema::AttributeProto* AddAttribute(const std::string& name, schema::AttributeProto::AttributeType type);

  schema::ModelProto model_;
};

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_MODEL_BUILDER_H_
