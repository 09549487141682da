#include "kernels/cuda/shared_uploads.h"

#include <functional>
#include <string_view>
#include <utility>

#include "absl/hash/hash.h"

namespace fuselage::cuda {

absl::StatusOr<SharedUploads::Memory> SharedUploads::Get(absl::string_view bytes,
                                                         absl::FunctionRef<absl::StatusOr<Memory>()> upload) {
  const Key key(bytes.size(), absl::Hash<absl::string_view>()(bytes),
                std::hash<std::string_view>()({bytes.data(), bytes.size()}));
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = uploads_.find(key);
  if (found != uploads_.end()) {
    if (Memory memory = found->second.lock()) return memory;
  }
  absl::StatusOr<Memory> memory = upload();
  if (!memory.ok()) return memory;
  for (auto it = uploads_.begin(); it != uploads_.end();) it = it->second.expired() ? uploads_.erase(it) : ++it;
  uploads_.emplace(key, *memory);
  return memory;
}

}  // namespace fuselage::cuda
