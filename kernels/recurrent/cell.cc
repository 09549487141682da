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

int64_t Cell::TimeOf(const States& states, const Part& part) const {
  const int64_t length = states.lengths == nullptr ? sizes_.steps : states.lengths[part.sequence];
  if (part.step >= length) return -1;
  return part.direction == 1 || first_backwards_ ? length - 1 - part.step : part.step;
}

void Cell::Add(const float* x, int64_t n, float* sums) {
  for (int64_t i = 0; i < n; ++i) sums[i] += x[i];
}

void Cell::Finish(const States& states, const Part& part, const Gates& gates) const {
  if (kind_ == Kind::kLstm) return FinishLstm(states, part, gates);
  for (const int gate : {0, 1}) {
    if (gate == 1 && kind_ == Kind::kRnn) break;
    Clip(gates[gate], part.count);
    Activate(part, 0, gates[gate]);
  }
  if (kind_ == Kind::kRnn) return Store(states, part, gates[0]);
  if (!resets_first_) return FinishGru(states, part, gates);
  for (int64_t u = 0; u < part.count; ++u) states.kept[At(part) + u] = gates[1][u] * states.h[At(part) + u];
}

void Cell::FinishReset(const States& states, const Part& part, const Gates& gates) const {
  FinishGru(states, part, gates);
}

// z and r are whole.
void Cell::FinishGru(const States& states, const Part& part, const Gates& gates) const {
  const auto [update, reset, next, state] = gates;
  const float* h = states.h + At(part);
  for (int64_t u = 0; u < part.count; ++u) next[u] += resets_first_ ? state[u] : reset[u] * state[u];
  Clip(next, part.count);
  Activate(part, 1, next);
  for (int64_t u = 0; u < part.count; ++u) next[u] = (1.0f - update[u]) * next[u] + update[u] * h[u];
  Store(states, part, next);
}

void Cell::FinishLstm(const States& states, const Part& part, const Gates& gates) const {
  const auto [input, output, forget, next] = gates;
  float* c = states.c + At(part);
  const float* peepholes =
      peepholes_.empty() ? nullptr : peepholes_.data() + 3 * part.direction * sizes_.units + part.first;
  const auto peep = [&](float* gate, int64_t which, const float* from) {
    if (peepholes == nullptr) return;
    for (int64_t u = 0; u < part.count; ++u) gate[u] += peepholes[which * sizes_.units + u] * from[u];
  };
  peep(input, 0, c);
  peep(forget, 2, c);
  for (float* gate : {input, forget, next}) Clip(gate, part.count);
  Activate(part, 0, input);
  if (input_forget_) {
    for (int64_t u = 0; u < part.count; ++u) forget[u] = 1.0f - input[u];
  } else {
    Activate(part, 0, forget);
  }
  Activate(part, 1, next);
  for (int64_t u = 0; u < part.count; ++u) next[u] = forget[u] * c[u] + input[u] * next[u];
  if (TimeOf(states, part) >= 0) std::copy_n(next, part.count, c);
  peep(output, 1, next);
  Clip(output, part.count);
  Activate(part, 0, output);
  Activate(part, 2, next);
  for (int64_t u = 0; u < part.count; ++u) output[u] *= next[u];
  Store(states, part, output);
}

void Cell::Store(const States& states, const Part& part, const float* state) const {
  const int64_t time = TimeOf(states, part);
  if (time < 0) return Pass(states, part);
  std::copy_n(state, part.count, states.next_h + At(part));
  std::copy_n(state, part.count, states.y + time * sizes_.directions * sizes_.state_size() + At(part));
}

void Cell::Pass(const States& states, const Part& part) const {
  std::copy_n(states.h + At(part), part.count, states.next_h + At(part));
  std::fill_n(states.y + part.step * sizes_.directions * sizes_.state_size() + At(part), part.count, 0.0f);
}

void Cell::Clip(float* x, int64_t n) const {
  for (int64_t i = 0; clip_ > 0 && i < n; ++i) x[i] = elementwise::Clamp(x[i], -clip_, clip_);
}

void Cell::Activate(const Part& part, int which, float* x) const {
  const ActivationCall& call = activations(part.direction)[which];
  activate_(call.activation, static_cast<float>(call.alpha), static_cast<float>(call.beta), x, part.count);
}

}  // namespace fuselage::recurrent
