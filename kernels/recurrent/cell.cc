#include "kernels/recurrent/cell.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/base/elementwise_math.h"

namespace fuselage::recurrent {

using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::KernelDesc;

absl::StatusOr<Cell> Cell::Of(const KernelDesc& desc, ActivateFunction* activate) {
  const Tensor* recurrent = desc.ParameterOrNull("recurrent_weight");
  if (!desc.has_input(kX) || desc.ParameterOrNull("weight") == nullptr || recurrent == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(desc.op, ": wanted an input and weights"));
  }
  const TensorType& x = desc.input(kX);
  if (x.rank() != 3) return absl::UnimplementedError(absl::StrCat(desc.op, " of ", ToString(x), ", wanted rank 3"));
  const std::string op(absl::StripPrefix(desc.op, "int8."));
  Cell cell;
  cell.kind_ = op == "rnn" ? Kind::kRnn : op == "gru" ? Kind::kGru : Kind::kLstm;
  const std::string& direction = desc.GetString("direction");
  const int directions = direction == "bidirectional" ? 2 : 1;
  cell.first_backwards_ = direction == "reverse";
  cell.sizes_ = {x.shape[0], x.shape[1], x.shape[2], directions, recurrent->dim(2), GatesOf(op)};
  cell.resets_first_ = cell.kind_ == Kind::kGru && !desc.GetBool("linear_before_reset");
  cell.input_forget_ = cell.kind_ == Kind::kLstm && desc.GetBool("input_forget");
  cell.clip_ = static_cast<float>(desc.GetFloat("clip"));
  ASSIGN_OR_RETURN(cell.activations_,
                   ReadActivations(op, directions, desc.attribute("activations").as_strings(),
                                   desc.attribute("alpha").as_floats(), desc.attribute("beta").as_floats()));
  cell.same_activations_ = cell.activations(0) == cell.activations(directions - 1);
  if (const Tensor* peepholes = desc.ParameterOrNull("peepholes")) {
    const absl::Span<const float> values = peepholes->values<float>();
    cell.peepholes_.assign(values.begin(), values.end());
  }
  cell.activate_ = activate;
  return cell;
}

absl::StatusOr<Cell::States> Cell::Begin(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                                         float* memory) const {
  const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i].data : nullptr; };
  States states{};
  states.lengths = static_cast<const int32_t*>(input(kLengths));
  for (int64_t n = 0; states.lengths != nullptr && n < sizes_.sequences; ++n) {
    if (states.lengths[n] < 0 || states.lengths[n] > sizes_.steps) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence_lens: found ", states.lengths[n], ", wanted values in [0, ", sizes_.steps, "]"));
    }
  }
  const int64_t floats = sizes_.directions * sizes_.state_size();
  states.h = memory;
  states.next_h = memory + floats;
  states.kept = memory + 2 * floats;
  states.y = static_cast<float*>(outputs[0].data);
  const auto begin = [floats](const void* initial, float* state) {
    if (floats == 0) return;
    if (initial == nullptr) {
      std::fill_n(state, floats, 0.0f);
    } else {
      std::memcpy(state, initial, floats * sizeof(float));
    }
  };
  begin(input(kInitialH), states.h);
  if (kind_ == Kind::kLstm) {
    states.c = static_cast<float*>(outputs[2].data);
    begin(input(kInitialC), states.c);
  }
  return states;
}

void Cell::Advance(States* states) { std::swap(states->h, states->next_h); }

void Cell::End(const States& states, absl::Span<const Buffer> outputs) const {
  const int64_t floats = sizes_.directions * sizes_.state_size();
  if (floats > 0) std::memcpy(outputs[1].data, states.h, floats * sizeof(float));
}

int64_t Cell::TimeOf(const States& states, int64_t direction, int64_t sequence, int64_t step) const {
  const int64_t length = states.lengths == nullptr ? sizes_.steps : states.lengths[sequence];
  if (step >= length) return -1;
  return direction == 1 || first_backwards_ ? length - 1 - step : step;
}

template <typename F>
void Cell::ForTimes(const States& states, const Part& part, F body) const {
  if (states.lengths == nullptr) {
    return ForDirections(part, [&](int64_t d, int64_t begin, int64_t count) {
      body(TimeOf(states, d, /*sequence=*/0, part.step), begin, count);
    });
  }
  ForSequences(part, [&](int64_t d, int64_t n, int64_t, int64_t count, int64_t begin) {
    body(TimeOf(states, d, n, part.step), begin, count);
  });
}

