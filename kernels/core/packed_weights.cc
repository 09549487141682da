#include "kernels/core/packed_weights.h"

namespace fuselage::kernels {

std::shared_ptr<const Tensor> PackedWeights::Get(const Parameter& parameter, const std::string& layout,
                                                 absl::FunctionRef<Tensor()> pack) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Key key(parameter.owner(), layout);
  const auto found = packed_.find(key);
  if (found != packed_.end()) return found->second;
  auto packed = std::make_shared<const Tensor>(pack());
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
