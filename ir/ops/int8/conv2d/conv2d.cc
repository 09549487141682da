#include "ir/ops/int8/conv2d/conv2d.h"

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/ops/conv/convolution.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/int8/core/arithmetic.h"

namespace fuselage::ops::int8::conv2d {
namespace {

enum Operand { kPostScale = conv::kResidual + 1, kPostShift };

// Both or none, behind a function.
absl::Status CheckPost(const ir::InferCall& call) {
  if (!call.has(kPostScale) && !call.has(kPostShift)) return absl::OkStatus();
  for (const int i : {kPostScale, kPostShift}) {
    if (!call.has(i)) {
      return absl::InvalidArgumentError(absl::StrCat("operand ", call.schema().operands[i].name,
                                                     ": absent, wanted post_scale and post_shift or none"));
    }
    RETURN_IF_ERROR(CheckDType(call, i, DType::kF32));
    RETURN_IF_ERROR(CheckShape(call, i, {call.tensor(conv::kWeight).shape[0]}));
  }
  if (ParseActivation(call.GetString("activation"))->is_function()) return absl::OkStatus();
  return AttributeError(call, "activation", "a function without a clamp in front of post_scale");
}

absl::StatusOr<ir::Type> InferConv2d(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckCodes(call, conv::kInput));
  ASSIGN_OR_RETURN(const conv::Convolution convolution, conv::CheckConvolution(call, 2));
  RETURN_IF_ERROR(CheckWeightAndBias(call));
  RETURN_IF_ERROR(CheckPost(call));
  if (call.has(conv::kResidual)) {
    RETURN_IF_ERROR(CheckCodes(call, conv::kResidual));
    if (call.GetDType("out_dtype") == DType::kF32) return AttributeError(call, "out_dtype", "u8 or i8 with a residual");
  }
  return OutputType(call, convolution.ResultShape(2));
}

absl::StatusOr<std::vector<Tensor>> EvaluateConv2d(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(conv::kInput);
  const Tensor& weight = call.tensor(conv::kWeight);
  const conv::Convolution convolution = conv::ConvolutionOf(call, input.shape(), weight.shape());
  // Whole numbers below 2^53 are exact in a double; around x - z_x zeros are the padding.
  std::vector<double> sums(call.result().num_elements(), 0.0);
  conv::Convolve(convolution, Centered(input).data(), ToDoubles(weight).data(), sums.data());
  ASSIGN_OR_RETURN(Tensor result, Requantized(call, sums, weight.dim(0)));
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema = conv::ConvolutionSchema(2);
  schema.name = "int8.conv2d";
  schema.quantized_form_of = "conv2d";
  schema.operands.push_back({"post_scale", /*optional=*/true, /*parameter=*/true});
  schema.operands.push_back({"post_shift", /*optional=*/true, /*parameter=*/true});
  schema.float_result = true;
  for (ir::AttributeSpec& attribute : OutputAttributes()) schema.attributes.push_back(std::move(attribute));
  schema.attributes.push_back({"variant", AttributeKind::kString, ""});
  schema.infer = InferConv2d;
  schema.evaluate = EvaluateConv2d;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::int8::conv2d
