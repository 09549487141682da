// int8.fused_elementwise, int8.mul, int8.sigmoid, ... and the same of floats on CUDA devices. Whatever the steps, a
// function of one or two codes is a table, which the CPU's kernel fills: sixteen codes a thread. Floats, and codes of
// more operands, go through the steps one by one, an element a thread, by the CPU's arithmetic.
//
// Declines (Unimplemented): 2^31 elements or more; where there is no table, more than eight operands or sixteen steps,
// and steps that Step does not compute: those in double, and roundings.
#ifndef FUSELAGE_KERNELS_FUSED_ELEMENTWISE_CUDA_FUSED_ELEMENTWISE_CUDA_H_
#define FUSELAGE_KERNELS_FUSED_ELEMENTWISE_CUDA_FUSED_ELEMENTWISE_CUDA_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "ir/base/elementwise_math.h"
#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/operand.h"

namespace fuselage::kernels {
class Kernel;
class KernelRegistry;
struct KernelDesc;
}  // namespace fuselage::kernels

namespace fuselage::fused_elementwise::cuda {

constexpr int kTableOperands = 2;

struct LaunchParams {
  fuselage::cuda::Operand operands[kTableOperands];
  int num_operands = 1;
  fuselage::cuda::Items items;     // 16 codes each.
  uint32_t codes = 0;              // Below 2^31.
  const uint8_t* table = nullptr;  // [256], or [256][256] by the first operand's code, then the second's; bytes.
  uint8_t* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

constexpr int kStepOperands = 8, kMostSteps = 16;

struct StepParams {
  // What the codes of an operand or the result mean: `flip` makes them u8.
  struct Encoding {
    uint8_t flip = 0;
    int32_t zero_point = 0;
    float scale = 1;
  };
  bool codes = false;  // Otherwise all are floats.
  int num_operands = 0, num_steps = 0;
  fuselage::cuda::Operand operands[kStepOperands];
  Encoding encodings[kStepOperands], result;
  ElementwiseInstruction steps[kMostSteps];
  fuselage::cuda::Items items;  // Elements.
  void* y = nullptr;
};

void Launch(const StepParams& params, void* stream);

// y = a step of a, or of a and b; false: it is none that devices compute.
FUSELAGE_HOST_DEVICE bool Step(const ElementwiseInstruction& step, float a, float b, float* y) {
  switch (step.op) {
    case ElementwiseOp::kAdd: *y = fuselage::cuda::MultiplyAdd(step.p, b, a); break;
    case ElementwiseOp::kSub: *y = a - b; break;
    case ElementwiseOp::kMul: *y = a * b; break;
    case ElementwiseOp::kDiv: *y = fuselage::cuda::Divide(a, b); break;
    case ElementwiseOp::kMaximum: *y = elementwise::Maximum(a, b); break;
    case ElementwiseOp::kMinimum: *y = elementwise::Minimum(a, b); break;
    case ElementwiseOp::kPrelu: *y = a < 0 ? a * b : a; break;
    case ElementwiseOp::kRelu: *y = elementwise::Relu(a); break;
    case ElementwiseOp::kClamp: *y = elementwise::Clamp(a, step.p, step.q); break;
    case ElementwiseOp::kAbs: *y = elementwise::Magnitude(a); break;
    case ElementwiseOp::kNeg: *y = -a; break;
    case ElementwiseOp::kSign: *y = elementwise::Sign(a); break;
    case ElementwiseOp::kReciprocal: *y = fuselage::cuda::Divide(1.0f, a); break;
    case ElementwiseOp::kSoftsign: *y = fuselage::cuda::Divide(a, 1.0f + elementwise::Magnitude(a)); break;
    case ElementwiseOp::kThreshold: *y = a <= step.p ? step.q : a; break;
    case ElementwiseOp::kLeakyRelu:
    case ElementwiseOp::kHardsigmoid:
    case ElementwiseOp::kHardswish:
    case ElementwiseOp::kSigmoid:
    case ElementwiseOp::kSilu:
    case ElementwiseOp::kTanh:
    case ElementwiseOp::kGelu:
    case ElementwiseOp::kGeluTanh: *y = elementwise::Activated(step, a); break;
    default: return false;
  }
  if (step.op == ElementwiseOp::kAdd && step.q != 0) *y = elementwise::Relu(*y);
  return true;
}

// Of any of these ops, and of `add` of floats, which is not registered here: cuDNN's entry has that of f16, too.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::fused_elementwise::cuda

#endif  // FUSELAGE_KERNELS_FUSED_ELEMENTWISE_CUDA_FUSED_ELEMENTWISE_CUDA_H_
