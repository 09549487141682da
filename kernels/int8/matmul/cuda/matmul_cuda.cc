#include "kernels/int8/matmul/cuda/matmul_cuda.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/matmul_shape.h"
#include "kernels/core/registry.h"
#include "kernels/core/requantize.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/matmul/cuda/create.h"
#include "kernels/int8/matmul/matmul.h"

namespace fuselage::int8::matmul::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::DeviceBuffer;

class Matmul final : public kernels::BinaryKernel {
 public:
  Matmul(const kernels::KernelDesc& desc, DeviceBuffer constants, const LaunchParams& params, bool wide, int blocks)
      : BinaryKernel(desc), constants_(std::move(constants)), params_(params), wide_(wide), blocks_(blocks) {
    set_variant(absl::StrCat("cuda mma ", RowsOfABlock(wide), "x", kColumnsOfABlock));
    set_weight_bytes(constants_.bytes());
  }

 private:
  void ComputeBinary(const void* a, const void* b, void* y, const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.a.codes = static_cast<const uint8_t*>(a);
    params.a.end = params.a.codes + inputs()[0]->num_elements();
    params.b.codes = static_cast<const uint8_t*>(b);
    params.b.end = params.b.codes + inputs()[1]->num_elements();
    params.y.data = y;
    Launch(params, wide_, blocks_, context.stream);
  }

  const DeviceBuffer constants_;
  const LaunchParams params_;
  const bool wide_;
  const int blocks_;
};

// Without constants and blocks.
LaunchParams ParamsOf(const kernels::KernelDesc& desc, const kernels::MatmulShape& shape,
                      const kernels::Epilogue& epilogue) {
  LaunchParams params;
  params.rows = static_cast<int32_t>(shape.rows);
  params.columns = static_cast<int32_t>(shape.columns);
  params.depth = static_cast<int32_t>(shape.depth);
  params.a_is_signed = desc.input(0).dtype == DType::kI8;
  params.a.zero_point = desc.input(0).quant->zero_point();
  params.b_flip = desc.input(1).dtype == DType::kU8 ? 0x80 : 0;
  params.b.zero_point = desc.input(1).quant->zero_point() - params.b_flip;
  params.y = fuselage::cuda::OutputOf(desc.output());
  params.multiplier = params.y.is_float ? epilogue.float_scale[0] : epilogue.multiplier[0];
  return params;
}

}  // namespace

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc, std::optional<bool> wide) {
  RETURN_IF_ERROR(matmul::Create(desc).status());
  ASSIGN_OR_RETURN(const kernels::MatmulShape shape, kernels::MatmulShapeOf(desc));
  ASSIGN_OR_RETURN(const kernels::Epilogue epilogue, CheckedEpilogue(desc));
  ASSIGN_OR_RETURN(const auto device, fuselage::cuda::CurrentDevice());
  constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();
  const int64_t products = static_cast<int64_t>(shape.a.size()), across = CeilDiv(shape.columns, kColumnsOfABlock);
  const auto blocks = [&](bool wide) { return products * across * CeilDiv(shape.rows, RowsOfABlock(wide)); };
  if (!wide) wide = shape.rows > RowsOfABlock(false) && blocks(true) >= device.multiprocessors;
  if (std::max({shape.rows, shape.columns, blocks(*wide)}) > kIntMax - RowsOfABlock(true)) {
    return absl::UnimplementedError(absl::StrCat("matmul: ", products, " products of ", shape.rows, " rows and ",
                                                 shape.columns, " columns, wanted fewer than 2^31 on CUDA"));
  }
  LaunchParams params = ParamsOf(desc, shape, epilogue);
  params.column_blocks = static_cast<int32_t>(across);
  params.product_blocks = static_cast<int32_t>(blocks(*wide) / std::max<int64_t>(1, products));
  params.b.padding = params.b_flip;
  // The matrices of both operands.
  std::vector<int64_t> constants(shape.a.begin(), shape.a.end());
  constants.insert(constants.end(), shape.b.begin(), shape.b.end());
  ASSIGN_OR_RETURN(DeviceBuffer memory,
                   DeviceBuffer::Upload(constants.data(), static_cast<int64_t>(constants.size() * sizeof(int64_t)),
                                        "the matrices of int8.matmul"));
  const auto* on_device = static_cast<const int64_t*>(memory.data());
  params.a.matrices = on_device;
  params.b.matrices = params.a.matrices + products;
  return std::make_unique<Matmul>(desc, std::move(memory), params, *wide, static_cast<int>(blocks(*wide)));
}

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register(
      {"int8.matmul", kernels::LayoutRule::kRowMajor, [](const kernels::KernelDesc& desc) { return Create(desc); }});
}

}  // namespace fuselage::int8::matmul::cuda
