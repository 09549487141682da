#include "kernels/recurrent/recurrent.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/float_operands.h"
#include "kernels/core/parallel.h"
#include "kernels/core/variant.h"
#include "kernels/recurrent/cell.h"
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

constexpr int64_t kRowBlock = 48;    // Rows of the inputs' product that stay in the first caches.
constexpr int64_t kGrain = 1 << 15;  // Multiplications that are worth a thread's while.
constexpr int kGates = 4;            // Of a panel that holds several.
static_assert(Cell::kMostElements % kPanel == 0 && kPanel <= Cell::kMostBehind);

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// A panel holds all gates of some units.
struct Panels : Sizes {
  int64_t slots;  // A gate's share of each unit (gru's third gate has two).

  int64_t panel_units() const { return kPanel / slots; }
  int64_t panels() const { return (units + panel_units() - 1) / panel_units(); }
};

// Which gates a panel's slots hold; -1: none.
using Slots = std::vector<int>;

// Rows of `gates` matrices [units, depth] below each other -> panels [depth, kPanel], one direction.
void Pack(const Panels& sizes, const Slots& slots, const float* from, int64_t depth, float* to) {
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
};

class Recurrent : public kernels::Kernel {
 public:
  Recurrent(const KernelDesc& desc, Cell cell, Panels sizes, Weights weights, const Variant& variant)
      : Kernel(desc), cell_(std::move(cell)), s_(sizes), weights_(std::move(weights)), variant_(variant) {
    set_variant(variant.name);
    const int64_t floats =
        s_.directions * (s_.panels() * kPanel * (s_.rows() + s_.sequences) + RoundUp(s_.units, kPanel) * s_.sequences);
    set_scratch_bytes((floats + cell_.state_floats()) * static_cast<int64_t>(sizeof(float)));
    std::vector<std::shared_ptr<const Tensor>> packed = {weights_.input, weights_.state};
    if (weights_.reset_state != nullptr) packed.push_back(weights_.reset_state);
    const size_t own = weights_.bias.size() + weights_.reset_bias.size();
    set_weight_bytes(static_cast<int64_t>(own * sizeof(float)) + cell_.weight_bytes(), std::move(packed));
  }

 private:
  // The memory of one run.
  struct Run {
    const float* x;
    float* products;  // The inputs': [D, panels, rows, kPanel].
    float* sums;      // One step's: [D, panels, N, kPanel].
    float* resets;    // One step's: [D, panels of 32 units, N, kPanel].
    Cell::States states;
    kernels::Parallel* parallel;
  };

