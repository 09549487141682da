// PackedWeights: what kernels make of constant operands, once for all programs of a model.
//
// Weights lie as the instruction set wants to read them, which seldom depends on the batch size or the number of
// threads: kernels that want the same layout of the same tensor share one copy, in one program or in several.
#ifndef FUSELAGE_KERNELS_CORE_PACKED_WEIGHTS_H_
#define FUSELAGE_KERNELS_CORE_PACKED_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "ir/base/tensor.h"

namespace fuselage::kernels {

// A constant operand. With its owner, what kernels pack of it can be shared.
class Parameter {
 public:
  Parameter() = default;
  // Borrowed.
  Parameter(const Tensor* tensor) : tensor_(std::shared_ptr<const Tensor>(), tensor) {}  // NOLINT: {{"weight", &w}}.
  Parameter(std::shared_ptr<const Tensor> tensor) : tensor_(std::move(tensor)) {}        // NOLINT

  const Tensor* get() const { return tensor_.get(); }
  const Tensor& operator*() const { return *tensor_; }
  std::weak_ptr<const Tensor> owner() const { return tensor_; }  // Expired where it is borrowed.

 private:
  std::shared_ptr<const Tensor> tensor_;
};

// Any thread may use it. Keeps what it has as long as the operands live.
class PackedWeights {
 public:
  virtual ~PackedWeights() = default;

  // What `pack` gives, or gave before for this operand and `layout`, which says all that the result depends on beside
  // the operand.
  virtual std::shared_ptr<const Tensor> Get(const Parameter& parameter, const std::string& layout,
                                            absl::FunctionRef<Tensor()> pack);

  int64_t packings() const;  // How often Get has packed.

 private:
  // By owner, not by address, which another tensor may have later.
  using Key = std::pair<std::weak_ptr<const Tensor>, std::string>;
  struct Less {
    bool operator()(const Key& a, const Key& b) const {
      if (a.first.owner_before(b.first) || b.first.owner_before(a.first)) return a.first.owner_before(b.first);
      return a.second < b.second;
    }
  };

  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Tensor>, Less> packed_;
  int64_t packings_ = 0;
};

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_PACKED_WEIGHTS_H_
