#include "harness/datasets/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fuselage::datasets {
namespace {

// 32 bits hold a u8 times a weight of at most 1, and two bits for the sum.
constexpr int kFraction = 22;

// Which source pixels an output pixel is the weighted sum of.
struct Taps {
  int first = 0;
  std::vector<int32_t> weights;
};

// The taps of the outputs begin ... begin + count - 1 of `out`, over `in` source pixels. Positions and weights are
// doubles in Pillow's order of operations; their sum is rounded half up, as no weight is negative.
std::vector<Taps> TapsOf(int in, int64_t out, int64_t begin, int count) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double support = std::max(scale, 1.0);  // Half the triangle's base, in source pixels.
  const double inverse = 1.0 / support;
  std::vector<Taps> all(count);
  std::vector<double> weights;
  for (int i = 0; i < count; ++i) {
    const double center = (static_cast<double>(begin + i) + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int last = std::min(in, static_cast<int>(center + support + 0.5));
    weights.clear();
    double sum = 0;
    for (int x = first; x < last; ++x) {
      weights.push_back(std::max(0.0, 1.0 - std::abs((x - center + 0.5) * inverse)));
      sum += weights.back();
    }
    all[i].first = first;
    for (double weight : weights) {
      all[i].weights.push_back(static_cast<int32_t>(0.5 + weight / sum * (1 << kFraction)));
    }
  }
  return all;
}

uint8_t Rounded(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kFraction, 0, 255)); }

constexpr int32_t kHalf = 1 << (kFraction - 1);

// Rows `first` to `last` of the source, as wide as the window.
std::vector<uint8_t> AlongX(const Image& image, const std::vector<Taps>& columns, int first, int last) {
  const int channels = image.channels;
  std::vector<uint8_t> narrow(static_cast<int64_t>(last - first) * columns.size() * channels);
  uint8_t* out = narrow.data();
  for (int y = first; y < last; ++y) {
    const uint8_t* row = image.pixels.data() + int64_t{y} * image.width * channels;
    for (const Taps& taps : columns) {
      for (int channel = 0; channel < channels; ++channel) {
        const uint8_t* in = row + int64_t{taps.first} * channels + channel;
        int32_t sum = kHalf;
        for (size_t i = 0; i < taps.weights.size(); ++i) sum += in[i * channels] * taps.weights[i];
        *out++ = Rounded(sum);
      }
    }
  }
  return narrow;
}

}  // namespace

Window CenterOf(const Image& image, int shorter_side, int height, int width) {
  const int64_t shorter = std::min(image.height, image.width), longer = std::max(image.height, image.width);
  // Python's int(size * long / short) and int(round((size - crop) / 2.0)), which rounds half to even.
  const int64_t other = static_cast<int64_t>(static_cast<double>(shorter_side * longer) / static_cast<double>(shorter));
  const auto middle = [](int64_t size, int crop) {
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(size - crop) / 2.0));
  };
  Window window;
  window.resized_height = image.height <= image.width ? shorter_side : other;
  window.resized_width = image.height <= image.width ? other : shorter_side;
  window.top = middle(window.resized_height, height);
  window.left = middle(window.resized_width, width);
  window.height = height;
  window.width = width;
  return window;
}

Image Resample(const Image& image, const Window& window) {
  const std::vector<Taps> columns = TapsOf(image.width, window.resized_width, window.left, window.width);
  const std::vector<Taps> rows = TapsOf(image.height, window.resized_height, window.top, window.height);
  const int first = rows.front().first;
  const int last = rows.back().first + static_cast<int>(rows.back().weights.size());
  const std::vector<uint8_t> narrow = AlongX(image, columns, first, last);

  Image out{window.height, window.width, image.channels, {}};
  const int64_t row_size = int64_t{window.width} * image.channels;
  out.pixels.resize(window.height * row_size);
  std::vector<int32_t> sums(row_size);
  for (int y = 0; y < window.height; ++y) {
    std::fill(sums.begin(), sums.end(), kHalf);
    for (size_t i = 0; i < rows[y].weights.size(); ++i) {
      const uint8_t* in = narrow.data() + (rows[y].first - first + static_cast<int64_t>(i)) * row_size;
      const int32_t weight = rows[y].weights[i];
      for (int64_t x = 0; x < row_size; ++x) sums[x] += in[x] * weight;
    }
    for (int64_t x = 0; x < row_size; ++x) out.pixels[y * row_size + x] = Rounded(sums[x]);
  }
  return out;
}

}  // namespace fuselage::datasets
