// Models of one operator, run by the interpreter: what tests of operators' forms share.
#ifndef FUSELAGE_FRONTEND_ONNX_TESTING_H_
#define FUSELAGE_FRONTEND_ONNX_TESTING_H_

#include <memory>
#include <string>
#include <vector>

#include "frontend/onnx/model_builder.h"
#include "frontend/onnx/onnx.h"
#include "ir/graph.h"

namespace fuselage::onnx {

const ir::OpRegistry& Ops();  // All operators, registered once.
absl::StatusOr<std::unique_ptr<ir::Graph>> Import(const ModelBuilder& model,
                                                  std::vector<std::string>* warnings = nullptr);

// What the model computes; a test that meets an error here fails with its message.
std::vector<Tensor> Outputs(const ModelBuilder& model, const std::vector<Tensor>& inputs);
// Output 0 is `wanted`; of floats, each element within `tolerance`.
void ExpectOutput(const ModelBuilder& model, const std::vector<Tensor>& inputs, const Tensor& wanted,
                  double tolerance = 0);
// The model does not load, and the error says `message`.
void ExpectError(const ModelBuilder& model, const std::string& message);

Tensor F32(Shape shape, std::vector<float> values);
Tensor I64(std::vector<int64_t> values);

// With the input x and the f32 output y.
ModelBuilder Model(int opset, std::vector<Dim> dims, DType dtype = DType::kF32);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_TESTING_H_
