#include "harness/measure/accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/measure/prefetch.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

// 64-bit FNV-1a (Fowler, Noll, Vo), continued over all images.
void Hash(absl::Span<const float> values, uint64_t* hash) {
  for (float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    for (int shift = 0; shift < 32; shift += 8) *hash = (*hash ^ (bits >> shift & 0xff)) * 0x100000001b3u;
  }
}

}  // namespace

int RankOf(absl::Span<const float> logits, int label) {
  int rank = 0;
  for (int i = 0; i < static_cast<int>(logits.size()); ++i) {
    if (std::isnan(logits[i])) return -1;
    if (logits[i] > logits[label] || (logits[i] == logits[label] && i < label)) ++rank;
  }
  return rank;
}

absl::StatusOr<Predictions> Evaluate(compiler::Engine& engine, const ImageSamples& samples, int64_t images,
                                     const std::function<void(int64_t done)>& progress) {
  images = std::min(images, samples.size());
  const int64_t batch = engine.batch();
  Prefetcher batches(samples, engine.input_types()[0], images);
  Predictions predictions;
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t first = 0; first < images; first += batch) {
    ASSIGN_OR_RETURN(const Tensor* input, batches.Next());
    ASSIGN_OR_RETURN(const std::vector<Tensor>* outputs, engine.Run(absl::MakeConstSpan(input, 1)));
    const TensorType& type = (*outputs)[0].type();
    const int wanted_classes = samples.dataset().num_classes();
    if (type.dtype != DType::kF32 || type.rank() != 2 || type.shape[0] != batch || type.shape[1] < wanted_classes) {
      return absl::InvalidArgumentError(absl::StrCat("the model's output is ", ToString(type), ", want f32 [", batch,
                                                     ", classes] with at least the dataset's ", wanted_classes,
                                                     " classes"));
    }
    const int64_t classes = predictions.classes = type.shape[1];
    for (int64_t row = 0; row < std::min(batch, images - first); ++row) {
      const auto logits = (*outputs)[0].values<float>().subspan(row * classes, classes);
      Hash(logits, &hash);
      const int rank = RankOf(logits, samples.dataset().label(first + row));
      predictions.correct1 += rank == 0;
      predictions.correct5 += rank >= 0 && rank < 5;
      predictions.top1.push_back(
          rank < 0 ? -1 : static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    }
    if (progress) progress(std::min(first + batch, images));
  }
  predictions.fingerprint = absl::StrFormat("%016x", hash);
  return predictions;
}

double Agreement(const Predictions& a, const Predictions& b) {
  const size_t images = std::min(a.top1.size(), b.top1.size());
  if (images == 0) return 0;
  int64_t same = 0;
  for (size_t i = 0; i < images; ++i) same += a.top1[i] == b.top1[i] && a.top1[i] >= 0;
  return 100.0 * static_cast<double>(same) / static_cast<double>(images);
}

}  // namespace fuselage::harness
