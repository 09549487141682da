#include "kernels/int8/global_avg_pool_linear/global_avg_pool_linear.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/int8/avg_pool2d/avg_pool2d.h"

namespace fuselage::int8::global_avg_pool_linear {
namespace {

using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::Kernel;
using kernels::KernelDesc;

class GlobalAvgPoolLinear : public kernels::UnaryKernel {
 public:
  GlobalAvgPoolLinear(const KernelDesc& desc, std::unique_ptr<Kernel> pool, std::unique_ptr<Kernel> linear)
      : UnaryKernel(desc), pool_(std::move(pool)), linear_(std::move(linear)) {
    pooled_bytes_ = (pool_->outputs()[0].byte_size() + 63) / 64 * 64;
    part_scratch_bytes_ = std::max(pool_->scratch_bytes(), linear_->scratch_bytes());
    set_variant(linear_->variant());
    set_scratch_bytes(pooled_bytes_ + part_scratch_bytes_);
    set_weight_bytes(linear_->own_weight_bytes(), linear_->packed());
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    uint8_t* pooled = static_cast<uint8_t*>(context.scratch.data);
    kernels::RunContext part = context;
    part.scratch = {pooled + pooled_bytes_, part_scratch_bytes_};
    const absl::Status pool =
        pool_->Run({ConstBuffer{x, inputs()[0]->byte_size()}}, {Buffer{pooled, pooled_bytes_}}, part);
    const absl::Status linear =
        linear_->Run({ConstBuffer{pooled, pooled_bytes_}}, {Buffer{y, outputs()[0].byte_size()}}, part);
    FUSELAGE_CHECK(pool.ok() && linear.ok());
  }

  const std::unique_ptr<Kernel> pool_, linear_;
  int64_t pooled_bytes_, part_scratch_bytes_;
};

}  // namespace

absl::StatusOr<Parts> PartsOf(const KernelDesc& desc) {
  if (!desc.has_input(0) || desc.input(0).rank() != 4 || desc.outputs.size() != 1) {
    return absl::UnimplementedError(
        absl::StrCat("global_avg_pool_linear: ", desc.has_input(0) ? ToString(desc.input(0)) : "no operand",
                     ", wanted one operand of rank 4 and one result"));
  }
  const Shape& shape = desc.input(0).shape;
  const QuantParams quant = PerTensor(static_cast<float>(desc.GetFloat("pool_out_scale")),
                                      static_cast<int32_t>(desc.GetInt("pool_out_zero_point")));
  const TensorType rows = {desc.attribute("pool_out_dtype").as_dtype(), {shape[0], shape[1]}, quant, Layout::kRowMajor};
  Parts parts = {desc, desc};
  parts.pool.op = "int8.global_avg_pool";
  parts.pool.outputs = {{rows.dtype, {shape[0], shape[1], 1, 1}, quant, desc.input(0).layout}};
  parts.linear.op = "int8.linear";
  parts.linear.inputs = {rows};
  return parts;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateOfParts(const KernelDesc& desc, CreateFunction create_pool,
                                                      CreateFunction create_linear) {
  ASSIGN_OR_RETURN(const Parts parts, PartsOf(desc));
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> pool, create_pool(parts.pool));
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> linear, create_linear(parts.linear));
  return std::make_unique<GlobalAvgPoolLinear>(desc, std::move(pool), std::move(linear));
}

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc) {
  return EntryWith(linear::Variants()).create(desc);
}

kernels::KernelEntry EntryWith(absl::Span<const linear::Variant> variants) {
  kernels::KernelEntry entry;
  entry.op = "int8.global_avg_pool_linear";
  entry.create = [variants](const KernelDesc& desc) {
    return CreateOfParts(desc, avg_pool2d::Create, linear::EntryOf(variants).create);
  };
  entry.variant = [variants](const KernelDesc& desc) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Parts parts, PartsOf(desc));
    RETURN_IF_ERROR(avg_pool2d::Create(parts.pool).status());
    return linear::EntryOf(variants).variant(parts.linear);
  };
  return entry;
}

void Register(kernels::KernelRegistry& registry) {
  kernels::KernelEntry entry = EntryWith(linear::Variants());
  entry.table = {{"kernels/int8/linear/variants.h", "kernels/int8/global_avg_pool_linear/global_avg_pool_linear.h"},
                 "int8::linear::kVariants",
                 "int8::global_avg_pool_linear::EntryWith",
                 [](const KernelDesc& desc) {
                   const absl::StatusOr<Parts> parts = PartsOf(desc);
                   return parts.ok() ? linear::RowsFor(parts->linear) : std::vector<int>();
                 }};
  registry.Register(std::move(entry));
}

}  // namespace fuselage::int8::global_avg_pool_linear
