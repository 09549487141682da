// The epilogue's constants, laid out for OutputStage.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CORE_OUTPUT_CONSTANTS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CORE_OUTPUT_CONSTANTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/int8/conv2d/core/loops.h"
#include "kernels/int8/conv2d/core/problem.h"

namespace fuselage::int8::conv2d {

constexpr int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }
constexpr int64_t CeilDiv(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

// In which form a variant multiplies input codes: the others have their top bit flipped, which shifts them by 128 and
// the accumulator by 128 * sum w; the bias takes that back.
enum class CodeForm { kSigned, kUnsigned };

class OutputConstants {
 public:
  // Each group's channels are padded to whole panels.
  OutputConstants(const Problem& problem, CodeForm form);
  ~OutputConstants();

  const OutputStage& stage() const { return stage_; }
  uint8_t input_flip() const { return input_flip_; }
  int64_t bytes() const { return static_cast<int64_t>(bias_.size()) * 16; }

  OutputConstants(const OutputConstants&) = delete;
  OutputConstants& operator=(const OutputConstants&) = delete;

 private:
  std::vector<int32_t> bias_;
  std::vector<float> multiplier_, float_bias_, behind_function_;  // Multipliers, then offsets.
  std::optional<ElementwiseInstruction> function_;
  OutputStage stage_ = {};
  uint8_t input_flip_;
};

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CORE_OUTPUT_CONSTANTS_H_
