#include "kernels/recurrent/recurrent.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/parallel.h"
#include "kernels/core/variant.h"
#include "kernels/recurrent/loops.h"

namespace fuselage::recurrent {
namespace {

using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::KernelDesc;
using kernels::RunContext;

constexpr Variant kVariants[] = {
    {"scalar", kernels::Isa::kScalar, scalar::Multiply, scalar::Activate},
    {"avx2", kernels::Isa::kAvx2, avx2::Multiply, avx2::Activate},
    {"avx512_vnni", kernels::Isa::kAvx512Vnni, avx512_vnni::Multiply, avx512_vnni::Activate},
};

enum Input { kX, kLengths, kInitialH, kInitialC };
enum class Cell { kRnn, kGru, kLstm };

constexpr int64_t kRowBlock = 48;    // Rows of the inputs' product that stay in the first caches.
constexpr int64_t kGrain = 1 << 15;  // Multiplications that are worth a thread's while.

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

struct Sizes {
  int64_t steps, sequences, inputs, directions, units, gates;
  int64_t slots;  // A panel's: a gate's share of each unit (gru's third gate has two).

  int64_t panel_units() const { return kPanel / slots; }
  int64_t panels() const { return (units + panel_units() - 1) / panel_units(); }
  int64_t rows() const { return steps * sequences; }
};

// Which gates a panel's slots hold; -1: none.
using Slots = std::vector<int>;

// Rows of `gates` matrices [units, depth] below each other -> panels [depth, kPanel], one direction.
void Pack(const Sizes& sizes, const Slots& slots, const float* from, int64_t depth, float* to) {
  const int64_t width = kPanel / static_cast<int64_t>(slots.size());
  for (int64_t first = 0; first < sizes.units; first += width, to += depth * kPanel) {
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      if (slots[slot] < 0) continue;
      for (int64_t u = 0; u < std::min(width, sizes.units - first); ++u) {
        const float* row = from + (slots[slot] * sizes.units + first + u) * depth;
        for (int64_t k = 0; k < depth; ++k) to[k * kPanel + slot * width + u] = row[k];
      }
    }
  }
}

// The weights of all directions, packed.
struct Weights {
  std::shared_ptr<const Tensor> input, state;
  std::shared_ptr<const Tensor> reset_state;  // For a GRU that resets first: the third gate's, 32 units a panel.
  std::vector<float> bias;
  std::vector<float> reset_bias;  // [D, H]
  std::vector<float> peepholes;   // [D, 3*H]; empty where there are none.
};

class Recurrent : public kernels::Kernel {
 public:
  struct Options {
    Cell cell;
    Sizes sizes;
    bool first_backwards = false;
    bool resets_first = false, input_forget = false;
    float clip = 0;
    std::vector<ActivationCall> activations;
    Weights weights;
  };

  Recurrent(const KernelDesc& desc, Options options, const Variant& variant)
      : Kernel(desc), o_(std::move(options)), s_(o_.sizes), variant_(variant) {
    set_variant(variant.name);
    const int64_t floats = s_.directions * (s_.panels() * kPanel * (s_.rows() + s_.sequences) + 3 * StateSize() +
                                            RoundUp(s_.units, kPanel) * s_.sequences);
    set_scratch_bytes(floats * static_cast<int64_t>(sizeof(float)));
    const Weights& w = o_.weights;
    std::vector<std::shared_ptr<const Tensor>> packed = {w.input, w.state};
    if (w.reset_state != nullptr) packed.push_back(w.reset_state);
    const size_t own = w.bias.size() + w.reset_bias.size() + w.peepholes.size();
    set_weight_bytes(static_cast<int64_t>(own * sizeof(float)), std::move(packed));
  }

 private:
  // One direction's: [N, H].
  int64_t StateSize() const { return s_.sequences * s_.units; }

  // The memory of one run.
  struct Run {
    const float* x;
    const int32_t* lengths;  // Null: all steps of all.
    float *y, *c;            // c: of lstm, in place.
    float* products;         // The inputs': [D, panels, rows, kPanel].
    float* sums;             // One step's: [D, panels, N, kPanel].
    float* resets;           // One step's: [D, panels of 32 units, N, kPanel].
    float *h, *next_h;       // [D, N, H]
    float* kept;             // r*h: [D, N, H].
    kernels::Parallel* parallel;

