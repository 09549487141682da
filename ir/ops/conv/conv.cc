#include "ir/ops/conv/conv.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/ops/conv/convolution.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/core/zero_points.h"

namespace fuselage::ops::conv {
namespace {

absl::StatusOr<ir::Type> InferConv(const ir::InferCall& call, int n) {
  ASSIGN_OR_RETURN(const Convolution convolution, CheckConvolution(call, n));
  const DType dtype = call.tensor(kInput).dtype;
  RETURN_IF_ERROR(CheckNoCodes(call, kInput));
  if (!IsFloat(dtype) && dtype != DType::kI32 && dtype != DType::kI64) {
    return OperandError(call, kInput, "wanted f16, f32, f64, i32 or i64");
  }
  if (!IsFloat(dtype) && call.GetString("activation") != "none") {
    return AttributeError(call, "activation", "\"none\" on integers");
  }
  RETURN_IF_ERROR(CheckParameterDType(call, kWeight, dtype));
  if (call.has(kBias)) RETURN_IF_ERROR(CheckParameterDType(call, kBias, dtype));
  if (call.has(kResidual)) {
    RETURN_IF_ERROR(CheckNoCodes(call, kResidual));
    RETURN_IF_ERROR(CheckDType(call, kResidual, dtype));
  }
  return ResultType(dtype, convolution.ResultShape(n));
}

// bias[c] in each element of channel c, plus the residual: what the products are added to.
template <typename T>
std::vector<T> Addends(const Convolution& convolution, const std::vector<T>& bias, const std::vector<T>& residual) {
  const int64_t channels = convolution.groups * convolution.out_channels;
  const int64_t pixels = convolution.window.outputs();
  std::vector<T> addends = residual;
  addends.resize(convolution.batch * channels * pixels, T{0});
  if (bias.empty()) return addends;
  for (size_t i = 0; i < addends.size(); ++i) addends[i] += bias[i / pixels % channels];
  return addends;
}

absl::StatusOr<std::vector<Tensor>> EvaluateConv(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(kInput);
  const Convolution convolution = ConvolutionOf(call, input.shape(), call.tensor(kWeight).shape());
  const auto compute = [&](auto read) {
    auto values = Addends(convolution, call.has(kBias) ? read(call.tensor(kBias)) : decltype(read(input)){},
                          call.has(kResidual) ? read(call.tensor(kResidual)) : decltype(read(input)){});
    Convolve(convolution, read(input).data(), read(call.tensor(kWeight)).data(), values.data());
    return values;
  };
  if (!IsFloat(input.dtype())) return One(OfIntegers(call.result(), compute(Integers)));
  std::vector<double> values = compute(RealValues);
  const Activation activation = ParseActivation(call.GetString("activation")).value();
  if (!activation.is_none()) std::transform(values.begin(), values.end(), values.begin(), activation);
  return One(OfReals(call.result(), values));
}

// --- conv_integer1d, 2d, 3d.

enum ConvInteger { kInputZeroPoint = 2, kWeightZeroPoint };

absl::StatusOr<ir::Type> InferConvInteger(const ir::InferCall& call, int n) {
  ASSIGN_OR_RETURN(const Convolution convolution, CheckGeometry(call, n));
  RETURN_IF_ERROR(CheckZeroPoint(call, kInput, kInputZeroPoint));
  RETURN_IF_ERROR(CheckZeroPoint(call, kWeight, kWeightZeroPoint));
  return ResultType(DType::kI32, convolution.ResultShape(n));
}

absl::StatusOr<std::vector<Tensor>> EvaluateConvInteger(const ir::EvaluateCall& call) {
  const Convolution convolution = ConvolutionOf(call, call.tensor(kInput).shape(), call.tensor(kWeight).shape());
  std::vector<int64_t> values(call.result().num_elements(), 0);
  Convolve(convolution, LessZeroPoint(call, kInput, kInputZeroPoint).data(),
           LessZeroPoint(call, kWeight, kWeightZeroPoint).data(), values.data());
  return One(OfIntegers(call.result(), values));
}

ir::OpSchema ConvIntegerSchema(int n) {
  ir::OpSchema schema;
  schema.name = absl::StrCat("conv_integer", n, "d");
  schema.operands = {{"input"},
                     {"weight", /*optional=*/false, /*parameter=*/true},
                     {"input_zero_point", /*optional=*/true},
                     {"weight_zero_point", /*optional=*/true, /*parameter=*/true}};
  schema.attributes = WindowAttributes(n);
  schema.attributes.push_back({"groups", AttributeKind::kInt, 1});
  schema.module_form = true;
  schema.infer = [n](const ir::InferCall& call) { return InferConvInteger(call, n); };
  schema.evaluate = EvaluateConvInteger;
  schema.cost = CostOfConvolution;
  return schema;
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (int n = 1; n <= 3; ++n) {
    registry.Register(ConvIntegerSchema(n));
    ir::OpSchema schema = ConvolutionSchema(n);
    schema.name = absl::StrCat("conv", n, "d");
    schema.aliases = {absl::StrCat("torch.", schema.name), absl::StrCat("torch.nn.functional.", schema.name)};
    schema.fusable_activation = true;
    schema.infer = [n](const ir::InferCall& call) { return InferConv(call, n); };
    schema.evaluate = EvaluateConv;
    registry.Register(std::move(schema));
  }
}

}  // namespace fuselage::ops::conv
