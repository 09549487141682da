// StoredWeights: weights as kernels packed them before, in a file.
#ifndef FUSELAGE_COMPILER_STORED_WEIGHTS_H_
#define FUSELAGE_COMPILER_STORED_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "kernels/core/packed_weights.h"

namespace fuselage::compiler {

// Packs what is not stored.
class StoredWeights final : public kernels::PackedWeights {
 public:
  struct Stored {
    std::shared_ptr<const Tensor> parameter, packed;
    std::string layout;
    uint64_t checksum = 0;  // ir::ValueFingerprint of `packed`.
    std::string name;       // The parameter's.
  };

  explicit StoredWeights(std::string path) : path_(std::move(path)) {}

  // Before the first Get. InvalidArgument: `layout` is of another type than `packed`, or there is one already.
  absl::Status Add(Stored stored);

  std::shared_ptr<const Tensor> Get(const kernels::Parameter& parameter, const std::string& layout,
                                    absl::FunctionRef<Tensor()> pack) override;

  // What is used is verified, once, when it is first used: InvalidArgument names the first that Get has found damaged,
  // and packed again.
  absl::Status status() const;

 private:
  struct Entry {
    Stored stored;
    bool verified = false, damaged = false;
  };
  using Key = std::pair<const Tensor*, std::string>;  // The entry keeps the tensor.

  const std::string path_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
  absl::Status status_;
};

}  // namespace fuselage::compiler

#endif  // FUSELAGE_COMPILER_STORED_WEIGHTS_H_
