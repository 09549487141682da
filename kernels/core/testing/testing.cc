#include "kernels/core/testing/testing.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ir/base/check.h"

namespace fuselage::kernels {
namespace {

constexpr int kGuard = 128;
constexpr uint8_t kGuardByte = 0xa5;

}  // namespace

TensorType Codes(DType dtype, Shape shape, float scale, int32_t zero_point, Layout layout) {
  return {dtype, std::move(shape), PerTensor(scale, zero_point), layout};
}

TensorType Floats(Shape shape, Layout layout) { return {DType::kF32, std::move(shape), std::nullopt, layout}; }

GuardedMemory::GuardedMemory(int64_t bytes, int misalignment)
    : storage_(bytes + 2 * kGuard + 64 + misalignment, kGuardByte), bytes_(bytes) {
  const uintptr_t start = reinterpret_cast<uintptr_t>(storage_.data()) + kGuard;
  data_ = storage_.data() + kGuard + (64 - start % 64) % 64 + misalignment;
}

void GuardedMemory::FillRandom(uint32_t seed) {
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < bytes_; ++i) {
    state = state * 1664525u + 1013904223u;
    data_[i] = static_cast<uint8_t>(state >> 24);
  }
}

bool GuardedMemory::guards_intact() const {
  for (const uint8_t* p = storage_.data(); p < data_; ++p) {
    if (*p != kGuardByte) return false;
  }
  for (const uint8_t* p = data_ + bytes_; p < storage_.data() + storage_.size(); ++p) {
    if (*p != kGuardByte) return false;
  }
  return true;
}

EdgeMemory::EdgeMemory(ConstBuffer from) : bytes_(from.bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE), lines = (bytes_ + 63) / 64 * 64;
  page_bytes_ = (lines + page - 1) / page * page;
  void* pages = mmap(nullptr, page_bytes_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  FUSELAGE_CHECK(pages != MAP_FAILED);
  pages_ = static_cast<uint8_t*>(pages);
  FUSELAGE_CHECK(mprotect(pages_ + page_bytes_, page, PROT_NONE) == 0);
  data_ = pages_ + page_bytes_ - lines;
  if (bytes_ > 0) std::memcpy(data_, from.data, bytes_);
  page_bytes_ += page;
}
EdgeMemory::~EdgeMemory() { munmap(pages_, page_bytes_); }

void TestThreads::For(int tasks, absl::FunctionRef<void(int task, int thread)> body) {
  first_ = (first_ + 1) % threads_;
  const auto work = [&](int thread) {
    for (int task = (thread + first_) % threads_; task < tasks; task += threads_) body(task, thread);
  };
  std::vector<std::thread> threads;
  for (int thread = 1; thread < threads_; ++thread) threads.emplace_back(work, thread);
  work(0);
  for (std::thread& thread : threads) thread.join();
}

namespace {

ConstBuffer AtEdge(ConstBuffer operand, std::vector<std::unique_ptr<EdgeMemory>>& copies) {
  copies.push_back(std::make_unique<EdgeMemory>(operand));
  return copies.back()->buffer();
}
// Null: no operand.
ConstBuffer AtEdge(const Tensor* operand, std::vector<std::unique_ptr<EdgeMemory>>& copies) {
  if (operand == nullptr) return ConstBuffer();
  return AtEdge(ConstBuffer{operand->raw_data(), operand->byte_size()}, copies);
}

}  // namespace

absl::StatusOr<Tensor> RunKernel(const Kernel& kernel, absl::Span<const Tensor* const> inputs, Parallel* parallel) {
  Serial serial;
  std::vector<std::unique_ptr<EdgeMemory>> copies;
  std::vector<ConstBuffer> in;
  for (const Tensor* input : inputs) in.push_back(AtEdge(input, copies));
  Tensor result(kernel.outputs()[0]);
  GuardedMemory output(result.byte_size()), scratch(kernel.scratch_bytes());
  const RunContext context{parallel == nullptr ? &serial : parallel, {scratch.data(), scratch.size()}};
  RETURN_IF_ERROR(kernel.Run(in, {Buffer{output.data(), output.size()}}, context));
  if (!output.guards_intact()) return absl::InternalError("wrote beyond its output");
  if (!scratch.guards_intact()) return absl::InternalError("wrote beyond its scratch memory");
  if (output.size() > 0) std::memcpy(result.raw_data(), output.data(), output.size());
  return result;
}

