#include "kernels/indexing/cuda/indexing_cuda.h"

#include <memory>

#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/indexing/indexing.h"

namespace fuselage::indexing::cuda {
namespace {

class IndexSelect final : public kernels::BinaryKernel {
 public:
  IndexSelect(const kernels::KernelDesc& desc, const LaunchParams& params) : BinaryKernel(desc), params_(params) {
    set_variant("cuda");
  }

 private:
  void ComputeBinary(const void* x, const void* positions, void* y, const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.x = x;
    params.positions = positions;
    params.y = y;
    Launch(params, context.stream);
  }

  const LaunchParams params_;
};

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  RETURN_IF_ERROR(indexing::Create(desc).status());
  const TensorType& x = desc.input(0);
  const int64_t dim = desc.GetInt("dim"), axis = dim < 0 ? dim + x.rank() : dim;
  int64_t row_bytes = ByteSize(x.dtype);
  for (int i = static_cast<int>(axis) + 1; i < x.rank(); ++i) row_bytes *= x.shape[i];
  LaunchParams params;
  params.word_bytes = 16;
  while (row_bytes % params.word_bytes != 0) params.word_bytes /= 2;
  ASSIGN_OR_RETURN(const auto device, fuselage::cuda::CurrentDevice());
  const int64_t words = desc.output().byte_size() / params.word_bytes;
  ASSIGN_OR_RETURN(params.items, fuselage::cuda::Spread(words, device, desc.op));
  if (words > 0) {
    params.row_words = static_cast<uint32_t>(row_bytes / params.word_bytes);
    params.count = static_cast<uint32_t>(desc.input(1).num_elements());
  }
  params.dim = x.shape[axis];
  params.wide = desc.input(1).dtype == DType::kI64;
  return std::make_unique<IndexSelect>(desc, params);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"index_select", kernels::LayoutRule::kRowMajor, Create});
}

}  // namespace fuselage::indexing::cuda
