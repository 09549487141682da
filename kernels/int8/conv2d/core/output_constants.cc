#include "kernels/int8/conv2d/core/output_constants.h"

#include <algorithm>

namespace fuselage::int8::conv2d {

OutputConstants::OutputConstants(const Problem& problem, CodeForm form) {
  const Geometry& g = problem.geometry;
  const kernels::Epilogue& e = problem.epilogue;
  const bool is_float = problem.output_type == DType::kF32;
  const DType as_is = form == CodeForm::kSigned ? DType::kI8 : DType::kU8;
  input_flip_ = problem.input_type == as_is ? 0 : 0x80;
  // sum x*w = sum (x' + shift)*w
  const int32_t shift = input_flip_ == 0 ? 0 : form == CodeForm::kSigned ? 128 : -128;

  const int64_t group_channels = g.group_out_channels(), padded = RoundUp(group_channels, kPanel);
  bias_.resize(padded * g.groups);
  multiplier_.resize(bias_.size());
  float_bias_.resize(is_float ? bias_.size() : 0);
  behind_function_.resize(2 * bias_.size());
  float* const multipliers = behind_function_.data();
  float* const offsets = multipliers + behind_function_.size() / 2;
  // y * 1 + -0 is y, whatever its sign.
  const kernels::Epilogue::Post nothing = {is_float ? 1.0f : e.function_multiplier, -0.0f};
  for (int64_t oc = 0; oc < g.out_channels; ++oc) {
    const int64_t sum = kernels::SumsOf(*e.weight_sums, oc).sum;
    const int64_t to = oc / group_channels * padded + oc % group_channels;
    // Modulo 2^32; the final sum is proven to fit.
    bias_[to] = static_cast<int32_t>(static_cast<uint32_t>(is_float ? e.offset[oc] : e.bias[oc]) +
                                     static_cast<uint32_t>(shift) * static_cast<uint32_t>(sum));
    multiplier_[to] = is_float ? e.float_scale[oc] : e.multiplier[oc];
    if (is_float) float_bias_[to] = e.float_bias[oc];
    const kernels::Epilogue::Post& post = e.post.empty() ? nothing : e.post[oc];
    multipliers[to] = post.multiplier;
    offsets[to] = post.offset;
  }
  stage_.bias = bias_.data();
  stage_.multiplier = multiplier_.data();
  stage_.float_bias = float_bias_.data();
  function_ = e.function;
  stage_.function = function_ ? &*function_ : nullptr;
  stage_.function_multiplier = multipliers;
  stage_.function_offset = offsets;
  stage_.is_float = is_float;
  stage_.relu = problem.relu;
  if (is_float) return;
  const int32_t output_shift = problem.output_type == DType::kI8 ? 128 : 0;
  stage_.output_flip = static_cast<uint8_t>(output_shift);
  stage_.zero_point = e.zero_point + output_shift;
  stage_.lo = static_cast<uint8_t>(e.range.lo + output_shift);
  stage_.hi = static_cast<uint8_t>(e.range.hi + output_shift);
  stage_.has_residual = problem.has_residual;
  // Sums are below 2^31, so |v| < 2^30 + 2^28.
  stage_.plain = !function_ && output_shift == 0 && e.zero_point == 0 && e.range.lo == 0 && e.range.hi == 255 &&
                 std::all_of(multiplier_.begin(), multiplier_.end(), [](float m) { return m < 0.5f; }) &&
                 (!problem.has_residual || (problem.residual_type == DType::kU8 && e.residual_zero_point == 0 &&
                                            e.residual_multiplier < 0x1p20f));
  if (!problem.has_residual) return;
  const int32_t residual_shift = problem.residual_type == DType::kI8 ? 128 : 0;
  stage_.residual_flip = static_cast<uint8_t>(residual_shift);
  stage_.residual_zero_point = e.residual_zero_point + residual_shift;
  stage_.residual_multiplier = e.residual_multiplier;
}

// Here once, as Problem's.
OutputConstants::~OutputConstants() = default;

}  // namespace fuselage::int8::conv2d
