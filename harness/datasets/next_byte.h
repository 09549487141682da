// NextByte: how many bits a language model over bytes needs for a byte of a text.
#ifndef FUSELAGE_HARNESS_DATASETS_NEXT_BYTE_H_
#define FUSELAGE_HARNESS_DATASETS_NEXT_BYTE_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "harness/datasets/dataset.h"

namespace fuselage::datasets {

// The mean of -log2 p(next byte), and of the Kullback-Leibler divergence of p from the baseline's, in bits, over all
// positions of all windows, where p is the softmax of the logits. For networks whose first output is
// f32 [batch, window, 256]. NaN logits make both NaN. The baseline keeps its log2 p: a KB for each byte of text.
class NextByte : public Judge {
 public:
  // `next`: for each position of a window the byte that follows it.
  NextByte(int64_t window, std::function<absl::Span<const uint8_t>(int64_t sample)> next)
      : window_(window), next_(std::move(next)) {}

  absl::Status Add(int64_t first, int64_t rows, const Tensor& output, const Judge* baseline) override;
  void Record(Results::Variant* result) const override;

 private:
  const int64_t window_;
  const std::function<absl::Span<const uint8_t>(int64_t)> next_;
  int64_t positions_ = 0;
  double bits_ = 0, divergence_ = 0;  // Sums.
  bool compared_ = false;             // There is a baseline.
  std::vector<float> log2_;           // The baseline's: [positions, 256].
};

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_NEXT_BYTE_H_
