// Depthwise convolution: each channel has its own kernel, so there is no sum over channels, and channels are the lanes.
#include <algorithm>
#include <cstring>
#include <vector>

#include "ir/base/tensor.h"
#include "kernels/int8/conv2d/operands.h"
#include "kernels/int8/conv2d/output_constants.h"
#include "kernels/int8/conv2d/variants.h"

namespace fuselage::int8::conv2d {
namespace {

class Depthwise : public Algorithm {
 public:
  Depthwise(const Problem& problem, const DepthwisePrimitives& primitives)
      : geometry_(problem.geometry),
        primitives_(primitives),
        constants_(ForWholeTensor(problem), CodeForm::kSigned),
        operands_(problem),
        taps_(problem.geometry.kernel_height * problem.geometry.kernel_width),
        threads_(problem.threads) {
    const Geometry& g = geometry_;
    // A pixel of zero points; whole vectors are read.
    padding_ = Tensor(DType::kU8, {RoundUp(g.in_channels, kPanel)});
    std::memset(padding_.raw_data(), static_cast<uint8_t>(problem.input_zero_point), padding_.byte_size());
    pointer_bytes_ = RoundUp(int64_t{g.out_width} * taps_ * int64_t{sizeof(const uint8_t*)}, 64);
    // [panel][pair of taps][16][2]
    const int64_t pairs = CeilDiv(taps_, 2);
    weight_ = Tensor(DType::kI16, {CeilDiv(g.in_channels, kPanel) * pairs * kPanel * 2});
    for (int64_t c = 0; c < g.in_channels; ++c) {
      for (int64_t tap = 0; tap < taps_; ++tap) {
        weight_.data<int16_t>()[((c / kPanel * pairs + tap / 2) * kPanel + c % kPanel) * 2 + tap % 2] =
            problem.weight[c * taps_ + tap];
      }
    }
  }

  int64_t scratch_bytes() const override { return pointer_bytes_ * threads_; }
  int64_t weight_bytes() const override { return weight_.byte_size() + constants_.bytes() + padding_.byte_size(); }

  void Run(const Arguments& arguments, const kernels::RunContext& context) const override {
    uint8_t* scratch = static_cast<uint8_t*>(context.scratch.data);
    context.parallel->For(geometry_.batch * geometry_.out_height, [&](int row, int thread) {
      RunRow(arguments, row, reinterpret_cast<const uint8_t**>(scratch + thread * pointer_bytes_));
    });
  }

 private:
  // The output constants are laid out by group; here all channels are one group of lanes.
  static Problem ForWholeTensor(Problem problem) {
    problem.geometry.groups = 1;
    problem.geometry.in_channels = 1;
    return problem;
  }

  void RunRow(const Arguments& arguments, int64_t row, const uint8_t** pixels) const {
    const Geometry& g = geometry_;
    const int64_t image = row / g.out_height, out_y = row % g.out_height;
    const uint8_t* input = static_cast<const uint8_t*>(arguments.input);
    const uint8_t** to_pixel = pixels;
    for (int64_t out_x = 0; out_x < g.out_width; ++out_x) {
      for (int64_t ky = 0; ky < g.kernel_height; ++ky) {
        const int64_t y = out_y * g.stride_y - g.pad_top + ky * g.dilation_y;
        for (int64_t kx = 0; kx < g.kernel_width; ++kx) {
          const int64_t x = out_x * g.stride_x - g.pad_left + kx * g.dilation_x;
          const bool inside = y >= 0 && y < g.in_height && x >= 0 && x < g.in_width;
          *to_pixel++ = inside ? input + operands_.input.Offset(image, y, x) : padding_.data<uint8_t>();
        }
      }
    }
    Destination to = operands_.To(arguments, image, out_y, 0, 0);
    to.channels = g.out_channels;
    DepthwiseRow work;
    work.pixels = pixels;
    work.taps = taps_;
    work.pixel_count = g.out_width;
    work.channels = g.in_channels;
    work.weight = weight_.data<int16_t>();
    work.flip = constants_.input_flip();
    primitives_.row(constants_.stage(), to, work);
  }

  const Geometry geometry_;
  const DepthwisePrimitives& primitives_;
  const OutputConstants constants_;
  const Operands operands_;
  const int taps_;
  const int threads_;
  int64_t pointer_bytes_;
  Tensor weight_, padding_;
};

}  // namespace

bool DepthwiseSupports(const Problem& problem) {
  const Geometry& g = problem.geometry;
  return g.groups == g.in_channels && g.out_channels == g.in_channels && problem.by_rows();
}

std::unique_ptr<Algorithm> MakeDepthwise(const Problem& problem, const DepthwisePrimitives& primitives) {
  return std::make_unique<Depthwise>(problem, primitives);
}

}  // namespace fuselage::int8::conv2d
