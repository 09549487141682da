// A linear layer in device memory, and what its kernels do with a fragment and with a sum.
//
// Products are mma.m16n8k32's, which do not care for the order of k: in each 64 codes of k, thread t of the four that
// share a row holds codes [16 t, 16 t + 16) of x and of w, as they lie in memory, for two of them.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_CUDA_LAYER_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_CUDA_LAYER_H_

#include <cstdint>

#include "ir/base/elementwise_math.h"
#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/codes.h"

namespace fuselage::int8::linear::cuda {

constexpr int kChunk = 64;           // Codes of k that a step multiplies.
constexpr int kChannelPadding = 32;  // What the channels in memory are a multiple of.

struct Layer {
  int32_t channels = 0, depth = 0;  // N, K
  int32_t padded_channels = 0;
  int32_t pitch = 0;                      // K rounded up to kChunk.
  const int8_t* weight = nullptr;         // [padded_channels][pitch], zeros where there is padding; 16-byte aligned.
  const int32_t* addend = nullptr;        // [padded_channels]: b32, or -z_x * sum w for a float output.
  const float* multiplier = nullptr;      // m, or s_x * s_w[c].
  const float* float_bias = nullptr;      // Added to a float output.
  const float* row_multiplier = nullptr;  // [rows], of a float output: times multiplier; null: ones.
  bool float_output = false;
  bool relu = false;  // Applied to a float output; for codes it is in `lo`.
  int32_t zero_point = 0, lo = 0, hi = 255;
  // In front of the clamp: codes are those of function(v) * function_multiplier.
  bool activated = false;
  ElementwiseInstruction function = {};
  float function_multiplier = 1;
};

FUSELAGE_DEVICE float Activated(const Layer& layer, float v) {
  if (!layer.activated) return v;
  return fuselage::cuda::Multiply(elementwise::Activated(layer.function, v), layer.function_multiplier);
}

// A sum of products becomes an output; y: [rows][channels], codes or float.
FUSELAGE_DEVICE void StoreOutput(fuselage::cuda::Thread thread, const Layer& layer, int32_t sum, int64_t row,
                                 int channel, void* y) {
  // Modulo 2^32, in which the addend may undo what moved codes add; the result is proven to fit.
  const auto acc = static_cast<int32_t>(static_cast<uint32_t>(sum) +
                                        static_cast<uint32_t>(thread.LoadConstant(layer.addend + channel)));
  const float multiplier = thread.LoadConstant(layer.multiplier + channel);
  const int64_t i = row * layer.channels + channel;
  if (layer.float_output) {
    const float scale = layer.row_multiplier == nullptr
                            ? multiplier
                            : fuselage::cuda::Multiply(multiplier, thread.Load(layer.row_multiplier + row));
    const float v = Activated(
        layer, fuselage::cuda::DequantizeAccumulator(acc, scale, thread.LoadConstant(layer.float_bias + channel)));
    thread.Store(static_cast<float*>(y) + i, !layer.relu || v > 0 ? v : 0.0f);
  } else {
    const int32_t code = fuselage::cuda::ToCode(Activated(layer, fuselage::cuda::Rescale(acc, multiplier)),
                                                {layer.zero_point, layer.lo, layer.hi});
    thread.Store(static_cast<uint8_t*>(y) + i, static_cast<uint8_t>(code));
  }
}

// What a thread holds of a chunk of w: channel `channel + lane / 4`.
FUSELAGE_DEVICE fuselage::cuda::Codes16 LoadWeights(fuselage::cuda::Thread thread, const Layer& layer, int channel,
                                                    int chunk) {
  const int8_t* weights = layer.weight + int64_t{channel + thread.lane() / 4} * layer.pitch;
  return thread.LoadConstant(
      reinterpret_cast<const fuselage::cuda::Codes16*>(weights + kChunk * chunk + 16 * (thread.lane() % 4)));
}

// sums += x * w over a chunk. Threads hold rows lane / 4 (`low`) and 8 + lane / 4 (`high`) of x, and sums as
// mma.m16n8k32 lays them out.
template <typename X>
FUSELAGE_DEVICE void MultiplyChunk(fuselage::cuda::Warp warp, const fuselage::cuda::Lanes<fuselage::cuda::Codes16>& low,
                                   const fuselage::cuda::Lanes<fuselage::cuda::Codes16>& high,
                                   const fuselage::cuda::Lanes<fuselage::cuda::Codes16>& weights,
                                   fuselage::cuda::Lanes<fuselage::cuda::Vector<int32_t, 4>>* sums) {
  FUSELAGE_UNROLL
  for (int half = 0; half < 4; half += 2) {
    fuselage::cuda::Lanes<fuselage::cuda::Codes16> x;
    fuselage::cuda::Lanes<uint32_t> w0, w1;
    warp.ForThreads([&](fuselage::cuda::Thread thread) {
      x[thread].values[0] = low[thread].values[half];
      x[thread].values[1] = high[thread].values[half];
      x[thread].values[2] = low[thread].values[half + 1];
      x[thread].values[3] = high[thread].values[half + 1];
      w0[thread] = weights[thread].values[half];
      w1[thread] = weights[thread].values[half + 1];
    });
    warp.MultiplyCodes<X>(x, w0, w1, sums);
  }
}

}  // namespace fuselage::int8::linear::cuda

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_CUDA_LAYER_H_
