#include "kernels/int8/conv2d/cuda/pooled_conv.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

// Outputs along one axis; the attributes are those of int8.conv2d.
absl::StatusOr<int64_t> Outputs(const kernels::KernelDesc& desc, int axis, int64_t kernel) {
  const auto value = [&](absl::string_view name, size_t i, size_t count) -> absl::StatusOr<int64_t> {
    const std::vector<int64_t>& values = desc.GetInts(name);
    if (values.size() == count && values[i] >= (name != "padding") && values[i] <= (1 << 20)) return values[i];
    return absl::InvalidArgumentError(
        absl::StrCat(name, " = ", desc.attribute(name).ToString(), ": ", count, " values of at most 2^20 wanted"));
  };
  ASSIGN_OR_RETURN(const int64_t stride, value("stride", axis, 2));
  ASSIGN_OR_RETURN(const int64_t dilation, value("dilation", axis, 2));
  ASSIGN_OR_RETURN(const int64_t begin, value("padding", axis, 4));
  ASSIGN_OR_RETURN(const int64_t end, value("padding", axis + 2, 4));
  const int64_t room = desc.input(0).shape[2 + axis] + begin + end - (kernel - 1) * dilation - 1;
  if (kernel < 1 || room < 0) return absl::InvalidArgumentError("the kernel is larger than the padded input");
  return room / stride + 1;
}

}  // namespace

absl::StatusOr<PooledConv> SplitPool(const kernels::KernelDesc& desc) {
  const Tensor* weight = desc.ParameterOrNull("weight");
  if (desc.inputs.size() != 1 || !desc.has_input(0) || desc.outputs.size() != 1 || weight == nullptr ||
      desc.input(0).rank() != 4 || weight->rank() != 4) {
    return absl::InvalidArgumentError("one input of rank 4, a constant weight of rank 4 and one output wanted");
  }
  PooledConv parts;
  parts.conv = desc;
  parts.conv.op = "int8.conv2d";
  ASSIGN_OR_RETURN(const int64_t height, Outputs(desc, 0, weight->dim(2)));
  ASSIGN_OR_RETURN(const int64_t width, Outputs(desc, 1, weight->dim(3)));
  parts.conv.outputs[0].shape = {desc.input(0).shape[0], weight->dim(0), height, width};
  kernels::KernelDesc pool = desc;
  pool.inputs = {parts.conv.output()};
  pool.attributes.clear();
  for (const auto& [name, value] : desc.attributes) {
    if (absl::StartsWith(name, "pool_")) pool.attributes.emplace(absl::StripPrefix(name, "pool_"), value);
  }
  ASSIGN_OR_RETURN(parts.pool, kernels::MakePoolWindow(pool));
  return parts;
}

}  // namespace fuselage::int8::conv2d::cuda
