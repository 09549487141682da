#include "frontend/onnx/testing.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"

namespace fuselage::onnx {

const ir::OpRegistry& Ops() {
  static const auto* registry = [] {
    auto* created = new ir::OpRegistry;
    ops::RegisterAll(*created);
    return created;
  }();
  return *registry;
}

absl::StatusOr<std::unique_ptr<ir::Graph>> Import(const ModelBuilder& model, std::vector<std::string>* warnings) {
  LoadOptions options;
  options.warnings = warnings;
  return Parse(model.Bytes(), "m.onnx", Ops(), options);
}

std::vector<Tensor> Outputs(const ModelBuilder& model, const std::vector<Tensor>& inputs) {
  const auto graph = Import(model);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {Tensor()};
  auto outputs = interpreter::Run(**graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *std::move(outputs) : std::vector<Tensor>{Tensor()};
}

void ExpectOutput(const ModelBuilder& model, const std::vector<Tensor>& inputs, const Tensor& wanted,
                  double tolerance) {
  const Tensor found = Outputs(model, inputs)[0];
  EXPECT_EQ(ToString(found.type()), ToString(wanted.type()));
  if (tolerance == 0) {
    EXPECT_EQ(ToDoubles(found), ToDoubles(wanted));
  } else {
    EXPECT_THAT(ToDoubles(found), ::testing::Pointwise(::testing::DoubleNear(tolerance), ToDoubles(wanted)));
  }
}

void ExpectError(const ModelBuilder& model, const std::string& message) {
  const auto graph = Import(model);
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(std::string(graph.status().message()), ::testing::HasSubstr(message));
}

Tensor F32(Shape shape, std::vector<float> values) { return Tensor::Of<float>(std::move(shape), values); }
Tensor I64(std::vector<int64_t> values) { return Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values); }

ModelBuilder Model(int opset, std::vector<Dim> dims, DType dtype) {
  ModelBuilder model(opset);
  model.Input("x", std::move(dims), dtype).Output("y");
  return model;
}

}  // namespace fuselage::onnx
