// What rnn, gru and lstm make of their products (ir/ops/recurrent), in float32, one operation of the formulas after the
// other: from the gates' sums of some units to their next state. Whose products they are, a kernel decides.
#ifndef FUSELAGE_KERNELS_RECURRENT_CELL_H_
#define FUSELAGE_KERNELS_RECURRENT_CELL_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/base/recurrent.h"
#include "kernels/core/kernel.h"

namespace fuselage::recurrent {

// x[i] = the activation of x[i].
using ActivateFunction = void(Activation activation, float alpha, float beta, float* x, int64_t n);

// The kernels' operands at run time.
enum Input { kX, kLengths, kInitialH, kInitialC };

struct Sizes {
  int64_t steps, sequences, inputs, directions, units, gates;

  int64_t rows() const { return steps * sequences; }
  int64_t state_size() const { return sequences * units; }  // One direction's: [N, H].
};

class Cell {
 public:
  enum class Kind { kRnn, kGru, kLstm };

  // desc.op: "rnn", "gru" or "lstm", maybe behind "int8.". Its attributes, and the shapes of its x and weights.
  static absl::StatusOr<Cell> Of(const kernels::KernelDesc& desc, ActivateFunction* activate);

  Kind kind() const { return kind_; }
  const Sizes& sizes() const { return sizes_; }
  // A gru whose last product is that of r*h.
  bool resets_first() const { return resets_first_; }
  bool first_backwards() const { return first_backwards_; }  // The first direction, or the only one.
  bool input_forget() const { return input_forget_; }
  float clip() const { return clip_; }  // 0: none.
  absl::Span<const ActivationCall> activations(int64_t direction) const {
    const size_t count = activations_.size() / sizes_.directions;
    return {activations_.data() + direction * count, count};
  }
  const std::vector<float>& peepholes() const { return peepholes_; }  // [D, 3*H], of i, o, f; empty: there are none.
  // Bytes of the peepholes.
  int64_t weight_bytes() const { return static_cast<int64_t>(peepholes_.size() * sizeof(float)); }

  // The states of a run.
  struct States {
    const int32_t* lengths;  // Null: all steps of all sequences.
    float *y, *c;            // c: of lstm, in place.
    float *h, *next_h;       // [D, N, H]
    float* kept;             // r*h, likewise.
  };
  // Floats of memory that States take, and the states before the first step, in such memory. InvalidArgument: a length
  // beyond the steps.
  int64_t state_floats() const { return 3 * sizes_.directions * sizes_.state_size(); }
  absl::StatusOr<States> Begin(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
                               float* memory) const;
  // Behind all units of a step; and behind the last one.
  static void Advance(States* states);
  void End(const States& states, absl::Span<const kernels::Buffer> outputs) const;

  // The time that a sequence reads in a step; -1 behind its end.
  int64_t TimeOf(const States& states, int64_t direction, int64_t sequence, int64_t step) const;

  // Elements [first, first + count) of the states [D, N, H], in a step. Whatever sequences and directions they are of,
  // they are computed as one vector.
  struct Part {
    int64_t step, first, count;
  };
  // Calls body(direction, sequence, first unit, count, where they begin in the part) for each sequence's units.
  template <typename F>
  void ForSequences(const Part& part, F body) const {
    for (int64_t begin = 0, row = part.first / sizes_.units, unit = part.first % sizes_.units; begin < part.count;) {
      const int64_t count = std::min(part.count - begin, sizes_.units - unit);
      body(row / sizes_.sequences, row % sizes_.sequences, unit, count, begin);
      begin += count;
      unit = 0;
      ++row;
    }
  }

  // sums[i] = x[i] + y[i]; `y` may be null.
  static void Sum(const float* x, const float* y, int64_t n, float* sums);
  // [count] each: rnn p; gru z, r, and the parts of n from the input and from the state; lstm i, o, f, c.
  using Gates = std::array<float*, 4>;
  // The memory for a part's gates, which stays in the first cache. What copies whole panels may write as many elements
  // behind the last one.
  static constexpr int64_t kMostElements = 256, kMostBehind = 32;
  struct GateBuffers {
    float values[4][kMostElements + kMostBehind];

    Gates gates() { return {values[0], values[1], values[2], values[3]}; }
  };
  // The next state from sums of the gates, which it overwrites; behind a sequence's end the same state, and y is 0.
  // Where the gru resets first this gives r*h alone, `kept`, from gates[1]; the others then are FinishReset's, which
  // gives the state. Their gates[3] is the product of r*h.
  void Finish(const States& states, const Part& part, const Gates& gates) const;
  void FinishReset(const States& states, const Part& part, const Gates& gates) const;

 private:
  void FinishGru(const States& states, const Part& part, const Gates& gates) const;
  void FinishLstm(const States& states, const Part& part, const Gates& gates) const;
  void Store(const States& states, const Part& part, const float* state) const;
  // Calls body(direction, where they begin in the part, count) for each direction's elements.
  template <typename F>
  void ForDirections(const Part& part, F body) const {
    const int64_t first = std::clamp(sizes_.state_size() - part.first, int64_t{0}, part.count);
    if (first > 0) body(0, 0, first);
    if (first < part.count) body(1, first, part.count - first);
  }
  // Calls body(time, where they begin in the part, count) for elements of one time.
  template <typename F>
  void ForTimes(const States& states, const Part& part, F body) const;
  void ClipAndActivate(const Part& part, int which, float* x) const;
  void Clip(float* x, int64_t n) const;
  void Activate(const Part& part, int which, float* x) const;

  Kind kind_ = Kind::kRnn;
  Sizes sizes_{};
  bool first_backwards_ = false, resets_first_ = false, input_forget_ = false;
  float clip_ = 0;
  std::vector<ActivationCall> activations_;
  bool same_activations_ = false;  // In all directions.
  std::vector<float> peepholes_;
  ActivateFunction* activate_ = nullptr;
};

}  // namespace fuselage::recurrent

#endif  // FUSELAGE_KERNELS_RECURRENT_CELL_H_
