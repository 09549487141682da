#include "harness/datasets/next_byte.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace fuselage::datasets {
namespace {

constexpr int64_t kBytes = 256;
using Row = std::array<float, kBytes>;

Row Log2Softmax(const float* logits) {
  const double most = *std::max_element(logits, logits + kBytes);
  double sum = 0;
  for (int64_t i = 0; i < kBytes; ++i) sum += std::exp(logits[i] - most);
  const double log_sum = most + std::log(sum);
  Row row;
  for (int64_t i = 0; i < kBytes; ++i) row[i] = static_cast<float>((logits[i] - log_sum) / M_LN2);
  return row;
}

// The Kullback-Leibler divergence of q from p, both log2: the bits that a code made for q wastes where p is true.
double Divergence(const float* p, const Row& q) {
  double sum = 0;
  for (int64_t i = 0; i < kBytes; ++i) {
    const double probability = std::exp2(p[i]);
    if (probability != 0) sum += probability * (double{p[i]} - q[i]);  // 0 * log2(0) is 0 here.
  }
  return sum;
}

}  // namespace

absl::Status NextByte::Add(int64_t first, int64_t rows, const Tensor& output, const Judge* baseline) {
  const TensorType& type = output.type();
  if (type.dtype != DType::kF32 || type.rank() != 3 || type.shape[1] != window_ || type.shape[2] != kBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the model's output is ", ToString(type), ", want f32 [",
                                                   type.shape[0], ",", window_, ",", kBytes,
                                                   "]: logits of the byte after each"));
  }
  const auto* compared = static_cast<const NextByte*>(baseline);
  compared_ = compared != nullptr;
  const float* logits = output.values<float>().data();
  for (int64_t row = 0; row < rows; ++row) {
    const absl::Span<const uint8_t> next = next_(first + row);
    for (int64_t i = 0; i < window_; ++i, ++positions_, logits += kBytes) {
      const Row found = Log2Softmax(logits);
      bits_ -= found[next[i]];
      if (compared == this) log2_.insert(log2_.end(), found.begin(), found.end());
      if (compared_) divergence_ += Divergence(compared->log2_.data() + positions_ * kBytes, found);
    }
  }
  return absl::OkStatus();
}

void NextByte::Record(Results::Variant* result) const {
  result->set_bits_per_byte(bits_ / static_cast<double>(positions_));
  if (compared_) result->set_kl_divergence_bits(divergence_ / static_cast<double>(positions_));
}

}  // namespace fuselage::datasets
