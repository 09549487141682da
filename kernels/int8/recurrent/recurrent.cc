#include "kernels/int8/recurrent/recurrent.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/parallel.h"
#include "kernels/int8/quantize/quantize.h"
#include "kernels/int8/recurrent/products.h"

namespace fuselage::int8::recurrent {
namespace {

using fuselage::recurrent::Cell;
using fuselage::recurrent::Sizes;
using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::Kernel;
using kernels::KernelDesc;
using kernels::RunContext;
using Variants = absl::Span<const linear::Variant>;

constexpr int64_t kGrain = 512;  // Units that are worth a thread's while.

int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The name of what is made of these variants: of the input's product, and of a step's.
std::string NameOf(const std::string& of_input, const std::string& of_state) {
  return of_input == of_state ? of_input : absl::StrCat(of_input, ", steps ", of_state);
}

class Recurrent : public Kernel {
 public:
  // The kernels of a direction's products.
  struct Direction {
    std::unique_ptr<Kernel> of_input, of_state, of_reset_state;
  };

  Recurrent(const KernelDesc& desc, Cell cell, std::vector<Direction> directions, std::unique_ptr<Kernel> quantize)
      : Kernel(desc),
        cell_(std::move(cell)),
        s_(cell_.sizes()),
        directions_(std::move(directions)),
        quantize_(std::move(quantize)) {
    int64_t own = cell_.weight_bytes();
    std::vector<std::shared_ptr<const Tensor>> packed;
    part_scratch_bytes_ = quantize_->scratch_bytes();
    for (const Direction& direction : directions_) {
      for (const Kernel* part : {direction.of_input.get(), direction.of_state.get(), direction.of_reset_state.get()}) {
        if (part == nullptr) continue;
        part_scratch_bytes_ = std::max(part_scratch_bytes_, part->scratch_bytes());
        own += part->own_weight_bytes();
        packed.insert(packed.end(), part->packed().begin(), part->packed().end());
      }
    }
    products_bytes_ = Aligned(s_.directions * s_.rows() * s_.gates * s_.units * kFloat);
    sums_bytes_ = Aligned(s_.directions * s_.state_size() * s_.gates * kFloat);
    codes_bytes_ = Aligned(s_.directions * s_.state_size());
    states_bytes_ = Aligned(cell_.state_floats() * kFloat);
    set_variant(NameOf(directions_[0].of_input->variant(), directions_[0].of_state->variant()));
    set_scratch_bytes(products_bytes_ + sums_bytes_ + states_bytes_ + codes_bytes_ + part_scratch_bytes_);
    set_weight_bytes(own, std::move(packed));
  }

 private:
  static constexpr int64_t kFloat = sizeof(float);

  // The memory of one run.
  struct Run {
    float* products;  // The inputs': [D, T*N, G*H].
    float* sums;      // One step's: [D, N, G*H]; of a gru that resets first [D, N, 2*H],
    float* reset_sums;  // and [D, N, H] of r*h.
    int8_t* codes;      // [D, N, H]
    Cell::States states;
    RunContext part;  // The parts'.
  };

  absl::Status TryCompute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                          const RunContext& context) const override {
    uint8_t* scratch = static_cast<uint8_t*>(context.scratch.data);
    const auto take = [&](int64_t bytes) {
      scratch += bytes;
      return scratch - bytes;
    };
    Run run{};
    run.products = reinterpret_cast<float*>(take(products_bytes_));
    run.sums = reinterpret_cast<float*>(take(sums_bytes_));
    run.reset_sums = run.sums + s_.directions * (s_.gates - 1) * s_.state_size();
    float* states = reinterpret_cast<float*>(take(states_bytes_));
    run.codes = reinterpret_cast<int8_t*>(take(codes_bytes_));
    run.part = context;
    run.part.scratch = {scratch, part_scratch_bytes_};
    ASSIGN_OR_RETURN(run.states, cell_.Begin(inputs, outputs, states));
    for (int64_t d = 0; d < s_.directions; ++d) {
      RunPart(*directions_[d].of_input, inputs[fuselage::recurrent::kX].data, ProductsOfDirection(run, d), run);
    }
    for (int64_t step = 0; step < s_.steps; ++step) {
      Step(run, step);
      Cell::Advance(&run.states);
    }
    cell_.End(run.states, outputs);
    return absl::OkStatus();
  }