    int64_t Length(const Sizes& sizes, int64_t n) const { return lengths == nullptr ? sizes.steps : lengths[n]; }
  };

  absl::Status TryCompute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                          const RunContext& context) const override {
    const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i].data : nullptr; };
    Run run{};
    run.x = static_cast<const float*>(inputs[kX].data);
    run.lengths = static_cast<const int32_t*>(input(kLengths));
    for (int64_t n = 0; run.lengths != nullptr && n < s_.sequences; ++n) {
      if (run.lengths[n] < 0 || run.lengths[n] > s_.steps) {
        return absl::InvalidArgumentError(
            absl::StrCat("sequence_lens: found ", run.lengths[n], ", wanted values in [0, ", s_.steps, "]"));
      }
    }
    run.y = static_cast<float*>(outputs[0].data);
    run.parallel = context.parallel;
    float* scratch = static_cast<float*>(context.scratch.data);
    const auto take = [&](int64_t floats) {
      scratch += floats;
      return scratch - floats;
    };
    run.products = take(s_.directions * s_.panels() * kPanel * s_.rows());
    run.sums = take(s_.directions * s_.panels() * kPanel * s_.sequences);
    run.resets = take(s_.directions * RoundUp(s_.units, kPanel) * s_.sequences);
    const int64_t states = s_.directions * StateSize();
    run.h = take(states);
    run.next_h = take(states);
    run.kept = take(states);
    const auto begin = [states](const void* initial, float* state) {
      if (states == 0) return;
      if (initial == nullptr) {
        std::fill_n(state, states, 0.0f);
      } else {
        std::memcpy(state, initial, states * sizeof(float));
      }
    };
    begin(input(kInitialH), run.h);
    if (o_.cell == Cell::kLstm) {
      run.c = static_cast<float*>(outputs[2].data);
      begin(input(kInitialC), run.c);
    }
    MultiplyInputs(run);
    for (int64_t step = 0; step < s_.steps; ++step) {
      Step(run, step);
      std::swap(run.h, run.next_h);
    }
    if (states > 0) std::memcpy(outputs[1].data, run.h, states * sizeof(float));
    return absl::OkStatus();
  }

  void MultiplyInputs(const Run& run) const {
    const int64_t panels = s_.directions * s_.panels(), blocks = (s_.rows() + kRowBlock - 1) / kRowBlock;
    const int64_t grain = std::max<int64_t>(1, kGrain / (kRowBlock * kPanel * std::max<int64_t>(1, s_.inputs)));
    kernels::ForRanges(*run.parallel, blocks * panels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t panel = task % panels, row = task / panels * kRowBlock;
        const int64_t rows = std::min(kRowBlock, s_.rows() - row);
        float* sums = run.products + (panel * s_.rows() + row) * kPanel;
        for (int64_t i = 0; i < rows; ++i) std::copy_n(&o_.weights.bias[panel * kPanel], kPanel, sums + i * kPanel);
        variant_.multiply(run.x + row * s_.inputs, s_.inputs, rows,
                          o_.weights.input->data<float>() + panel * s_.inputs * kPanel, s_.inputs, sums);
      }
    });
  }

  // All panels of a step: `body(direction, panel)`.
  template <typename F>
  void ForPanels(const Run& run, int64_t panels, F body) const {
    const int64_t work = std::max<int64_t>(1, s_.sequences * s_.units * kPanel);
    kernels::ForRanges(*run.parallel, s_.directions * panels, std::max<int64_t>(1, kGrain / work),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t task = begin; task < end; ++task) body(task / panels, task % panels);
                       });
  }

  void Step(const Run& run, int64_t step) const {
    const int64_t panels = s_.panels();
    ForPanels(run, panels, [&](int64_t d, int64_t panel) {
      float* sums = SumsOf(run, d, panel);
      for (int64_t n = 0; n < s_.sequences; ++n) {
        const int64_t row = std::max<int64_t>(0, TimeOf(run, d, n, step)) * s_.sequences + n;
        std::copy_n(run.products + ((d * panels + panel) * s_.rows() + row) * kPanel, kPanel, sums + n * kPanel);
      }
      variant_.multiply(run.h + d * StateSize(), s_.units, s_.sequences,
                        o_.weights.state->data<float>() + (d * panels + panel) * s_.units * kPanel, s_.units, sums);
      for (int64_t n = 0; n < s_.sequences; ++n) FinishPanel(run, d, panel, n, step);
    });
    if (!o_.resets_first) return;
    const int64_t wide = (s_.units + kPanel - 1) / kPanel, each = kPanel / s_.panel_units();
    ForPanels(run, wide, [&](int64_t d, int64_t panel) {
      float* sums = run.resets + (d * wide + panel) * s_.sequences * kPanel;
      for (int64_t n = 0; n < s_.sequences; ++n) {
        std::copy_n(&o_.weights.reset_bias[(d * wide + panel) * kPanel], kPanel, sums + n * kPanel);
      }
      variant_.multiply(run.kept + d * StateSize(), s_.units, s_.sequences,
                        o_.weights.reset_state->data<float>() + (d * wide + panel) * s_.units * kPanel, s_.units, sums);
      for (int64_t part = panel * each; part < std::min(panels, (panel + 1) * each); ++part) {
        for (int64_t n = 0; n < s_.sequences; ++n) {
          float* gates = SumsOf(run, d, part) + n * kPanel;
          const float* state = sums + n * kPanel + (part - panel * each) * s_.panel_units();
          std::copy_n(state, s_.panel_units(), gates + 3 * s_.panel_units());
          FinishGru(run, d, part, n, step, gates);
        }
      }
    });
  }

  float* SumsOf(const Run& run, int64_t d, int64_t panel) const {
    return run.sums + (d * s_.panels() + panel) * s_.sequences * kPanel;
  }

  // The time that a sequence reads in this step; -1 behind its end.
  int64_t TimeOf(const Run& run, int64_t d, int64_t n, int64_t step) const {
    const int64_t length = run.Length(s_, n);
    if (step >= length) return -1;
    return d == 1 || o_.first_backwards ? length - 1 - step : step;
  }

  void FinishPanel(const Run& run, int64_t d, int64_t panel, int64_t n, int64_t step) const {
    float* gates = SumsOf(run, d, panel) + n * kPanel;
    const int64_t width = s_.panel_units();
    if (o_.cell == Cell::kRnn) {
      Clip(gates, width);
      Activate(d, 0, gates, width);
      Store(run, d, panel, n, step, gates);
    } else if (o_.cell == Cell::kLstm) {
      FinishLstm(run, d, panel, n, step, gates);
    } else {
      Clip(gates, 2 * width);
      Activate(d, 0, gates, 2 * width);
      if (!o_.resets_first) return FinishGru(run, d, panel, n, step, gates);
      const int64_t first = panel * width, at = d * StateSize() + n * s_.units + first;
      for (int64_t u = 0; u < Units(panel); ++u) run.kept[at + u] = gates[width + u] * run.h[at + u];
    }
  }

  // Slots z, r, the input's part of n, the state's: of r*h where it resets first, else still to be reset.
  void FinishGru(const Run& run, int64_t d, int64_t panel, int64_t n, int64_t step, float* gates) const {
    const int64_t width = s_.panel_units(), at = d * StateSize() + n * s_.units + panel * width;
    const float *update = gates, *reset = gates + width, *state = gates + 3 * width;
    float* next = gates + 2 * width;
    for (int64_t u = 0; u < width; ++u) next[u] += o_.resets_first ? state[u] : reset[u] * state[u];
    Clip(next, width);
    Activate(d, 1, next, width);
    for (int64_t u = 0; u < Units(panel); ++u) {
      next[u] = (1.0f - update[u]) * next[u] + update[u] * run.h[at + u];
    }
    Store(run, d, panel, n, step, next);
  }

  // Slots i, o, f, c.
  void FinishLstm(const Run& run, int64_t d, int64_t panel, int64_t n, int64_t step, float* gates) const {
    const int64_t width = s_.panel_units(), units = Units(panel), first = panel * width;
    float* c = run.c + d * StateSize() + n * s_.units + first;
    float *input = gates, *output = gates + width, *forget = gates + 2 * width, *next = gates + 3 * width;
    const float* peepholes =
        o_.weights.peepholes.empty() ? nullptr : o_.weights.peepholes.data() + 3 * d * s_.units + first;
    const auto peep = [&](float* gate, int64_t which, const float* from) {
      for (int64_t u = 0; peepholes != nullptr && u < units; ++u) gate[u] += peepholes[which * s_.units + u] * from[u];
    };
    peep(input, 0, c);
    peep(forget, 2, c);
    Clip(input, width);
    Clip(forget, 2 * width);
    Activate(d, 0, input, width);
    if (o_.input_forget) {
      for (int64_t u = 0; u < width; ++u) forget[u] = 1.0f - input[u];
    } else {
      Activate(d, 0, forget, width);
    }
    Activate(d, 1, next, width);
    for (int64_t u = 0; u < units; ++u) next[u] = forget[u] * c[u] + input[u] * next[u];
    if (TimeOf(run, d, n, step) >= 0) std::copy_n(next, units, c);
    peep(output, 1, next);
    Clip(output, width);
    Activate(d, 0, output, width);
    Activate(d, 2, next, width);
    for (int64_t u = 0; u < units; ++u) output[u] *= next[u];
    Store(run, d, panel, n, step, output);
  }

  // The panel's units of the next state, and of y. Behind a sequence's end the state stays, and y is 0.
  void Store(const Run& run, int64_t d, int64_t panel, int64_t n, int64_t step, const float* state) const {
    const int64_t units = Units(panel), first = panel * s_.panel_units();
    const int64_t at = d * StateSize() + n * s_.units + first, time = TimeOf(run, d, n, step);
    std::copy_n(time < 0 ? run.h + at : state, units, run.next_h + at);
    float* y = run.y + (((time < 0 ? step : time) * s_.directions + d) * s_.sequences + n) * s_.units + first;
    if (time < 0) {
      std::fill_n(y, units, 0.0f);
    } else {
      std::copy_n(state, units, y);
    }
  }

  int64_t Units(int64_t panel) const { return std::min(s_.panel_units(), s_.units - panel * s_.panel_units()); }

  void Clip(float* x, int64_t n) const {
    for (int64_t i = 0; o_.clip > 0 && i < n; ++i) x[i] = elementwise::Clamp(x[i], -o_.clip, o_.clip);
  }

  void Activate(int64_t d, int which, float* x, int64_t n) const {
    const ActivationCall& call = o_.activations[d * o_.activations.size() / s_.directions + which];
    variant_.activate(call.activation, static_cast<float>(call.alpha), static_cast<float>(call.beta), x, n);
  }

  const Options o_;
  const Sizes& s_;
  const Variant& variant_;
};

