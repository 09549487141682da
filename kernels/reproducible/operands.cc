#include "kernels/reproducible/operands.h"

#include "absl/strings/str_cat.h"

namespace fuselage::reproducible {
namespace {

using kernels::KernelDesc;

// A list attribute of n values; `fill` where the list is empty or the op has none of that name.
absl::StatusOr<std::vector<int64_t>> IntsOr(const KernelDesc& desc, absl::string_view name, size_t n, int64_t fill) {
  const auto found = desc.attributes.find(std::string(name));
  if (found == desc.attributes.end() || found->second.as_ints().empty()) return std::vector<int64_t>(n, fill);
  if (found->second.as_ints().size() == n) return found->second.as_ints();
  return absl::InvalidArgumentError(absl::StrCat(name, " has ", found->second.as_ints().size(), " entries, want ", n));
}

}  // namespace

absl::StatusOr<std::vector<float>> FloatsOf(const KernelDesc& desc, absl::string_view name) {
  ASSIGN_OR_RETURN(const Tensor tensor, kernels::FloatParameter(desc, name));
  return std::vector<float>(tensor.values<float>().begin(), tensor.values<float>().end());
}

ImageStrides::ImageStrides(const TensorType& type) {
  const bool nhwc = type.rank() == 4 && type.layout == Layout::kNhwc;
  int64_t positions = 1;
  for (int axis = 2; axis < type.rank(); ++axis) positions *= type.shape[axis];
  image = type.shape[1] * positions;
  channel = nhwc ? 1 : positions;
  position = nhwc ? type.shape[1] : 1;
}

absl::StatusOr<Window> WindowOf(const KernelDesc& desc, const std::vector<int64_t>& kernel) {
  const size_t n = kernel.size();
  const TensorType &x = desc.input(0), &y = desc.output();
  if (n < 1 || n > 3 || x.shape.size() != n + 2 || y.shape.size() != n + 2) {
    return absl::InvalidArgumentError(absl::StrCat("a window over ", n, " axes on ", ToString(x), " to ", ToString(y),
                                                   ", want 1 to 3, and two more in both"));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> stride, IntsOr(desc, "stride", n, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> dilation, IntsOr(desc, "dilation", n, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> padding, IntsOr(desc, "padding", 2 * n, 0));
  Window window;
  for (size_t i = 0; i < n; ++i) {
    window.axes[3 - n + i] = {x.shape[2 + i], y.shape[2 + i], kernel[i],     stride[i],
                              dilation[i],    padding[i],     padding[n + i]};
  }
  return window;
}

}  // namespace fuselage::reproducible