  // One operand to one result.
  static void RunPart(const Kernel& part, const void* from, void* to, const Run& run) {
    const absl::Status status = part.Run({ConstBuffer{from, part.inputs()[0]->byte_size()}},
                                         {Buffer{to, part.outputs()[0].byte_size()}}, run.part);
    FUSELAGE_CHECK(status.ok());
  }

  float* ProductsOfDirection(const Run& run, int64_t d) const {
    return run.products + d * s_.rows() * s_.gates * s_.units;
  }

  void Step(const Run& run, int64_t step) const {
    const int64_t gates = cell_.resets_first() ? s_.gates - 1 : s_.gates;
    Multiply(run, run.states.h, &Direction::of_state, gates, run.sums);
    ForParts(run, step, [&](const Cell::Part& part) {
      Cell::GateBuffers buffers;
      Gather(run, part, gates, run.sums, &buffers);
      cell_.Finish(run.states, part, buffers.gates());
    });
    if (!cell_.resets_first()) return;
    Multiply(run, run.states.kept, &Direction::of_reset_state, 1, run.reset_sums);
    ForParts(run, step, [&](const Cell::Part& part) {
      Cell::GateBuffers buffers;
      Gather(run, part, gates, run.sums, &buffers);
      std::copy_n(run.reset_sums + part.first, part.count, buffers.values[3]);
      cell_.FinishReset(run.states, part, buffers.gates());
    });
  }

  // The product of all directions' states, [D, N, gates*H].
  void Multiply(const Run& run, const float* states, std::unique_ptr<Kernel> Direction::*product, int64_t gates,
                float* to) const {
    RunPart(*quantize_, states, run.codes, run);
    for (int64_t d = 0; d < s_.directions; ++d) {
      RunPart(*(directions_[d].*product), run.codes + d * s_.state_size(), to + d * gates * s_.state_size(), run);
    }
  }

  template <typename F>
  void ForParts(const Run& run, int64_t step, F body) const {
    kernels::ForRanges(*run.part.parallel, s_.directions * s_.state_size(), kGrain, [&](int64_t begin, int64_t end) {
      for (; begin < end; begin += Cell::kMostElements) {
        body(Cell::Part{step, begin, std::min(Cell::kMostElements, end - begin)});
      }
    });
  }

  // The input's products and, of the first `gates` gates, the state's, added; but the two parts of a gru's third stay
  // apart.
  void Gather(const Run& run, const Cell::Part& part, int64_t gates, const float* sums, Cell::GateBuffers* to) const {
    const int64_t added = cell_.kind() == Cell::Kind::kGru ? 2 : gates;
    cell_.ForSequences(part, [&](int64_t d, int64_t n, int64_t unit, int64_t count, int64_t begin) {
      const int64_t time = std::max<int64_t>(0, cell_.TimeOf(run.states, d, n, part.step));
      const float* x = run.products + ((d * s_.steps + time) * s_.sequences + n) * s_.gates * s_.units + unit;
      const float* h = sums + (d * s_.sequences + n) * gates * s_.units + unit;
      for (int64_t gate = 0; gate < s_.gates; ++gate) {
        Cell::Sum(x + gate * s_.units, gate < added ? h + gate * s_.units : nullptr, count, to->values[gate] + begin);
      }
      if (added < gates) Cell::Sum(h + added * s_.units, nullptr, count, to->values[3] + begin);
    });
  }

