#include "kernels/core/pool_window.h"

#include "absl/strings/str_cat.h"

namespace fuselage::kernels {
namespace {

absl::Status CheckShapes(const KernelDesc& desc) {
  if (!desc.has_input(0)) return absl::InvalidArgumentError("pool: wanted an operand");
  const TensorType &x = desc.input(0), &y = desc.output();
  if (x.rank() != 4) {
    return absl::UnimplementedError(absl::StrCat("pool: input is ", ToString(x), ", wanted rank 4"));
  }
  if (y.rank() != 4 || y.shape[0] != x.shape[0] || y.shape[1] != x.shape[1]) {
    return absl::InvalidArgumentError(
        absl::StrCat("pool: ", ToString(x), " to ", ToString(y), ", wanted the same batch and channels"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> Ints(const KernelDesc& desc, absl::string_view name, size_t size, int64_t least) {
  const std::vector<int64_t>& values = desc.GetInts(name);
  bool good = values.size() == size;
  for (const int64_t value : values) good = good && value >= least && value < (int64_t{1} << 31);
  if (good) return values;
  return absl::InvalidArgumentError(
      absl::StrCat("pool: ", name, " is ", ToString(values), ", wanted ", size, " values in [", least, ", 2^31)"));
}

absl::StatusOr<PoolWindow::Pitch> PitchOf(const TensorType& type, const Placement& placement) {
  if (placement.blocking != Blocking::kNone) {
    return absl::UnimplementedError(absl::StrCat("pool: a tensor in ", PlacementText(placement)));
  }
  const PlacedTensor placed(type.shape, placement);
  return PoolWindow::Pitch{placed.first, placed.image_bytes, placed.row_bytes, placed.pixel_bytes};
}

// What both windows have.
absl::StatusOr<PoolWindow> BeginWindow(const KernelDesc& desc) {
  PoolWindow window;
  window.batch = desc.input(0).shape[0];
  window.channels = desc.input(0).shape[1];
  ASSIGN_OR_RETURN(window.x, PitchOf(desc.input(0), desc.input_placement(0)));
  ASSIGN_OR_RETURN(window.y, PitchOf(desc.output(), desc.output_placement));
  return window;
}

}  // namespace

absl::StatusOr<PoolWindow> MakePoolWindow(const KernelDesc& desc) {
  RETURN_IF_ERROR(CheckShapes(desc));
  ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, Ints(desc, "kernel_size", 2, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> stride, Ints(desc, "stride", 2, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> padding, Ints(desc, "padding", 4, 0));
  std::vector<int64_t> dilation = {1, 1};
  if (desc.attributes.find("dilation") != desc.attributes.end()) {
    ASSIGN_OR_RETURN(dilation, Ints(desc, "dilation", 2, 1));
  }
  const TensorType &x = desc.input(0), &y = desc.output();
  ASSIGN_OR_RETURN(PoolWindow window, BeginWindow(desc));
  for (int i = 0; i < 2; ++i) {
    PoolWindow::Axis& axis = window.axes[i];
    axis = {x.shape[2 + i], y.shape[2 + i], kernel[i], stride[i], dilation[i], padding[i], padding[2 + i]};
    const int64_t padded = axis.in + axis.pad_begin + axis.pad_end;
    const int64_t room = padded - ((axis.kernel - 1) * axis.dilation + 1);
    if (room < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("pool: the window spans ", padded - room, " elements, more than the padded input's ", padded));
    }
    int64_t wanted = room / axis.stride + 1;
    // A window that would start in the end padding is dropped, as ONNX and PyTorch do.
    if (desc.GetBool("ceil_mode") && room % axis.stride != 0 && wanted * axis.stride < axis.in + axis.pad_begin) {
      ++wanted;
    }
    if (axis.out != wanted) {
      return absl::InvalidArgumentError(
          absl::StrCat("pool: spatial axis ", i, " of the output has ", axis.out, " elements, wanted ", wanted));
    }
  }
  return window;
}

absl::StatusOr<PoolWindow> MakeGlobalPoolWindow(const KernelDesc& desc) {
  RETURN_IF_ERROR(CheckShapes(desc));
  const TensorType &x = desc.input(0), &y = desc.output();
  if (y.shape[2] != 1 || y.shape[3] != 1 || x.shape[2] < 1 || x.shape[3] < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("global pool: ", ToString(x), " to ", ToString(y), ", wanted a non-empty image to [N,C,1,1]"));
  }
  ASSIGN_OR_RETURN(PoolWindow window, BeginWindow(desc));
  for (int i = 0; i < 2; ++i) window.axes[i].in = window.axes[i].kernel = x.shape[2 + i];
  return window;
}

}  // namespace fuselage::kernels
