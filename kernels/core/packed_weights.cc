#include "kernels/core/packed_weights.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace fuselage::kernels {
namespace {

constexpr size_t kPage = 2 << 20, kLeastBlock = 4 * kPage, kLine = 64;

size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }

// Mapped, as small pages that were in use before would stay small.
std::shared_ptr<uint8_t> MapPages(size_t bytes) {
  const size_t mapped = bytes + kPage;  // A page begins in the first kPage of them.
  void* const base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  const std::shared_ptr<void> owner(base, [mapped](void* p) { munmap(p, mapped); });
  uint8_t* const data = reinterpret_cast<uint8_t*>(RoundUp(reinterpret_cast<uintptr_t>(base), kPage));
#ifdef MADV_HUGEPAGE
  madvise(data, bytes, MADV_HUGEPAGE);  // Fails where the system has none: that is no error.
#endif
  return {owner, data};
}

}  // namespace

// A block lives as long as one of its tensors.
std::shared_ptr<const Tensor> PackedWeights::Placed(Tensor packed) {
  const size_t bytes = RoundUp(packed.byte_size(), kLine);
  if (block_ == nullptr || block_bytes_ - used_ < bytes) {
    block_bytes_ = std::max(kLeastBlock, RoundUp(bytes, kPage));
    block_ = MapPages(block_bytes_);
    used_ = 0;
  }
  uint8_t* const data = block_.get() + used_;
  used_ += bytes;
  std::memcpy(data, packed.raw_data(), packed.byte_size());
  return std::make_shared<const Tensor>(Tensor::Borrow(packed.type(), data, block_));
}

std::shared_ptr<const Tensor> PackedWeights::Get(const Parameter& parameter, const std::string& layout,
                                                 absl::FunctionRef<Tensor()> pack) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Key key(parameter.owner(), layout);
  const auto found = packed_.find(key);
  if (found != packed_.end()) return found->second;
  auto packed = Placed(pack());
  ++packings_;
  if (key.first.expired()) return packed;
  for (auto it = packed_.begin(); it != packed_.end();) it = it->first.first.expired() ? packed_.erase(it) : ++it;
  packed_.emplace(key, packed);
  return packed;
}

int64_t PackedWeights::packings() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return packings_;
}

}  // namespace fuselage::kernels
