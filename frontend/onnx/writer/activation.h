// What bounds values: Clip, and the activation that a call ends in.
#ifndef FUSELAGE_FRONTEND_ONNX_WRITER_ACTIVATION_H_
#define FUSELAGE_FRONTEND_ONNX_WRITER_ACTIVATION_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "frontend/onnx/writer/operators.h"

namespace fuselage::onnx::writer {

// The call's result: x, but at least min and at most max.
absl::Status Clip(const Call& c, const std::string& x, double min, double max);

// `emit` writes the value in front of the call's activation under the name that it is given.
absl::Status BeforeActivation(const Call& c, absl::FunctionRef<void(const std::string& name)> emit);

}  // namespace fuselage::onnx::writer

#endif  // FUSELAGE_FRONTEND_ONNX_WRITER_ACTIVATION_H_
