// int8.rnn, int8.gru and int8.lstm on CUDA devices: the inputs of all steps by int8.linear's kernel, then a launch for
// each step; two where a gru resets first.
//
// A block of a step's launch has 8 units of 16 sequences with all their gates, so what lies between the states' codes
// and the next ones stays in it. It reads 8 rows of R for each gate, H bytes a row, and the codes of its sequences:
// a step reads R once for every 16 sequences, and from the L2 cache, where R fits there.
#ifndef FUSELAGE_KERNELS_INT8_RECURRENT_CUDA_RECURRENT_CUDA_H_
#define FUSELAGE_KERNELS_INT8_RECURRENT_CUDA_RECURRENT_CUDA_H_

#include <cstdint>

#include "ir/base/elementwise_math.h"
#include "kernels/cuda/for_each.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::recurrent::cuda {

// What a launch makes of products. A gru that resets first needs all of r*h before the product of that: kGruReset
// gives the codes of r*h, kGruNext the state.
enum class Form { kRnn, kGru, kGruReset, kGruNext, kLstm };

// A launch reads one and writes another, since blocks run in any order. [D][N][H] each; c is the lstm's.
struct State {
  float* h = nullptr;
  float* c = nullptr;
};

struct Sizes {
  int32_t directions = 0, steps = 0, sequences = 0, units = 0, gates = 0;
  int32_t pitch = 0;  // Of codes, from one sequence's to the next one's.
};

struct BeginParams {
  fuselage::cuda::Items items;  // [D][N][pitch]
  Sizes sizes;
  float code_scale = 1;
  const int32_t* lengths = nullptr;  // Null: all steps of all sequences.
  const float* initial_h = nullptr;  // Null: zeros.
  const float* initial_c = nullptr;
  State to;
  uint8_t* codes[2] = {};  // [D][N][pitch]; behind the units, which no step writes, zeros.
};
void LaunchBegin(const BeginParams& params, void* stream);

struct StepParams {
  Form form = Form::kRnn;
  Sizes sizes;
  int32_t step = 0;
  bool first_backwards = false, input_forget = false;
  float clip = 0;  // Infinity: none.
  float code_scale = 1;
  struct Direction {
    // Of the form's gates: [gates * H][pitch], 16-byte aligned, and [gates * H]. The codes' zero point is 0.
    const int8_t* weight = nullptr;
    const float *multiplier = nullptr, *bias = nullptr;
    const float* peepholes = nullptr;  // [3][H]: of i, o, f; null: none.
    ElementwiseInstruction functions[3] = {};
  } directions[2];
  const int32_t* lengths = nullptr;
  const float* products = nullptr;  // The inputs': [D][T][N][G][H].
  const uint8_t* codes = nullptr;
  State from, to;
  uint8_t* next_codes = nullptr;
  float* update = nullptr;  // A gru's z, between its two launches: [D][N][H].
  float* y = nullptr;       // [T][D][N][H]
};
void LaunchStep(const StepParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::recurrent::cuda

#endif  // FUSELAGE_KERNELS_INT8_RECURRENT_CUDA_RECURRENT_CUDA_H_
