#include "kernels/int8/recurrent/cuda/recurrent_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"
#include "kernels/int8/linear/cuda/layer.h"

namespace fuselage::int8::recurrent::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::DequantizeAccumulator;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::PerThread;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Vector;
using ::fuselage::cuda::Warp;
using linear::cuda::kChunk;

// Negative where it is none: that sequence's results are NaN.
FUSELAGE_DEVICE int32_t LengthOf(Thread thread, const int32_t* lengths, const Sizes& sizes, int sequence) {
  const int32_t length = lengths == nullptr ? sizes.steps : thread.Load(lengths + sequence);
  return length > sizes.steps ? -1 : length;
}

FUSELAGE_DEVICE uint8_t CodeOf(float state, float scale) {
  return static_cast<uint8_t>(fuselage::cuda::QuantizeValue(state, scale, {0, -128, 127}));
}

// Of those that keep states within [-1, 1].
FUSELAGE_DEVICE float Activated(const ElementwiseInstruction& function, float x) {
  switch (function.op) {
    case ElementwiseOp::kHardsigmoid: return elementwise::Hardsigmoid(x, function.p, function.q);
    case ElementwiseOp::kSigmoid: return elementwise::Sigmoid(x);
    case ElementwiseOp::kSoftsign: return x / (1.0f + elementwise::Magnitude(x));
    default: return elementwise::Tanh(x);
  }
}

// The states before the first step.
struct Begin {
  static constexpr int kWarps = kItemWarps;
  using Params = BeginParams;
  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const auto row = static_cast<int>(item / p.sizes.pitch), unit = static_cast<int>(item % p.sizes.pitch);
      float h = 0;
      if (unit < p.sizes.units) {
        const int64_t at = int64_t{row} * p.sizes.units + unit;
        const bool valid = LengthOf(thread, p.lengths, p.sizes, row % p.sizes.sequences) >= 0;
        const auto initial = [&](const float* x) {
          return !valid ? __builtin_nanf("") : x == nullptr ? 0.0f : thread.Load(x + at);
        };
        h = initial(p.initial_h);
        thread.Store(p.to.h + at, h);
        if (p.to.c != nullptr) thread.Store(p.to.c + at, initial(p.initial_c));
      }
      for (uint8_t* codes : p.codes) thread.Store(codes + item, CodeOf(h, p.code_scale));
    });
  }
};

// The warps of a block share out the codes of a state, 64 at a time, and add up their sums in shared memory. What needs
// no step before is loaded while that one may still run.
template <Form kForm>
struct Step {
  static constexpr int kWarps = 8;
  static constexpr int kBlocks = 2;  // With the registers that three would have, ptxas spills.
  static constexpr bool kWaits = true;
  static constexpr int kGates = kForm == Form::kLstm ? 4 : kForm == Form::kGru ? 3 : kForm == Form::kGruReset ? 2 : 1;
  static constexpr int kFirstGate = kForm == Form::kGruNext ? 2 : 0;
  static constexpr int kSequences = 16, kUnits = 8;                               // A block's.
  static constexpr int kSharedBytes = kWarps * kGates * kSequences * kUnits * 4;  // The warps' sums.
  using Params = StepParams;

  FUSELAGE_DEVICE static uint32_t SumOffset(int warp, int gate, int sequence, int unit) {
    return static_cast<uint32_t>(4 * (((warp * kGates + gate) * kSequences + sequence) * kUnits + unit));
  }

  // One unit of one sequence, and what a thread makes its next state of, but for the products of the states.
  struct Item {
    bool exists = false;
    int32_t unit, length, time;
    int64_t row, at;  // In [D][N] and [D][N][H].
    float product[kGates], multiplier[kGates], bias[kGates];
    float h, c, update;
  };