  const Cell cell_;
  const Sizes s_;
  const std::vector<Direction> directions_;
  const std::unique_ptr<Kernel> quantize_;  // Of the states.
  int64_t products_bytes_, sums_bytes_, codes_bytes_, states_bytes_, part_scratch_bytes_;
};

absl::StatusOr<std::string> VariantOf(const KernelDesc& desc, Variants variants) {
  ASSIGN_OR_RETURN(const Cell cell, CellOf(desc));
  std::vector<std::string> names;
  for (int64_t d = 0; d < cell.sizes().directions; ++d) {
    for (const Product& product : ProductsOf(desc, cell, d)) {
      ASSIGN_OR_RETURN(names.emplace_back(), linear::EntryOf(variants).variant(LinearOf(desc, product).desc()));
    }
  }
  return NameOf(names[0], names[1]);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateWith(const KernelDesc& desc, Variants variants) {
  ASSIGN_OR_RETURN(Cell cell, CellOf(desc));
  std::vector<Recurrent::Direction> directions(cell.sizes().directions);
  for (int64_t d = 0; d < cell.sizes().directions; ++d) {
    std::vector<std::unique_ptr<Kernel>> parts;
    for (const Product& product : ProductsOf(desc, cell, d)) {
      ASSIGN_OR_RETURN(parts.emplace_back(), linear::EntryOf(variants).create(LinearOf(desc, product).desc()));
    }
    directions[d] = {std::move(parts[0]), std::move(parts[1]), parts.size() > 2 ? std::move(parts[2]) : nullptr};
  }
  KernelDesc states = desc;
  states.op = "int8.quantize";
  states.outputs = {StateCodes(cell.sizes().directions * cell.sizes().sequences, cell.sizes())};
  states.inputs = {{{DType::kF32, states.outputs[0].shape, std::nullopt, Layout::kRowMajor}}};
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> quantize, quantize::Create(states));
  return std::make_unique<Recurrent>(desc, std::move(cell), std::move(directions), std::move(quantize));
}

// Rows of the products' table.
std::vector<int> RowsFor(const KernelDesc& desc) {
  const absl::StatusOr<Cell> cell = CellOf(desc);
  std::set<int> rows;
  for (int64_t d = 0; cell.ok() && d < cell->sizes().directions; ++d) {
    for (const Product& product : ProductsOf(desc, *cell, d)) {
      const std::vector<int> some = linear::RowsFor(LinearOf(desc, product).desc());
      rows.insert(some.begin(), some.end());
    }
  }
  return {rows.begin(), rows.end()};
}

kernels::KernelEntry EntryWith(const char* op, Variants variants) {
  kernels::KernelEntry entry;
  entry.op = op;
  entry.layout = kernels::LayoutRule::kRowMajor;
  entry.create = [variants](const KernelDesc& desc) { return CreateWith(desc, variants); };
  entry.variant = [variants](const KernelDesc& desc) { return VariantOf(desc, variants); };
  return entry;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc) { return CreateWith(desc, linear::Variants()); }

kernels::KernelEntry RnnWith(Variants variants) { return EntryWith("int8.rnn", variants); }
kernels::KernelEntry GruWith(Variants variants) { return EntryWith("int8.gru", variants); }
kernels::KernelEntry LstmWith(Variants variants) { return EntryWith("int8.lstm", variants); }

void Register(kernels::KernelRegistry& registry) {
  for (const auto& [with, name] : {std::make_pair(RnnWith, "RnnWith"), {GruWith, "GruWith"}, {LstmWith, "LstmWith"}}) {
    kernels::KernelEntry entry = with(linear::Variants());
    entry.table = {{"kernels/int8/linear/variants.h", "kernels/int8/recurrent/recurrent.h"},
                   "int8::linear::kVariants",
                   absl::StrCat("int8::recurrent::", name),
                   RowsFor};
    registry.Register(std::move(entry));
  }
}

}  // namespace fuselage::int8::recurrent
