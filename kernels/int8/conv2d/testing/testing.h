// Random convolutions for tests and benchmarks, and single variants.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_TESTING_TESTING_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_TESTING_TESTING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/activation.h"
#include "kernels/core/kernel.h"
#include "kernels/int8/conv2d/conv2d.h"

namespace fuselage::int8::conv2d {

// What the codes and weights are filled with.
enum class Fill {
  kRandom,       // Uniform codes; weights as after training: small, a few large.
  kSaturated,    // All codes the largest, all weights -127.
  kAlternating,  // Codes and weights alternate between their extremes.
};

struct Case {
  int batch = 1, in_channels = 16, height = 8, width = 8;
  int out_channels = 16, kernel_height = 3, kernel_width = 3;
  int stride_y = 1, stride_x = 1;
  int top = 1, left = 1, bottom = 1, right = 1;
  int dilation_y = 1, dilation_x = 1;
  int groups = 1;
  int max_weight = 128;  // No weight is beyond.
  Activation activation;
  bool post = false;  // post_scale and post_shift behind a function.
  bool per_channel = true;
  DType bias = DType::kF32;  // kBool: none.
  DType input_type = DType::kU8, output_type = DType::kU8;
  int input_zero_point = 0, output_zero_point = 0;
  std::optional<DType> residual_type;
  int residual_zero_point = 0;
  Fill fill = Fill::kRandom;
  float gain = 1;  // At 1 the results of random data fill the output's range and overrun it a little.
  int threads = 1;
  kernels::Placement input_placement, residual_placement, output_placement;

  int out_height() const { return (height + top + bottom - dilation_y * (kernel_height - 1) - 1) / stride_y + 1; }
  int out_width() const { return (width + left + right - dilation_x * (kernel_width - 1) - 1) / stride_x + 1; }
  int64_t macs() const {  // Multiply-accumulates.
    return int64_t{batch} * out_channels * out_height() * out_width() * (in_channels / groups) * kernel_height *
           kernel_width;
  }
  bool valid() const {
    return height + top + bottom > dilation_y * (kernel_height - 1) &&
           width + left + right > dilation_x * (kernel_width - 1);
  }
  std::string ToString() const;
};

// A square image and kernel that keep their size but for the stride, with a ReLU: a layer of ResNet18 (He et al., "Deep
// Residual Learning for Image Recognition", CVPR 2016, table 1).
Case SquareCase(int in_channels, int size, int out_channels, int kernel, int stride);

// Reproducible choices.
class Picker {
 public:
  explicit Picker(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567) {}
  int operator()(int count) {  // In [0, count).
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % count);
  }

 private:
  uint64_t state_;
};

// Everything but the sizes: element types, zero points, bias, residual, ReLU, what the codes are.
void PickOperands(Picker& pick, Case* c);

// A case with its data. Activations are dense NHWC, whatever the placements.
struct Instance {
  Instance(const Case& c, uint64_t seed);
  // `isa` scalar: callers set it.
  kernels::KernelDesc Desc() const;

  Case shape;
  std::vector<uint8_t> input, residual;  // The bits of the codes.
  Tensor weight, bias, post_scale, post_shift;
  float input_scale, output_scale, residual_scale;
};

// Dense codes as they lie in `placed`: `padding` in the halo, `undefined` where nothing is.
std::vector<uint8_t> Place(const std::vector<uint8_t>& dense, const kernels::PlacedTensor& placed, uint8_t padding,
                           uint8_t undefined);

// Is the variant correct for it? False too where the description is wrong.
bool Supports(const Variant& variant, const kernels::KernelDesc& desc);
// The variant's kernel, whatever desc.isa says, worthwhile or not. Unimplemented where it does not support the problem.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(kernels::KernelDesc desc, Variant variant);
// Where the variant would have input 0, whatever desc's placements say.
kernels::Placement PreferredInputPlacement(const Variant& variant, const kernels::KernelDesc& desc);

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_TESTING_TESTING_H_
