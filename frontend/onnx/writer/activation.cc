#include "frontend/onnx/writer/activation.h"

#include <cmath>

namespace fuselage::onnx::writer {

absl::Status Clip(const Call& c, const std::string& x, double min, double max) {
  // An absent bound bounds nothing.
  const auto bound = [&](const char* which, double value) {
    return std::isinf(value) ? std::string() : c.Number(which, value, c.dtype());
  };
  c.Emit("Clip", {x, bound("min", min), bound("max", max)});
  return absl::OkStatus();
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

}  // namespace fuselage::onnx::writer
