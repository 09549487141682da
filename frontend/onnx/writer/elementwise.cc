#include "frontend/onnx/writer/elementwise.h"

#include <cmath>

namespace fuselage::onnx::writer {
namespace {

absl::Status Clip(const Call& c, const std::string& x, double min, double max) {
  // An absent bound bounds nothing.
  const auto bound = [&](const char* which, double value) {
    return std::isinf(value) ? std::string() : c.Number(which, value, c.dtype());
  };
  c.Emit("Clip", {x, bound("min", min), bound("max", max)});
  return absl::OkStatus();
}

void HardSigmoid(const Call& c, double alpha, double beta, const std::string& result) {
  c.to.Emit("HardSigmoid", {c.in[0]}, result)
      .Float("alpha", static_cast<float>(alpha))
      .Float("beta", static_cast<float>(beta));
}

}  // namespace

absl::Status WriteSame(const Call& c) {
  c.Emit(c.onnx, c.in);
  return absl::OkStatus();
}

// Relu takes integers from opset 14 on.
absl::Status WriteRelu(const Call& c) {
  if (!IsFloat(c.dtype())) c.to.Require(14);
  return WriteSame(c);
}

absl::Status BeforeActivation(const Call& c, absl::FunctionRef<void(const std::string& name)> emit) {
  const Activation activation = c.activation();
  if (activation.is_none()) {
    emit(c.name);
    return absl::OkStatus();
  }
  if (!IsFloat(c.dtype())) c.to.Require(14);
  emit(c.Suffixed("sum"));
  if (!activation.is_relu()) return Clip(c, c.Suffixed("sum"), activation.min, activation.max);
  c.Emit("Relu", {c.Suffixed("sum")});
  return absl::OkStatus();
}

absl::Status WriteAdd(const Call& c) {
  const double alpha = c.op.GetFloat("alpha");
  std::string other = c.in[1];
  if (alpha != 1) {
    other = c.Suffixed("other");
    c.to.Emit("Mul", {c.in[1], c.Number("alpha", alpha, c.dtype())}, other);
  }
  return BeforeActivation(c, [&](const std::string& sum) { c.to.Emit("Add", {c.in[0], other}, sum); });
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

absl::Status WriteDropout(const Call& c) {
  if (c.op.GetBool("training")) return c.Declined(" in training");
  return WriteSame(c);
}

absl::Status WriteTo(const Call& c) {
  c.Emit("Cast", c.in).Int("to", ElementType(c.dtype()));
  return absl::OkStatus();
}

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

absl::Status WriteSameOf18(const Call& c) {
  c.to.Require(18);
  return WriteSame(c);
}

absl::Status WriteNe(const Call& c) {
  c.to.Emit("Equal", c.in, c.Suffixed("equal"));
  c.Emit("Not", {c.Suffixed("equal")});
  return absl::OkStatus();
}

absl::Status WriteIsInf(const Call& c) {
  c.Emit(c.onnx, c.in)
      .Int("detect_negative", c.op.GetBool("detect_negative"))
      .Int("detect_positive", c.op.GetBool("detect_positive"));
  return absl::OkStatus();
}

absl::Status WriteMod(const Call& c) {
  const bool fmod = c.op.schema().name == "fmod";
  if (!fmod && IsFloat(c.dtype())) return c.Declined(" of floats");
  c.Emit(c.onnx, c.in).Int("fmod", fmod);
  return absl::OkStatus();
}

absl::Status WriteShift(const Call& c) {
  if (c.dtype() != DType::kU8) return c.Declined(" of signed integers");
  c.Emit(c.onnx, c.in).String("direction", c.op.schema().name == "bitwise_left_shift" ? "LEFT" : "RIGHT");
  return absl::OkStatus();
}

}  // namespace fuselage::onnx::writer