Weights PackWeights(const KernelDesc& desc, const Sizes& sizes, Cell cell, bool resets_first) {
  const auto data = [&](const char* name) {
    const Tensor* tensor = desc.ParameterOrNull(name);
    return tensor == nullptr ? nullptr : tensor->data<float>();
  };
  const Slots input = cell == Cell::kRnn ? Slots{0} : cell == Cell::kGru ? Slots{0, 1, 2, -1} : Slots{0, 1, 2, 3};
  Slots state = input;
  if (cell == Cell::kGru) state = {0, 1, -1, resets_first ? -1 : 2};
  const int64_t panels = sizes.panels(), rows = sizes.gates * sizes.units, wide = RoundUp(sizes.units, kPanel);
  Weights weights;
  // A parameter's `gates` matrices [units, depth], of each direction.
  const auto packed = [&](const char* name, const Slots& slots, int64_t depth, int64_t floats) {
    const TensorType type{DType::kF32, {sizes.directions, floats}, std::nullopt, Layout::kRowMajor};
    const std::string layout = absl::StrCat("recurrent ", absl::StrJoin(slots, " "), " ", ToString(type));
    return desc.Packed(name, layout, [&] {
      Tensor to(type);
      for (int64_t d = 0; d < sizes.directions; ++d) {
        Pack(sizes, slots, data(name) + d * rows * depth, depth, to.data<float>() + d * floats);
      }
      return to;
    });
  };
  weights.input = packed("weight", input, sizes.inputs, panels * sizes.inputs * kPanel);
  weights.state = packed("recurrent_weight", state, sizes.units, panels * sizes.units * kPanel);
  if (resets_first) weights.reset_state = packed("recurrent_weight", {2}, sizes.units, wide * sizes.units);
  weights.bias.resize(sizes.directions * panels * kPanel);
  if (resets_first) weights.reset_bias.resize(sizes.directions * wide);
  std::vector<float> part(panels * kPanel);
  for (int64_t d = 0; d < sizes.directions; ++d) {
    if (data("bias") == nullptr) continue;
    const float* bias = data("bias") + 2 * d * rows;
    float* to = weights.bias.data() + d * panels * kPanel;
    Pack(sizes, input, bias, 1, to);
    std::fill(part.begin(), part.end(), 0.0f);
    Pack(sizes, state, bias + rows, 1, part.data());
    for (size_t i = 0; i < part.size(); ++i) to[i] += part[i];
    if (resets_first) Pack(sizes, {2}, bias + rows, 1, weights.reset_bias.data() + d * wide);
  }
  if (const float* peepholes = data("peepholes")) {
    weights.peepholes.assign(peepholes, peepholes + sizes.directions * 3 * sizes.units);
  }
  return weights;
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  const Tensor* recurrent = desc.ParameterOrNull("recurrent_weight");
  if (!desc.has_input(kX) || desc.ParameterOrNull("weight") == nullptr || recurrent == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(desc.op, ": wanted an input and weights"));
  }
  const TensorType& x = desc.input(kX);
  if (x.dtype != DType::kF32 || x.rank() != 3) {
    return absl::UnimplementedError(absl::StrCat(desc.op, " of ", ToString(x), ", wanted f32 of rank 3"));
  }
  Recurrent::Options options;
  options.cell = desc.op == "rnn" ? Cell::kRnn : desc.op == "gru" ? Cell::kGru : Cell::kLstm;
  const std::string& direction = desc.GetString("direction");
  const int directions = direction == "bidirectional" ? 2 : 1;
  options.first_backwards = direction == "reverse";
  options.sizes = {x.shape[0],
                   x.shape[1],
                   x.shape[2],
                   directions,
                   recurrent->dim(2),
                   GatesOf(desc.op),
                   options.cell == Cell::kRnn ? 1 : 4};
  options.resets_first = options.cell == Cell::kGru && !desc.GetBool("linear_before_reset");
  options.input_forget = options.cell == Cell::kLstm && desc.GetBool("input_forget");
  options.clip = static_cast<float>(desc.GetFloat("clip"));
  ASSIGN_OR_RETURN(options.activations,
                   ReadActivations(desc.op, directions, desc.attribute("activations").as_strings(),
                                   desc.attribute("alpha").as_floats(), desc.attribute("beta").as_floats()));
  options.weights = PackWeights(desc, options.sizes, options.cell, options.resets_first);
  return std::make_unique<Recurrent>(desc, std::move(options), kernels::BestVariant(Variants(), desc.isa));
}

void Register(kernels::KernelRegistry& registry) {
  for (const char* op : {"rnn", "gru", "lstm"}) {
    registry.Register({op, kernels::LayoutRule::kRowMajor, Create});
  }
}

void scalar::Multiply(const float* x, int64_t stride, int64_t rows, const float* panel, int64_t depth, float* sums) {
  MultiplyLoop<2>(x, stride, rows, panel, depth, sums);
}

void scalar::Activate(Activation activation, float alpha, float beta, float* x, int64_t n) {
  ActivateLoop(activation, alpha, beta, x, n);
}

}  // namespace fuselage::recurrent