  absl::Status TryCompute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                          const RunContext& context) const override {
    Run run{};
    run.x = static_cast<const float*>(inputs[kX].data);
    float* scratch = static_cast<float*>(context.scratch.data);
    const auto take = [&](int64_t floats) {
      scratch += floats;
      return scratch - floats;
    };
    run.products = take(s_.directions * s_.panels() * kPanel * s_.rows());
    run.sums = take(s_.directions * s_.panels() * kPanel * s_.sequences);
    run.resets = take(s_.directions * RoundUp(s_.units, kPanel) * s_.sequences);
    run.parallel = context.parallel;
    ASSIGN_OR_RETURN(run.states, cell_.Begin(inputs, outputs, scratch));
    MultiplyInputs(run);
    for (int64_t step = 0; step < s_.steps; ++step) {
      Step(run, step);
      Cell::Advance(&run.states);
    }
    cell_.End(run.states, outputs);
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
        variant_.multiply(run.x + row * s_.inputs, s_.inputs, rows,
                          weights_.input->data<float>() + panel * s_.inputs * kPanel, s_.inputs,
                          {&weights_.bias[panel * kPanel], 0}, sums);
      }
    });
  }

  // All panels of a step, each as wide as `width` units: `body(begin, end)`, of all directions' one after the other.
  template <typename F>
  void ForPanels(const Run& run, int64_t width, F body) const {
    const int64_t work = std::max<int64_t>(1, s_.sequences * s_.units * kPanel);
    kernels::ForRanges(*run.parallel, s_.directions * PanelsOf(width), std::max<int64_t>(1, kGrain / work), body);
  }

  // Calls body(part) for parts that these panels hold. A part begins where a panel does.
  template <typename F>
  void ForParts(int64_t step, int64_t width, int64_t begin, int64_t end, F body) const {
    const int64_t panels = PanelsOf(width);
    while (begin < end) {
      // Whole directions, or units of each sequence in one.
      const int64_t first = begin % panels * width, whole = first == 0 ? (end - begin) / panels : 0;
      const int64_t some = whole > 0 ? whole * panels : std::min(panels - begin % panels, end - begin);
      const int64_t units = whole > 0 ? s_.units : std::min(some * width, s_.units - first);
      const int64_t row = begin / panels * s_.sequences, rows = row + std::max<int64_t>(1, whole) * s_.sequences;
      const int64_t together = units == s_.units ? std::max<int64_t>(1, Cell::kMostElements / units) : 1;
      for (int64_t r = row; r < rows; r += together) {
        const int64_t count = std::min(together, rows - r) * units;
        for (int64_t i = 0; i < count; i += Cell::kMostElements) {
          body(Cell::Part{step, r * s_.units + first + i, std::min(Cell::kMostElements, count - i)});
        }
      }
      begin += some;
    }
  }

  void Step(const Run& run, int64_t step) const {
    ForPanels(run, s_.panel_units(), [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) {
        float* sums = run.sums + panel * s_.sequences * kPanel;
        const int64_t d = panel / s_.panels();
        variant_.multiply(run.states.h + d * s_.state_size(), s_.units, s_.sequences,
                          weights_.state->data<float>() + panel * s_.units * kPanel, s_.units,
                          {ProductsOf(run, d, panel, step), kPanel}, sums);
      }
      ForParts(step, s_.panel_units(), begin, end, [&](const Cell::Part& part) {
        Cell::GateBuffers buffers;
        Gather(run.sums, part, s_.panel_units(), 0, &buffers);
        cell_.Finish(run.states, part, buffers.gates());
      });
    });
    if (!cell_.resets_first()) return;
    ForPanels(run, kPanel, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) {
        float* sums = run.resets + panel * s_.sequences * kPanel;
        const int64_t d = panel / PanelsOf(kPanel);
        variant_.multiply(run.states.kept + d * s_.state_size(), s_.units, s_.sequences,
                          weights_.reset_state->data<float>() + panel * s_.units * kPanel, s_.units,
                          {&weights_.reset_bias[panel * kPanel], 0}, sums);
      }
      ForParts(step, kPanel, begin, end, [&](const Cell::Part& part) {
        Cell::GateBuffers buffers;
        Gather(run.sums, part, s_.panel_units(), 0, &buffers);
        Gather(run.resets, part, kPanel, 3, &buffers);
        cell_.FinishReset(run.states, part, buffers.gates());
      });
    });
  }

  // The input's products of a panel in a step, a row for each sequence. Where their times differ they are brought to
  // the step's sums.
  const float* ProductsOf(const Run& run, int64_t d, int64_t panel, int64_t step) const {
    const auto row = [&](int64_t n) {
      const int64_t time = std::max<int64_t>(0, cell_.TimeOf(run.states, d, n, step));
      return run.products + (panel * s_.rows() + time * s_.sequences + n) * kPanel;
    };
    if (run.states.lengths == nullptr) return row(0);
    float* sums = run.sums + panel * s_.sequences * kPanel;
    for (int64_t n = 0; n < s_.sequences; ++n) std::copy_n(row(n), kPanel, sums + n * kPanel);
    return sums;
  }

  int64_t PanelsOf(int64_t width) const { return (s_.units + width - 1) / width; }

  // The part's sums in panels of `width` units, [D, panels, N, slots, width], slot by slot; the first into gate `gate`.
  // A panel's units are copied whole: what lies behind a sequence's last one goes where the next sequence follows.
  void Gather(const float* panels, const Cell::Part& part, int64_t width, int gate, Cell::GateBuffers* to) const {
    cell_.ForSequences(part, [&](int64_t d, int64_t n, int64_t unit, int64_t count, int64_t begin) {
      const float* from = panels + ((d * PanelsOf(width) + unit / width) * s_.sequences + n) * kPanel;
      for (int64_t i = 0; i < count; i += width, from += s_.sequences * kPanel) {
        if (width == kPanel) {
          std::memcpy(to->values[gate] + begin + i, from, kPanel * sizeof(float));
        } else {
          for (int slot = 0; slot < kGates; ++slot) {
            std::memcpy(to->values[slot] + begin + i, from + slot * kPanel / kGates, kPanel / kGates * sizeof(float));
          }
        }
      }
    });
  }

  const Cell cell_;
  const Panels s_;
  const Weights weights_;
  const Variant& variant_;
};

