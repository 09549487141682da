// Operators that compute each element by itself.
#ifndef FUSELAGE_FRONTEND_ONNX_WRITER_ELEMENTWISE_H_
#define FUSELAGE_FRONTEND_ONNX_WRITER_ELEMENTWISE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "frontend/onnx/writer/operators.h"

namespace fuselage::onnx::writer {

absl::Status WriteSame(const Call& c);  // One operator with the same operands and no attributes.
absl::Status WriteRelu(const Call& c);
absl::Status WriteAdd(const Call& c);
absl::Status WriteClamp(const Call& c);
absl::Status WriteRelu6(const Call& c);
absl::Status WriteLeakyRelu(const Call& c);
absl::Status WriteHardSigmoid(const Call& c);
absl::Status WriteHardSwish(const Call& c);
absl::Status WriteSilu(const Call& c);
absl::Status WriteGelu(const Call& c);
absl::Status WriteDropout(const Call& c);
absl::Status WriteTo(const Call& c);
absl::Status WriteElu(const Call& c);  // elu, celu, selu
absl::Status WriteThreshold(const Call& c);
absl::Status WriteSameOf18(const Call& c);  // The same, from opset 18 on.
absl::Status WriteNe(const Call& c);
absl::Status WriteIsInf(const Call& c);
absl::Status WriteMod(const Call& c);    // fmod, remainder
absl::Status WriteShift(const Call& c);  // bitwise_left_shift, bitwise_right_shift

// `emit` writes the value in front of the call's activation under the name that it is given.
absl::Status BeforeActivation(const Call& c, absl::FunctionRef<void(const std::string& name)> emit);

}  // namespace fuselage::onnx::writer

#endif  // FUSELAGE_FRONTEND_ONNX_WRITER_ELEMENTWISE_H_
