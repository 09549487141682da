#include "kernels/cuda/kernel.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/core/requantize.h"

namespace fuselage::cuda {

absl::StatusOr<Items> Spread(int64_t count, const DeviceProperties& device, absl::string_view what) {
  if (count >= int64_t{1} << 31) {
    return absl::UnimplementedError(absl::StrCat(what, ": ", count, " items for CUDA threads, wanted fewer than 2^31"));
  }
  constexpr int kThreads = kItemWarps * kWarpSize;
  const int64_t resident = int64_t{device.multiprocessors} * std::max(1, device.threads_per_multiprocessor / kThreads);
  return Items{static_cast<uint32_t>(count), static_cast<int>(std::min(resident, CeilDiv(count, kThreads)))};
}

Output OutputOf(const TensorType& type) {
  Output output;
  output.is_float = type.dtype == DType::kF32;
  if (output.is_float) return output;
  const kernels::UnsignedForm form = kernels::UnsignedFormOf(type);
  output.flip = form.flip;
  output.codes = {form.zero_point, 0, 255};
  return output;
}

absl::StatusOr<PoolWindow> NarrowWindow(const kernels::PoolWindow& window) {
  constexpr int64_t kMost = int64_t{1} << 30;
  PoolWindow narrow;
  int64_t largest = window.channels;
  for (int i = 0; i < 2; ++i) {
    const kernels::PoolWindow::Axis& axis = window.axes[i];
    largest = std::max({largest, axis.in + axis.pad_begin + axis.pad_end, axis.stride, axis.dilation});
    const auto to32 = [](int64_t value) { return static_cast<int32_t>(value); };
    narrow.axes[i] = {to32(axis.in),       to32(axis.out),       to32(axis.kernel), to32(axis.stride),
                      to32(axis.dilation), to32(axis.pad_begin), to32(axis.pad_end)};
  }
  if (largest >= kMost || window.axes[0].kernel * window.axes[1].kernel >= kMost) {
    return absl::UnimplementedError("pool: a window that counts to 2^30 or more, wanted less on CUDA");
  }
  narrow.channels = static_cast<int32_t>(window.channels);
  narrow.x = {window.x.first, window.x.image, window.x.row, window.x.pixel};
  return narrow;
}

}  // namespace fuselage::cuda
