// Samples: numbered inputs of a network, as batches. Given tensors, random values, or what a caller reads.
#ifndef FUSELAGE_COMPILER_SAMPLES_H_
#define FUSELAGE_COMPILER_SAMPLES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/base/tensor.h"
#include "ir/graph.h"
#include "kernels/core/parallel.h"

namespace fuselage::compiler {

class Samples {
 public:
  virtual ~Samples() = default;

  virtual int64_t size() const = 0;

  // Identifies the first `count` samples: equal keys, equal values. Empty where one cannot be read.
  virtual std::string Key(int64_t count) const = 0;

  // Samples first, first + 1, ... into the rows of `batch`, which is the network's input number `input`; rows past
  // `end` become zeros. Spread over the threads, with the same result for any number of them.
  absl::Status Fill(int64_t first, int64_t end, Tensor* batch, int input = 0) const;

  // One row of that. Any thread may call it.
  absl::Status FillOrClear(int64_t sample, int64_t end, int input, Tensor* batch, int64_t row) const;

  int threads() const { return parallel_->threads(); }  // That Fill is spread over.

  // A batch of samples from `first` on for each input, beginning again at 0 after the last.
  absl::StatusOr<std::vector<Tensor>> Batch(int64_t first, absl::Span<const TensorType> types) const;

 protected:
  explicit Samples(kernels::Parallel* parallel) : parallel_(parallel) {}

 private:
  virtual absl::Status FillRow(int64_t sample, int input, Tensor* batch, int64_t row) const = 0;

  kernels::Parallel* const parallel_;
};

// The rows of tensors, one tensor for each input. For any inputs of these types but for dimension 0, which they share.
class TensorSamples : public Samples {
 public:
  TensorSamples(std::shared_ptr<const std::vector<Tensor>> inputs, kernels::Parallel* parallel)
      : Samples(parallel), inputs_(std::move(inputs)) {}

  int64_t size() const override { return (*inputs_)[0].dim(0); }
  // "inputs, sha256 ...".
  std::string Key(int64_t count) const override;

 private:
  absl::Status FillRow(int64_t sample, int input, Tensor* batch, int64_t row) const override;

  const std::shared_ptr<const std::vector<Tensor>> inputs_;
};

// Of each input: below what its random integers have to be. As many as the shortest axis has in which they are
// positions (token ids); 2 where they are none (masks). 0 for other types.
std::vector<int64_t> IntegerBounds(const ir::Graph& graph);

// SeededTensor's values, by seed, sample and input. For any inputs; integers become less than their bound, if there are
// any, and none is negative then.
class RandomSamples : public Samples {
 public:
  RandomSamples(uint64_t seed, int64_t size, kernels::Parallel* parallel, std::vector<int64_t> bounds = {})
      : Samples(parallel), seed_(seed), size_(size), bounds_(std::move(bounds)) {}

  int64_t size() const override { return size_; }
  std::string Key(int64_t count) const override;

 private:
  absl::Status FillRow(int64_t sample, int input, Tensor* batch, int64_t row) const override;

  const uint64_t seed_;
  const int64_t size_;
  const std::vector<int64_t> bounds_;
};

}  // namespace fuselage::compiler

#endif  // FUSELAGE_COMPILER_SAMPLES_H_
