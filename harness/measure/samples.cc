#include "harness/measure/samples.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

namespace fuselage::harness {

absl::Status Samples::FillRow(int64_t image, Tensor* batch, int64_t row) const {
  const int64_t size = batch->num_elements() / batch->dim(0);
  ASSIGN_OR_RETURN(const datasets::Image pixels, dataset_.image(image));
  return Annotate(preprocessor_.Run(pixels, absl::MakeSpan(batch->data<float>() + row * size, size)),
                  absl::StrCat("image ", image));
}

absl::Status Samples::Fill(int64_t first, int64_t end, Tensor* batch) const {
  const int rows = static_cast<int>(batch->dim(0));
  const int64_t size = batch->num_elements() / batch->dim(0);
  std::vector<absl::Status> statuses(rows);
  parallel_->For(rows, [&](int row, int) {
    if (first + row < end) {
      statuses[row] = FillRow(first + row, batch, row);
    } else {
      std::fill_n(batch->data<float>() + row * size, size, 0.0f);
    }
  });
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Samples::Batch(int64_t first, const TensorType& type) const {
  Tensor batch(type);
  for (int64_t row = 0; row < batch.dim(0); ++row) {
    RETURN_IF_ERROR(FillRow((first + row) % dataset_.size(), &batch, row));
  }
  return batch;
}

}  // namespace fuselage::harness