  FUSELAGE_DEVICE static Item LoadItem(const Block& block, Thread thread, const Params& p) {
    const StepParams::Direction& direction = p.directions[block.z()];
    const int sequence = block.x() * kSequences + thread.index() / kUnits, units = p.sizes.units;
    Item item;
    item.unit = block.y() * kUnits + thread.index() % kUnits;
    item.exists = thread.index() < kSequences * kUnits && sequence < p.sizes.sequences && item.unit < units;
    if (!item.exists) return item;
    item.row = int64_t{block.z()} * p.sizes.sequences + sequence;
    item.at = item.row * units + item.unit;
    item.length = LengthOf(thread, p.lengths, p.sizes, sequence);
    item.time = block.z() == 1 || p.first_backwards ? item.length - 1 - p.step : p.step;
    item.h = thread.Load(p.from.h + item.at);
    if constexpr (kForm == Form::kLstm) item.c = thread.Load(p.from.c + item.at);
    if (p.step >= item.length) return item;
    if constexpr (kForm == Form::kGruNext) item.update = thread.Load(p.update + item.at);
    const int64_t input_row = (int64_t{block.z()} * p.sizes.steps + item.time) * p.sizes.sequences + sequence;
    FUSELAGE_UNROLL
    for (int gate = 0; gate < kGates; ++gate) {
      item.product[gate] =
          thread.Load(p.products + (input_row * p.sizes.gates + kFirstGate + gate) * units + item.unit);
      item.multiplier[gate] = thread.LoadConstant(direction.multiplier + gate * units + item.unit);
      item.bias[gate] = thread.LoadConstant(direction.bias + gate * units + item.unit);
    }
    return item;
  }

  // Of rows lane / 4 of the block's in each gate. What stands for a unit that is not there gives sums that nobody uses.
  FUSELAGE_DEVICE static void LoadWeights(const Block& block, Warp warp, const Params& p, int chunk,
                                          Lanes<Codes16> (&weights)[kGates]) {
    if (chunk >= p.sizes.pitch / kChunk) return;
    warp.ForThreads([&](Thread thread) {
      const int unit = block.y() * kUnits + thread.lane() / 4, last = p.sizes.units - 1;
      FUSELAGE_UNROLL
      for (int gate = 0; gate < kGates; ++gate) {
        const int64_t row = int64_t{gate} * p.sizes.units + (unit < last ? unit : last);
        weights[gate][thread] = thread.LoadConstant(reinterpret_cast<const Codes16*>(
            p.directions[block.z()].weight + row * p.sizes.pitch + kChunk * chunk + 16 * (thread.lane() % 4)));
      }
    });
  }

  // Of the block's sequences lane / 4 and 8 + lane / 4.
  FUSELAGE_DEVICE static void LoadStates(const Block& block, Warp warp, const Params& p, int chunk, Lanes<Codes16>* low,
                                         Lanes<Codes16>* high) {
    if (chunk >= p.sizes.pitch / kChunk) return;
    warp.ForThreads([&](Thread thread) {
      const auto load = [&](int sequence) {
        if (sequence >= p.sizes.sequences) return Codes16{};
        const int64_t row = int64_t{block.z()} * p.sizes.sequences + sequence;
        return thread.Load(reinterpret_cast<const Codes16*>(p.codes + row * p.sizes.pitch + kChunk * chunk +
                                                            16 * (thread.lane() % 4)));
      };
      const int sequence = block.x() * kSequences + thread.lane() / 4;
      (*low)[thread] = load(sequence);
      (*high)[thread] = load(sequence + 8);
    });
  }

