#include "kernels/indexing/indexing.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/indexing/positions.h"

namespace fuselage::indexing {
namespace {

struct IndexingOp {
  const char* name;
  KernelOr (*create)(const kernels::KernelDesc& desc);
};
constexpr IndexingOp kOps[] = {
    {"gather", CreateGather},
    {"gather_nd", CreateGather},
    {"index_select", CreateGather},
    {"max_pool1d_with_indices", CreateMaxPool},
    {"max_pool2d_with_indices", CreateMaxPool},
    {"max_pool3d_with_indices", CreateMaxPool},
    {"nms", CreateNms},
    {"nonzero", CreateNonzero},
    {"one_hot", CreateOneHot},
    {"reverse_sequence", CreateReverseSequence},
    {"scatter", CreateScatter},
    {"scatter_nd", CreateScatter},
    {"topk", CreateTopk},
    {"tril", CreateTriangle},
    {"triu", CreateTriangle},
};

}  // namespace

absl::Status BeyondAxis(int64_t position, int64_t dim) {
  return absl::InvalidArgumentError(absl::StrCat("found index ", position, ", wanted one in [", -dim, ", ", dim, ")"));
}

int64_t SizeOf(const Shape& shape, int begin, int end) {
  int64_t size = 1;
  for (int axis = begin; axis < end; ++axis) size *= shape[axis];
  return size;
}

int NormalizedAxis(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

KernelOr Create(const kernels::KernelDesc& desc) {
  const auto op =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const IndexingOp& o) { return desc.op == o.name; });
  if (op == std::end(kOps)) return absl::InvalidArgumentError(absl::StrCat(desc.op, " is no indexing"));
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    if (!desc.inputs[i]) return absl::InvalidArgumentError(absl::StrCat("operand ", i, " is absent"));
  }
  return op->create(desc);
}

void Register(kernels::KernelRegistry& registry) {
  for (const IndexingOp& op : kOps) {
    registry.Register({op.name, kernels::LayoutRule::kRowMajor, Create});
  }
}

}  // namespace fuselage::indexing
