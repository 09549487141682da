#include "harness/datasets/classification.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace fuselage::datasets {

int RankOf(absl::Span<const float> logits, int label) {
  int rank = 0;
  for (int i = 0; i < static_cast<int>(logits.size()); ++i) {
    if (std::isnan(logits[i])) return -1;
    if (logits[i] > logits[label] || (logits[i] == logits[label] && i < label)) ++rank;
  }
  return rank;
}

absl::Status Classification::Add(int64_t first, int64_t rows, const Tensor& output, const Judge* baseline) {
  const TensorType& type = output.type();
  if (type.dtype != DType::kF32 || type.rank() != 2 || type.shape[1] < dataset_.num_classes()) {
    return absl::InvalidArgumentError(absl::StrCat("the model's output is ", ToString(type), ", want f32 [",
                                                   type.shape[0], ", classes] with at least the dataset's ",
                                                   dataset_.num_classes(), " classes"));
  }
  classes_ = type.shape[1];
  compared_ = baseline != nullptr;
  for (int64_t row = 0; row < rows; ++row) {
    const auto logits = output.values<float>().subspan(row * classes_, classes_);
    const int rank = RankOf(logits, dataset_.label(first + row));
    correct1_ += rank == 0;
    correct5_ += rank >= 0 && rank < 5;
    const int top1 = rank < 0 ? -1 : static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    const size_t seen = top1_.size();
    top1_.push_back(top1);
    agreed_ += compared_ && top1 >= 0 && static_cast<const Classification*>(baseline)->top1_[seen] == top1;
  }
  return absl::OkStatus();
}

void Classification::Record(Results::Variant* result) const {
  const double images = static_cast<double>(top1_.size());
  result->set_top1(100 * static_cast<double>(correct1_) / images);
  result->set_top5(100 * static_cast<double>(correct5_) / images);
  if (compared_) result->set_agreement_with_fp32(100 * static_cast<double>(agreed_) / images);
}

std::string Classification::Warning() const {
  if (classes_ == dataset_.num_classes()) return "";
  return absl::StrCat("the network tells ", classes_, " classes apart and the dataset has ", dataset_.num_classes(),
                      "; top-1 and top-5 mean something only if its class 0 is output 0, and so on");
}

}  // namespace fuselage::datasets