absl::StatusOr<Weights> PackWeights(const KernelDesc& desc, const Cell& cell, const Panels& sizes) {
  const bool gru = cell.kind() == Cell::Kind::kGru, resets_first = cell.resets_first();
  const Slots input = cell.kind() == Cell::Kind::kRnn ? Slots{0} : gru ? Slots{0, 1, 2, -1} : Slots{0, 1, 2, 3};
  Slots state = input;
  if (gru) state = {0, 1, -1, resets_first ? -1 : 2};
  const int64_t panels = sizes.panels(), rows = sizes.gates * sizes.units, wide = RoundUp(sizes.units, kPanel);
  for (const char* name : {"weight", "recurrent_weight"}) {
    RETURN_IF_ERROR(kernels::CheckedFloatParameter(desc, name).status());
  }
  Weights weights;
  // A parameter's `gates` matrices [units, depth], of each direction.
  const auto packed = [&](const char* name, const Slots& slots, int64_t depth, int64_t floats) {
    const TensorType type{DType::kF32, {sizes.directions, floats}, std::nullopt, Layout::kRowMajor};
    const std::string layout = absl::StrCat("recurrent ", absl::StrJoin(slots, " "), " ", ToString(type));
    return desc.Packed(name, layout, [&] {
      Tensor to(type);
      const Tensor from = kernels::FloatParameter(desc, name).value();
      for (int64_t d = 0; d < sizes.directions; ++d) {
        Pack(sizes, slots, from.data<float>() + d * rows * depth, depth, to.data<float>() + d * floats);
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
    if (desc.ParameterOrNull("bias") == nullptr) continue;
    const float* bias = desc.ParameterOrNull("bias")->data<float>() + 2 * d * rows;
    float* to = weights.bias.data() + d * panels * kPanel;
    Pack(sizes, input, bias, 1, to);
    std::fill(part.begin(), part.end(), 0.0f);
    Pack(sizes, state, bias + rows, 1, part.data());
    for (size_t i = 0; i < part.size(); ++i) to[i] += part[i];
    if (resets_first) Pack(sizes, {2}, bias + rows, 1, weights.reset_bias.data() + d * wide);
  }
  return weights;
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  const Variant& variant = kernels::BestVariant(Variants(), desc.isa);
  ASSIGN_OR_RETURN(Cell cell, Cell::Of(desc, variant.activate));
  const TensorType& x = desc.input(kX);
  if (x.dtype != DType::kF32) {
    return absl::UnimplementedError(absl::StrCat(desc.op, " of ", ToString(x), ", wanted f32"));
  }
  const Panels panels{cell.sizes(), cell.kind() == Cell::Kind::kRnn ? 1 : 4};
  ASSIGN_OR_RETURN(Weights weights, PackWeights(desc, cell, panels));
  return std::make_unique<Recurrent>(desc, std::move(cell), panels, std::move(weights), variant);
}

void Register(kernels::KernelRegistry& registry) {
  for (const char* op : {"rnn", "gru", "lstm"}) {
    registry.Register({op, kernels::LayoutRule::kRowMajor, Create});
  }
}

void scalar::Multiply(const float* x, int64_t stride, int64_t rows, const float* panel, int64_t depth, Initial initial,
                      float* sums) {
  MultiplyLoop<2>(x, stride, rows, panel, depth, initial, sums);
}

void scalar::Activate(Activation activation, float alpha, float beta, float* x, int64_t n) {
  ActivateLoop(activation, alpha, beta, x, n);
}

}  // namespace fuselage::recurrent