void Cell::Sum(const float* x, const float* y, int64_t n, float* sums) {
  if (y == nullptr) {
    for (int64_t i = 0; i < n; ++i) sums[i] = x[i];
  } else {
    for (int64_t i = 0; i < n; ++i) sums[i] = x[i] + y[i];
  }
}

void Cell::Finish(const States& states, const Part& part, const Gates& gates) const {
  switch (kind_) {
    case Kind::kRnn: ClipAndActivate(part, 0, gates[0]); return Store(states, part, gates[0]);
    case Kind::kLstm: return FinishLstm(states, part, gates);
    case Kind::kGru: break;
  }
  ClipAndActivate(part, 0, gates[1]);
  if (!resets_first_) return FinishGru(states, part, gates);
  for (int64_t i = 0; i < part.count; ++i) states.kept[part.first + i] = gates[1][i] * states.h[part.first + i];
}

void Cell::FinishReset(const States& states, const Part& part, const Gates& gates) const {
  FinishGru(states, part, gates);
}

// r is whole.
void Cell::FinishGru(const States& states, const Part& part, const Gates& gates) const {
  const auto [update, reset, next, state] = gates;
  const float* h = states.h + part.first;
  ClipAndActivate(part, 0, update);
  for (int64_t i = 0; i < part.count; ++i) next[i] += resets_first_ ? state[i] : reset[i] * state[i];
  ClipAndActivate(part, 1, next);
  for (int64_t i = 0; i < part.count; ++i) next[i] = (1.0f - update[i]) * next[i] + update[i] * h[i];
  Store(states, part, next);
}

void Cell::FinishLstm(const States& states, const Part& part, const Gates& gates) const {
  const auto [input, output, forget, next] = gates;
  float* c = states.c + part.first;
  const auto peep = [&, this](float* gate, int64_t which, const float* from) {
    if (peepholes_.empty()) return;
    ForSequences(part, [&](int64_t d, int64_t, int64_t unit, int64_t count, int64_t begin) {
      const float* peepholes = &peepholes_[(3 * d + which) * sizes_.units + unit];
      for (int64_t i = 0; i < count; ++i) gate[begin + i] += peepholes[i] * from[begin + i];
    });
  };
  peep(input, 0, c);
  peep(forget, 2, c);
  for (float* gate : {input, forget, next}) Clip(gate, part.count);
  Activate(part, 0, input);
  if (input_forget_) {
    for (int64_t i = 0; i < part.count; ++i) forget[i] = 1.0f - input[i];
  } else {
    Activate(part, 0, forget);
  }
  Activate(part, 1, next);
  for (int64_t i = 0; i < part.count; ++i) next[i] = forget[i] * c[i] + input[i] * next[i];
  ForTimes(states, part, [&, next = next](int64_t time, int64_t begin, int64_t count) {
    if (time >= 0) std::copy_n(next + begin, count, c + begin);
  });
  peep(output, 1, next);
  ClipAndActivate(part, 0, output);
  Activate(part, 2, next);
  for (int64_t i = 0; i < part.count; ++i) output[i] *= next[i];
  Store(states, part, output);
}

void Cell::Store(const States& states, const Part& part, const float* state) const {
  const int64_t floats = sizes_.directions * sizes_.state_size();
  ForTimes(states, part, [&](int64_t time, int64_t begin, int64_t count) {
    const int64_t at = part.first + begin;
    if (time >= 0) {
      std::copy_n(state + begin, count, states.next_h + at);
      std::copy_n(state + begin, count, states.y + time * floats + at);
    } else {
      std::copy_n(states.h + at, count, states.next_h + at);
      std::fill_n(states.y + part.step * floats + at, count, 0.0f);
    }
  });
}

void Cell::ClipAndActivate(const Part& part, int which, float* x) const {
  Clip(x, part.count);
  Activate(part, which, x);
}

void Cell::Clip(float* x, int64_t n) const {
  for (int64_t i = 0; clip_ > 0 && i < n; ++i) x[i] = elementwise::Clamp(x[i], -clip_, clip_);
}

void Cell::Activate(const Part& part, int which, float* x) const {
  const auto activate = [&](int64_t direction, int64_t begin, int64_t count) {
    const ActivationCall& call = activations(direction)[which];
    activate_(call.activation, static_cast<float>(call.alpha), static_cast<float>(call.beta), x + begin, count);
  };
  same_activations_ ? activate(0, 0, part.count) : ForDirections(part, activate);
}

}  // namespace fuselage::recurrent