  FUSELAGE_DEVICE static void Finish(const Block& block, Thread thread, const Params& p, const Item& item) {
    const StepParams::Direction& direction = p.directions[block.z()];
    const auto store = [&](int32_t time, float h, float y) {
      if constexpr (kForm == Form::kGruReset) return;
      thread.Store(p.to.h + item.at, h);
      thread.Store(p.y + int64_t{time} * p.sizes.directions * p.sizes.sequences * p.sizes.units + item.at, y);
    };
    const auto store_code = [&](float state) {
      thread.Store(p.next_codes + item.row * p.sizes.pitch + item.unit, CodeOf(state, p.code_scale));
    };
    const auto activated = [&](int which, float gate) {
      return Activated(direction.functions[which], elementwise::Clamp(gate, -p.clip, p.clip));
    };
    // Behind its end a sequence keeps its state.
    if (p.step >= item.length) {
      if constexpr (kForm == Form::kLstm) thread.Store(p.to.c + item.at, item.c);
      return store(p.step, item.h, item.length < 0 ? __builtin_nanf("") : 0.0f);
    }
    float state[kGates], sum[kGates];
    FUSELAGE_UNROLL
    for (int gate = 0; gate < kGates; ++gate) {
      int32_t acc = 0;
      FUSELAGE_UNROLL
      for (int warp = 0; warp < kWarps; ++warp) {
        acc += thread.LoadShared<int32_t>(SumOffset(warp, gate, thread.index() / kUnits, thread.index() % kUnits));
      }
      state[gate] = DequantizeAccumulator(acc, item.multiplier[gate], item.bias[gate]);
      sum[gate] = item.product[gate] + state[gate];
    }
    float h = 0;
    if constexpr (kForm == Form::kRnn) {
      h = activated(0, sum[0]);
    } else if constexpr (kForm == Form::kGruReset) {
      thread.Store(p.update + item.at, activated(0, sum[0]));
      return store_code(activated(0, sum[1]) * item.h);
    } else if constexpr (kForm == Form::kLstm) {
      const auto peep = [&](int which, float c) {
        return thread.LoadConstant(direction.peepholes + which * p.sizes.units + item.unit) * c;
      };
      const bool peeps = direction.peepholes != nullptr;
      const float input = activated(0, peeps ? sum[0] + peep(0, item.c) : sum[0]);
      const float forget = p.input_forget ? 1.0f - input : activated(0, peeps ? sum[2] + peep(2, item.c) : sum[2]);
      const float c = forget * item.c + input * activated(1, sum[3]);
      thread.Store(p.to.c + item.at, c);
      h = activated(0, peeps ? sum[1] + peep(1, c) : sum[1]) * Activated(direction.functions[2], c);
    } else {
      const float update = kForm == Form::kGruNext ? item.update : activated(0, sum[0]);
      const float next =
          activated(1, kForm == Form::kGruNext ? sum[0] : item.product[2] + activated(0, sum[1]) * state[2]);
      h = (1.0f - update) * next + update * item.h;
    }
    store(item.time, h, h);
    store_code(h);
  }

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    PerThread<Item, kWarps> items;
    block.Phase([&](Warp warp) {
      Lanes<Vector<int32_t, 4>> sums[kGates];
      Lanes<Codes16> weights[kGates], low, high;
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int gate = 0; gate < kGates; ++gate) sums[gate][thread] = {};
      });
      LoadWeights(block, warp, p, warp.index(), weights);
      warp.WaitForEarlier();
      LoadStates(block, warp, p, warp.index(), &low, &high);
      warp.ForThreads([&](Thread thread) { items[thread] = LoadItem(block, thread, p); });
      for (int chunk = warp.index(); chunk < p.sizes.pitch / kChunk; chunk += kWarps) {
        FUSELAGE_UNROLL
        for (int gate = 0; gate < kGates; ++gate) {
          linear::cuda::MultiplyChunk<int8_t>(warp, low, high, weights[gate], &sums[gate]);
        }
        LoadWeights(block, warp, p, chunk + kWarps, weights);
        LoadStates(block, warp, p, chunk + kWarps, &low, &high);
      }
      warp.ForThreads([&](Thread thread) {
        const int sequence = thread.lane() / 4, unit = 2 * (thread.lane() % 4);
        FUSELAGE_UNROLL
        for (int gate = 0; gate < kGates; ++gate) {
          const Vector<int32_t, 4>& s = sums[gate][thread];
          thread.StoreShared(SumOffset(warp.index(), gate, sequence, unit),
                             Vector<int32_t, 2>{{s.values[0], s.values[1]}});
          thread.StoreShared(SumOffset(warp.index(), gate, sequence + 8, unit),
                             Vector<int32_t, 2>{{s.values[2], s.values[3]}});
        }
      });
    });
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        if (items[thread].exists) Finish(block, thread, p, items[thread]);
      });
    });
  }
};

// By names that tools show.
struct Rnn : Step<Form::kRnn> {};
struct Gru : Step<Form::kGru> {};
struct GruReset : Step<Form::kGruReset> {};
struct GruNext : Step<Form::kGruNext> {};
struct Lstm : Step<Form::kLstm> {};

template <typename Kernel>
void LaunchForm(const StepParams& params, void* stream) {
  const auto blocks = [](int count, int each) { return (count + each - 1) / each; };
  fuselage::cuda::Launch<Kernel>({blocks(params.sizes.sequences, Kernel::kSequences),
                                  blocks(params.sizes.units, Kernel::kUnits), params.sizes.directions},
                                 Kernel::kSharedBytes, params, stream);
}

}  // namespace

void LaunchBegin(const BeginParams& params, void* stream) {
  fuselage::cuda::Launch<Begin>({params.items.blocks, 1, 1}, /*shared_bytes=*/0, params, stream);
}

void LaunchStep(const StepParams& params, void* stream) {
  switch (params.form) {
    case Form::kRnn: return LaunchForm<Rnn>(params, stream);
    case Form::kGru: return LaunchForm<Gru>(params, stream);
    case Form::kGruReset: return LaunchForm<GruReset>(params, stream);
    case Form::kGruNext: return LaunchForm<GruNext>(params, stream);
    case Form::kLstm: return LaunchForm<Lstm>(params, stream);
  }
}

}  // namespace fuselage::int8::recurrent::cuda
