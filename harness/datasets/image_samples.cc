#include "harness/datasets/image_samples.h"

#include "absl/strings/str_cat.h"
#include "ir/base/sha256.h"
#include "ir/base/status.h"

namespace fuselage::datasets {

std::string ImageSamples::Key(int64_t count) const {
  const PreprocessOptions& preprocess = preprocessor_.options();
  Sha256 digest;
  digest.UpdateArray<float>(preprocess.mean);
  digest.UpdateArray<float>(preprocess.std);
  digest.UpdateArray<int>({preprocess.shorter_side});
  for (int64_t i = 0; i < count; ++i) {
    const absl::StatusOr<Image> image = dataset_.image(i);
    if (!image.ok()) return "";
    digest.UpdateArray<int>({image->height, image->width, image->channels});
    digest.UpdateArray<uint8_t>(image->pixels);
  }
  return absl::StrCat("images, inputs ", preprocess.bytes ? "u8[" : "f32[", preprocess.channels, ",", preprocess.height,
                      ",", preprocess.width, "]", preprocess.pixels ? " as pixels" : "", ", sha256 ", digest.Finish());
}

absl::Status ImageSamples::FillRow(int64_t sample, int, Tensor* batch, int64_t row) const {
  const int64_t size = batch->num_elements() / batch->dim(0);
  ASSIGN_OR_RETURN(const Image pixels, dataset_.image(sample));
  const absl::Status status = preprocessor_.options().bytes
                                  ? preprocessor_.Run(pixels, absl::MakeSpan(batch->data<uint8_t>() + row * size, size))
                                  : preprocessor_.Run(pixels, absl::MakeSpan(batch->data<float>() + row * size, size));
  return Annotate(status, absl::StrCat("image ", sample));
}

}  // namespace fuselage::datasets
