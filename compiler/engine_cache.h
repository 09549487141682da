// EngineCache: a network's engines, each for a batch size of its own, as many as were used last.
#ifndef FUSELAGE_COMPILER_ENGINE_CACHE_H_
#define FUSELAGE_COMPILER_ENGINE_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/engine.h"

namespace fuselage::compiler {

class EngineCache {
 public:
  struct Options {
    int most = 1;                  // Engines; at least 1.
    int64_t max_memory_bytes = 0;  // Of all: weight_bytes() and arena_bytes(). 0: no limit.
  };

  EngineCache(std::function<absl::StatusOr<std::unique_ptr<Engine>>(int64_t batch)> make, const Options& options)
      : make_(std::move(make)), options_(options) {}

  // Makes it at its first use; then those least recently used go, as the options want it. Valid until the next call.
  absl::StatusOr<Engine*> Get(int64_t batch);

  int64_t arena_bytes() const;
  // Of the engine that has most: they share what kernels pack alike for all batch sizes.
  int64_t weight_bytes() const;

 private:
  bool HasTooMany() const;

  const std::function<absl::StatusOr<std::unique_ptr<Engine>>(int64_t batch)> make_;
  const Options options_;
  std::vector<std::unique_ptr<Engine>> engines_;  // The last used first.
};

}  // namespace fuselage::compiler

#endif  // FUSELAGE_COMPILER_ENGINE_CACHE_H_
