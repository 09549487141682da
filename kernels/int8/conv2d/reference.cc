#include "kernels/int8/conv2d/reference.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/int8/conv2d/core/operands.h"

namespace fuselage::int8::conv2d {
namespace {


class Reference : public Algorithm {
 public:
  [[gnu::cold]] explicit Reference(const Problem& problem) : problem_(problem), geometry_(problem.geometry), operands_(problem) {
    problem_.weight = nullptr;
    problem_.own_weight = nullptr;
    problem_.desc = nullptr;
    geometry_.groups = problem.described_groups;
    const int8_t* weight = problem.desc->ParameterOrNull("weight")->data<int8_t>();
    // [oc, kh, kw, ic/groups]: the channels of a pixel are contiguous, as in the input.
    const int taps = geometry_.kernel_height * geometry_.kernel_width;
    const int channels = geometry_.group_in_channels();
    const TensorType type{DType::kI8, {geometry_.out_channels, taps, channels}, std::nullopt, Layout::kRowMajor};
    SetWeight(problem, absl::StrCat("conv2d scalar ", ToString(type)), [&] {
      Tensor packed(type);
      int8_t* to = packed.data<int8_t>();
      for (int64_t oc = 0; oc < geometry_.out_channels; ++oc) {
        for (int64_t ic = 0; ic < channels; ++ic) {
          for (int64_t tap = 0; tap < taps; ++tap) {
            to[(oc * taps + tap) * channels + ic] = weight[(oc * channels + ic) * taps + tap];
          }
        }
      }
      return packed;
    });
  }

  int64_t scratch_bytes() const override { return 0; }

  void Run(const Arguments& arguments, const kernels::RunContext& context) const override {
    const auto accumulate =
        problem_.input_type == DType::kU8 ? &Reference::Accumulate<uint8_t> : &Reference::Accumulate<int8_t>;
    context.parallel->For(geometry_.batch * geometry_.out_height,
                          [&](int row, int) { Row(accumulate, arguments, row); });
  }

 private:
  // The sum of an output channel at a place.
  using Sum = int32_t (Reference::*)(const void* input, int image, int y, int x, int oc) const;

  void Row(Sum accumulate, const Arguments& arguments, int row) const {
    const Geometry& g = geometry_;
    const int image = row / g.out_height, y = row % g.out_height;
    for (int x = 0; x < g.out_width; ++x) {
      const int64_t to = operands_.output.Offset(image, y, x), residual = operands_.residual.Offset(image, y, x);
      for (int oc = 0; oc < g.out_channels; ++oc) {
        Store((this->*accumulate)(arguments.input, image, y, x, oc), oc, to + oc, residual + oc, arguments);
      }
    }
  }

  template <typename X>
  int32_t Accumulate(const void* input, int image, int y, int x, int oc) const {
    const Geometry& g = geometry_;
    const int channels = g.group_in_channels();
    const int first_channel = oc / g.group_out_channels() * channels;
    const int8_t* w = weight_->data<int8_t>() + int64_t{1} * oc * g.kernel_height * g.kernel_width * channels;
    int32_t sum = 0;
    for (int ky = 0; ky < g.kernel_height; ++ky) {
      const int64_t iy = int64_t{y} * g.stride_y - g.pad_top + int64_t{ky} * g.dilation_y;
      for (int kx = 0; kx < g.kernel_width; ++kx, w += channels) {
        const int64_t ix = int64_t{x} * g.stride_x - g.pad_left + int64_t{kx} * g.dilation_x;
        if (iy < 0 || iy >= g.in_height || ix < 0 || ix >= g.in_width) {
          for (int c = 0; c < channels; ++c) sum += problem_.input_zero_point * w[c];
        } else {
          const X* pixel = static_cast<const X*>(input) + operands_.input.Offset(image, iy, ix) + first_channel;
          for (int c = 0; c < channels; ++c) sum += static_cast<int32_t>(pixel[c]) * w[c];
        }
      }
    }
    return sum;
  }

  void Store(int32_t sum, int oc, int64_t index, int64_t residual, const Arguments& arguments) const {
    if (problem_.output_type == DType::kF32) {
      const float v = kernels::DequantizeAccumulator(sum, oc, problem_.epilogue);
      static_cast<float*>(arguments.output)[index] = problem_.relu && v < 0 ? 0.0f : v;
      return;
    }
    int32_t q;
    if (problem_.has_residual) {
      const int32_t r = problem_.residual_type == DType::kU8 ? static_cast<const uint8_t*>(arguments.residual)[residual]
                                                             : static_cast<const int8_t*>(arguments.residual)[residual];
      q = kernels::RequantizeWithResidual(sum, oc, r, problem_.epilogue);
    } else {
      q = kernels::Requantize(sum, oc, problem_.epilogue);
    }
    static_cast<uint8_t*>(arguments.output)[index] = static_cast<uint8_t>(q);  // i8 codes keep their bits.
  }

  Problem problem_;
  Geometry geometry_;
  Operands operands_;
};

}  // namespace

std::unique_ptr<Algorithm> MakeReference(const Problem& problem) { return std::make_unique<Reference>(problem); }

}  // namespace fuselage::int8::conv2d
