// Replaces float ops between dequantize and quantize by the ops that the INT8 kernels run:
//
//   quantize(conv2d(dequantize(x), w))  =>  int8.conv2d(x, w)                  x codes; w i8 with its scales
//   linear(dequantize(x), w)            =>  int8.linear(x, w, out_dtype=f32)   where nobody quantizes the result
//   conv2d(dequantize(x), w; clamp)     =>  clamp(int8.conv2d(x, w, out_dtype=f32))   a clamp that the kernel has not
//                                                                              of floats, such as relu6
//   linear(mul(to(q, f32), s), w)       =>  int8.linear(q, w, s, out_dtype=f32)   i8 codes with a scale for each row
//   linear(mul(to(q, f32), s), dequantize_mxfp4(w))   =>  int8.linear_groups(q, w, s)   with constant weights; and
//                                                                              so with dequantize_groups
//   lstm(dequantize(x), w, r, b)        =>  int8.lstm(x, w, r, b)              rnn and gru too: codes in, floats out
//   quantize(x), dequantize(x)          =>  int8.quantize(x), int8.dequantize(x)   those that are left
//   quantize(view(dequantize(x)))       =>  view(x)                            with equal parameters
//   dequantize(x) of codes without parameters, as inputs are  =>  dequantize(quantize(dequantize(x)))   with them
//   quantize(cat(dequantize(x)...))     =>  cat(x...)                          with equal parameters; any op that
//                                                                              hands elements on
//
// Which op has a quantized form, the OpRegistry says; whether a kernel runs this call, its KernelEntry::Supports; what
// the form takes as it is (a mask), its type inference. Types carry the parameters, so a neighbour may be lowered
// already. The lowered node keeps the float node's name. Declines: an operand that is not dequantized codes; readers
// that quantize differently, where the kernel has no float result; a max pool whose result has other parameters than
// its operand; whatever the kernel refuses.
#ifndef FUSELAGE_PASSES_LOWER_LOWER_H_
#define FUSELAGE_PASSES_LOWER_LOWER_H_

#include "kernels/core/registry.h"
#include "passes/core/pass.h"
#include "passes/core/registry.h"
#include "passes/lower/lower.pb.h"

namespace fuselage::lower {

class Lower : public passes::Pass {
 public:
  // `kernels` null: Run fails.
  explicit Lower(const kernels::KernelRegistry* kernels) : kernels_(kernels) {}

  absl::string_view name() const override { return "lower"; }
  passes::NumericContract numeric_contract() const override { return {passes::NumericContract::kOneCode, 0}; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;
  // No lowered op reads a dequantize in place of codes, and no codes are dequantized only to be quantized to the same
  // codes.
  absl::Status Ensures(const ir::Graph& graph) const override;

 private:
  const kernels::KernelRegistry* kernels_;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::lower

#endif  // FUSELAGE_PASSES_LOWER_LOWER_H_