namespace {

// Calls visit(n, y, x, inside the image) for each pixel and each place of padding.
void ForEachPlace(const PlacedTensor& placed, absl::FunctionRef<void(int64_t, int64_t, int64_t, bool)> visit) {
  const int64_t step = placed.placement.blocking == Blocking::kNone ? 1 : 2, halo = step * placed.placement.halo;
  for (int64_t n = 0; n < placed.batch; ++n) {
    for (int64_t y = -halo; y < step * placed.plane_height + halo; ++y) {
      for (int64_t x = -halo; x < step * placed.plane_width + halo; ++x) {
        visit(n, y, x, y >= 0 && y < placed.height && x >= 0 && x < placed.width);
      }
    }
  }
}

// Channels of a wider tensor begin anywhere.
int Misalignment(const Placement& placement) { return placement.even() && !placement.dense() ? 5 : 0; }

// Memory that was all kGuardByte: is it still, where no pixel is?
bool BetweenIntact(const PlacedTensor& placed, const uint8_t* data) {
  std::vector<bool> is_pixel(placed.bytes);
  ForEachPlace(placed, [&](int64_t n, int64_t y, int64_t x, bool) {
    const auto pixel = is_pixel.begin() + placed.Offset(n, y, x);
    std::fill(pixel, pixel + placed.channels, true);
  });
  for (int64_t i = 0; i < placed.bytes; ++i) {
    if (!is_pixel[i] && data[i] != kGuardByte) return false;
  }
  return true;
}

uint8_t Padding(const TensorType& type) { return static_cast<uint8_t>(type.quant->zero_point()); }

}  // namespace

absl::StatusOr<Tensor> RunPlacedKernel(const Kernel& kernel, const KernelDesc& desc,
                                       absl::Span<const Tensor* const> inputs, Parallel* parallel) {
  Serial serial;
  std::vector<std::unique_ptr<GuardedMemory>> memory;
  std::vector<std::unique_ptr<EdgeMemory>> copies;
  std::vector<ConstBuffer> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Placement placement = desc.input_placement(static_cast<int>(i));
    if (inputs[i] == nullptr || placement.dense()) {
      in.push_back(AtEdge(inputs[i], copies));
      continue;
    }
    const PlacedTensor placed(inputs[i]->shape(), placement);
    memory.push_back(std::make_unique<GuardedMemory>(placed.bytes, Misalignment(placement)));
    GuardedMemory& to = *memory.back();
    to.FillRandom(static_cast<uint32_t>(i));
    const uint8_t* from = static_cast<const uint8_t*>(inputs[i]->raw_data());
    ForEachPlace(placed, [&](int64_t n, int64_t y, int64_t x, bool inside) {
      uint8_t* pixel = to.data() + placed.Offset(n, y, x);
      if (inside) {
        std::memcpy(pixel, from + ((n * placed.height + y) * placed.width + x) * placed.channels, placed.channels);
      } else {
        std::memset(pixel, Padding(inputs[i]->type()), placed.channels);
      }
    });
    // Channels of a wider tensor end within it.
    in.push_back(Misalignment(placement) == 0 ? AtEdge(ConstBuffer{to.data(), to.size()}, copies)
                                              : ConstBuffer{to.data(), to.size()});
  }

  Tensor result(kernel.outputs()[0]);
  GuardedMemory output(PlacedBytes(result.type(), desc.output_placement), Misalignment(desc.output_placement));
  GuardedMemory scratch(kernel.scratch_bytes());
  const RunContext context{parallel == nullptr ? &serial : parallel, {scratch.data(), scratch.size()}};
  RETURN_IF_ERROR(kernel.Run(in, {Buffer{output.data(), output.size()}}, context));
  if (!output.guards_intact()) return absl::InternalError("wrote beyond its output");
  if (!scratch.guards_intact()) return absl::InternalError("wrote beyond its scratch memory");
  if (desc.output_placement.dense()) {
    if (output.size() > 0) std::memcpy(result.raw_data(), output.data(), output.size());
    return result;
  }
  const PlacedTensor placed(result.shape(), desc.output_placement);
  if (placed.placement.even() && !BetweenIntact(placed, output.data())) {
    return absl::InternalError("wrote between the pixels of its output");
  }
  uint8_t* to = static_cast<uint8_t*>(result.raw_data());
  absl::Status status;
  ForEachPlace(placed, [&](int64_t n, int64_t y, int64_t x, bool inside) {
    const uint8_t* pixel = output.data() + placed.Offset(n, y, x);
    if (inside) {
      std::memcpy(to + ((n * placed.height + y) * placed.width + x) * placed.channels, pixel, placed.channels);
      return;
    }
    const uint8_t wanted = Padding(result.type());
    for (int64_t c = 0; c < placed.channels; ++c) {
      if (pixel[c] == wanted) continue;
      status = absl::InternalError(
          absl::StrCat("padding of image ", n, " at row ", y, ", column ", x, " is ", pixel[c], ", wanted ", wanted));
    }
  });
  RETURN_IF_ERROR(status);
  return result;
}

int64_t Index(const TensorType& type, int64_t n, int64_t c, int64_t h, int64_t w) {
  const Shape& s = type.shape;
  FUSELAGE_CHECK(s.size() == 4);
  return type.layout == Layout::kNhwc ? ((n * s[2] + h) * s[3] + w) * s[1] + c : ((n * s[1] + c) * s[2] + h) * s[3] + w;
}

std::string TestName(absl::string_view text) {
  std::string name;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c))) name += c;
  }
  return name;
}

}  // namespace fuselage::kernels
