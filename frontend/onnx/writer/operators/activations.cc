// Activation functions.
#include "frontend/onnx/writer/activation.h"
#include "frontend/onnx/writer/operators.h"

namespace fuselage::onnx::writer::operators::activations {
namespace {

void HardSigmoid(const Call& c, double alpha, double beta, const std::string& result) {
  c.to.Emit("HardSigmoid", {c.in[0]}, result)
      .Float("alpha", static_cast<float>(alpha))
      .Float("beta", static_cast<float>(beta));
}

// Relu takes integers from opset 14 on.
absl::Status WriteRelu(const Call& c) {
  if (!IsFloat(c.dtype())) c.to.Require(14);
  return WriteSame(c);
}

absl::Status WriteClamp(const Call& c) { return Clip(c, c.in[0], c.op.GetFloat("min"), c.op.GetFloat("max")); }

absl::Status WriteRelu6(const Call& c) { return Clip(c, c.in[0], 0, 6); }

absl::Status WriteLeakyRelu(const Call& c) {
  c.Emit("LeakyRelu", c.in).Float("alpha", static_cast<float>(c.op.GetFloat("negative_slope")));
  return absl::OkStatus();
}

absl::Status WriteHardSigmoid(const Call& c) {
  HardSigmoid(c, c.op.GetFloat("alpha"), c.op.GetFloat("beta"), c.name);
  return absl::OkStatus();
}

absl::Status WriteHardSwish(const Call& c) {
  HardSigmoid(c, 1.0 / 6, 0.5, c.Suffixed("gate"));
  c.Emit("Mul", {c.in[0], c.Suffixed("gate")});
  return absl::OkStatus();
}

absl::Status WriteSilu(const Call& c) {
  c.to.Emit("Sigmoid", c.in, c.Suffixed("gate"));
  c.Emit("Mul", {c.in[0], c.Suffixed("gate")});
  return absl::OkStatus();
}

absl::Status WriteGelu(const Call& c) {
  c.to.Require(20);
  c.Emit("Gelu", c.in).String("approximate", c.op.GetString("approximate"));
  return absl::OkStatus();
}

// elu, celu, selu
absl::Status WriteElu(const Call& c) {
  ModelBuilder& node = c.Emit(c.onnx, c.in).Float("alpha", static_cast<float>(c.op.GetFloat("alpha")));
  if (c.op.schema().FindAttributeOrNull("gamma") != nullptr) {
    node.Float("gamma", static_cast<float>(c.op.GetFloat("gamma")));
  }
  return absl::OkStatus();
}

absl::Status WriteThreshold(const Call& c) {
  if (c.op.GetFloat("value") != 0) return c.Declined(" with a value other than 0");
  c.Emit(c.onnx, c.in).Float("alpha", static_cast<float>(c.op.GetFloat("threshold")));
  return absl::OkStatus();
}

absl::Status WriteMish(const Call& c) {
  c.to.Require(18);
  return WriteSame(c);
}

}  // namespace

void Register(Operators& operators) {
  operators.Add({
      {"celu", WriteElu, "Celu"},
      {"clamp", WriteClamp, "Clip"},
      {"elu", WriteElu, "Elu"},
      {"gelu", WriteGelu, "Gelu"},
      {"hardsigmoid", WriteHardSigmoid, "HardSigmoid"},
      {"hardswish", WriteHardSwish, "HardSigmoid"},
      {"leaky_relu", WriteLeakyRelu, "LeakyRelu"},
      {"mish", WriteMish, "Mish"},
      {"relu", WriteRelu, "Relu"},
      {"relu6", WriteRelu6, "Clip"},
      {"selu", WriteElu, "Selu"},
      {"sigmoid", WriteSame, "Sigmoid"},
      {"silu", WriteSilu, "Sigmoid"},
      {"softplus", WriteSame, "Softplus"},
      {"softsign", WriteSame, "Softsign"},
      {"threshold", WriteThreshold, "ThresholdedRelu"},
  });
}

}  // namespace fuselage::onnx::writer::operators::activations
