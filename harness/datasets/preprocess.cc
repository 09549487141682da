#include "harness/datasets/preprocess.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "harness/datasets/resample.h"
#include "ir/base/check.h"
#include "ir/base/status.h"

namespace fuselage::datasets {
namespace {

// Where one output coordinate reads: weight0 * x[first] + weight1 * x[second].
struct Tap {
  int first, second;
  float weight0, weight1;
};

std::vector<Tap> Taps(int in, int out) {
  std::vector<Tap> taps(out);
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  for (int i = 0; i < out; ++i) {
    const float source = std::max(0.0f, scale * (static_cast<float>(i) + 0.5f) - 0.5f);
    const int first = std::min(static_cast<int>(source), in - 1);
    const float weight1 = std::min(std::max(source - static_cast<float>(first), 0.0f), 1.0f);
    taps[i] = {first, std::min(first + 1, in - 1), 1.0f - weight1, weight1};
  }
  return taps;
}

// Expands one value to `n`, where there is one; `fallback` where there is none.
absl::Status Spread(std::vector<float>* values, int n, float fallback, absl::string_view what) {
  if (values->empty()) values->assign(n, fallback);
  if (values->size() == 1) values->assign(n, (*values)[0]);
  if (static_cast<int>(values->size()) != n) {
    return UsageError(absl::StrCat("preprocessing.", what, " has ", values->size(),
                                   " values, want 1 or one for each of ", n, " channels"));
  }
  for (float value : *values) {
    if (std::isfinite(value)) continue;
    return UsageError(absl::StrCat("preprocessing.", what, " is not finite"));
  }
  return absl::OkStatus();
}

constexpr float kUnit = 255.0f;

// The image's channels as planes of height x width values in [0, 1].
void Resize(const Image& image, int height, int width, absl::Span<float> out) {
  const int64_t plane = int64_t{height} * width;
  const std::vector<Tap> rows = Taps(image.height, height);
  const std::vector<Tap> columns = Taps(image.width, width);

  float unit[256];
  for (int code = 0; code < 256; ++code) unit[code] = static_cast<float>(code) / kUnit;

  // First along x, every source row once; then along y, whose inner loop is contiguous.
  std::vector<float> narrow(int64_t{image.height} * width);
  for (int channel = 0; channel < image.channels; ++channel) {
    for (int y = 0; y < image.height; ++y) {
      const uint8_t* source = image.pixels.data() + int64_t{y} * image.width * image.channels + channel;
      float* row = narrow.data() + int64_t{y} * width;
      for (int x = 0; x < width; ++x) {
        const Tap& tap = columns[x];
        const float a = unit[source[tap.first * image.channels]];
        const float b = unit[source[tap.second * image.channels]];
        row[x] = tap.weight0 * a + tap.weight1 * b;
      }
    }
    float* to = out.data() + channel * plane;
    for (int y = 0; y < height; ++y) {
      const Tap tap = rows[y];
      const float* a = narrow.data() + int64_t{tap.first} * width;
      const float* b = narrow.data() + int64_t{tap.second} * width;
      float* row = to + int64_t{y} * width;
      for (int x = 0; x < width; ++x) row[x] = tap.weight0 * a[x] + tap.weight1 * b[x];
    }
  }
}

// The same of an image that has its size already.
void Split(const Image& image, absl::Span<float> out) {
  const int64_t plane = int64_t{image.height} * image.width;
  for (int channel = 0; channel < image.channels; ++channel) {
    const uint8_t* from = image.pixels.data() + channel;
    float* to = out.data() + channel * plane;
    for (int64_t i = 0; i < plane; ++i) to[i] = static_cast<float>(from[i * image.channels]) / kUnit;
  }
}

}  // namespace

absl::StatusOr<Preprocessor> Preprocessor::Create(PreprocessOptions options) {
  if (options.height <= 0 || options.width <= 0 || options.channels <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("preprocessing to ", options.channels, "x", options.height, "x",
                                                   options.width, ", want positive sizes"));
  }
  const int larger = std::max(options.height, options.width);
  if (options.shorter_side != 0 && options.shorter_side < larger) {
    return UsageError(absl::StrCat("preprocessing.shorter_side is ", options.shorter_side, ", want at least ", larger,
                                   ": ", options.height, "x", options.width, " are cropped from it"));
  }
  RETURN_IF_ERROR(Spread(&options.mean, options.channels, 0.0f, "mean"));
  RETURN_IF_ERROR(Spread(&options.std, options.channels, 1.0f, "std"));
  for (float value : options.std) {
    if (value <= 0) return UsageError(absl::StrCat("preprocessing.std is ", value, ", want > 0"));
  }
  return Preprocessor(std::move(options));
}

absl::Status Preprocessor::Planes(const Image& image, absl::Span<float> out) const {
  const int height = options_.height, width = options_.width;
  FUSELAGE_CHECK(static_cast<int64_t>(out.size()) == int64_t{height} * width * options_.channels);
  FUSELAGE_CHECK(static_cast<int64_t>(image.pixels.size()) == int64_t{image.height} * image.width * image.channels);
  if (image.height <= 0 || image.width <= 0 || (image.channels != 1 && image.channels != options_.channels)) {
    return absl::InvalidArgumentError(absl::StrCat("an image of ", image.height, "x", image.width, "x", image.channels,
                                                   " (height, width, channels) does not fit a model with ",
                                                   options_.channels, " input channels"));
  }
  if (options_.shorter_side > 0) {
    Split(Resample(image, CenterOf(image, options_.shorter_side, height, width)), out);
  } else {
    Resize(image, height, width, out);
  }
  return absl::OkStatus();
}

absl::Status Preprocessor::Run(const Image& image, absl::Span<float> out) const {
  RETURN_IF_ERROR(Planes(image, out));
  const int64_t plane = int64_t{options_.height} * options_.width;
  for (int channel = options_.channels - 1; channel >= 0; --channel) {
    // From the last to the first: a gray image's plane 0 is the source of all.
    const float* from = out.data() + (image.channels == 1 ? 0 : channel * plane);
    float* to = out.data() + channel * plane;
    const float mean = options_.mean[channel], std = options_.std[channel];
    for (int64_t i = 0; i < plane; ++i) to[i] = (from[i] - mean) / std;
  }
  return absl::OkStatus();
}

absl::Status Preprocessor::Run(const Image& image, absl::Span<uint8_t> out) const {
  std::vector<float> planes(out.size());
  RETURN_IF_ERROR(Planes(image, absl::MakeSpan(planes)));
  const int64_t channels = options_.channels, plane = static_cast<int64_t>(out.size()) / channels;
  for (int64_t channel = 0; channel < channels; ++channel) {
    const float* from = planes.data() + (image.channels == 1 ? 0 : channel * plane);
    uint8_t* to = out.data() + (options_.pixels ? channel : channel * plane);
    const int64_t step = options_.pixels ? channels : 1;
    for (int64_t i = 0; i < plane; ++i) to[i * step] = static_cast<uint8_t>(std::lrint(from[i] * kUnit));
  }
  return absl::OkStatus();
}

}  // namespace fuselage::datasets
