#include "compiler/engine_cache.h"

#include <algorithm>

#include "ir/base/status.h"

namespace fuselage::compiler {

absl::StatusOr<Engine*> EngineCache::Get(int64_t batch) {
  auto found = std::find_if(engines_.begin(), engines_.end(),
                            [batch](const std::unique_ptr<Engine>& engine) { return engine->batch() == batch; });
  if (found != engines_.end()) {
    std::rotate(engines_.begin(), found, found + 1);
    return engines_[0].get();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> made, make_(batch));
  engines_.insert(engines_.begin(), std::move(made));
  while (HasTooMany()) engines_.pop_back();
  return engines_[0].get();
}

bool EngineCache::HasTooMany() const {
  if (engines_.size() == 1) return false;
  const int64_t limit = options_.max_memory_bytes;
  return static_cast<int>(engines_.size()) > options_.most || (limit > 0 && arena_bytes() + weight_bytes() > limit);
}

int64_t EngineCache::arena_bytes() const {
  int64_t bytes = 0;
  for (const auto& engine : engines_) bytes += engine->arena_bytes();
  return bytes;
}

int64_t EngineCache::weight_bytes() const {
  int64_t bytes = 0;
  for (const auto& engine : engines_) bytes = std::max(bytes, engine->weight_bytes());
  return bytes;
}

}  // namespace fuselage::compiler
