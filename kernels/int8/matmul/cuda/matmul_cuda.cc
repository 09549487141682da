#include "kernels/int8/matmul/cuda/matmul_cuda.h"

#include <memory>
#include <utility>
#include <vector>

#include "kernels/core/matmul_shape.h"
#include "kernels/core/registry.h"
#include "kernels/core/requantize.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/matmul/matmul.h"

namespace fuselage::int8::matmul::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::DeviceBuffer;
using kernels::UnsignedForm;

class Matmul final : public kernels::BinaryKernel {
 public:
  Matmul(const kernels::KernelDesc& desc, DeviceBuffer matrices, int64_t products, const LaunchParams& params)
      : BinaryKernel(desc), matrices_(std::move(matrices)), params_(params) {
    params_.a.matrices = static_cast<const int64_t*>(matrices_.data());
    params_.b.matrices = params_.a.matrices + products;
    set_variant("cuda");
    set_weight_bytes(matrices_.bytes());
  }

 private:
  void ComputeBinary(const void* a, const void* b, void* y, const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.a.codes = static_cast<const uint8_t*>(a);
    params.b.codes = static_cast<const uint8_t*>(b);
    params.y = y;
    Launch(params, context.stream);
  }

  const DeviceBuffer matrices_;
  LaunchParams params_;
};

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  RETURN_IF_ERROR(matmul::Create(desc).status());
  ASSIGN_OR_RETURN(const kernels::MatmulShape shape, kernels::MatmulShapeOf(desc));
  ASSIGN_OR_RETURN(const kernels::Epilogue epilogue, CheckedEpilogue(desc));
  ASSIGN_OR_RETURN(const auto device, fuselage::cuda::CurrentDevice());
  LaunchParams params;
  const int64_t products = static_cast<int64_t>(shape.a.size()), fours = CeilDiv(shape.columns, 4);
  ASSIGN_OR_RETURN(params.items, Spread(products * shape.rows * fours, device, "matmul"));
  params.rows = static_cast<uint32_t>(shape.rows);
  params.columns = static_cast<uint32_t>(shape.columns);
  params.fours = static_cast<uint32_t>(fours);
  params.depth = static_cast<int32_t>(shape.depth);
  for (int i : {0, 1}) {
    const UnsignedForm form = kernels::UnsignedFormOf(desc.input(i));
    LaunchParams::Operand& operand = i == 0 ? params.a : params.b;
    operand.flip = form.flip;
    operand.zero_point = form.zero_point;
  }
  params.float_output = desc.output().dtype == DType::kF32;
  params.multiplier = params.float_output ? epilogue.float_scale[0] : epilogue.multiplier[0];
  if (!params.float_output) {
    const UnsignedForm form = kernels::UnsignedFormOf(desc.output());
    params.flip = form.flip;
    params.zero_point = form.zero_point;
  }
  std::vector<int64_t> matrices = shape.a;
  matrices.insert(matrices.end(), shape.b.begin(), shape.b.end());
  matrices.push_back(0);  // CUDA's allocator does not like nothing.
  ASSIGN_OR_RETURN(DeviceBuffer memory,
                   DeviceBuffer::Upload(matrices.data(), static_cast<int64_t>(matrices.size() * sizeof(int64_t)),
                                        "the matrices of int8.matmul"));
  return std::make_unique<Matmul>(desc, std::move(memory), products, params);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.matmul", kernels::LayoutRule::kRowMajor, Create});
}

}  // namespace fuselage::int8::matmul::cuda
