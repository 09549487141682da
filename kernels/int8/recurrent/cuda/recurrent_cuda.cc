#include "kernels/int8/recurrent/cuda/recurrent_cuda.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/check.h"
#include "ir/base/recurrent.h"
#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/linear/cuda/create.h"
#include "kernels/int8/recurrent/products.h"

namespace fuselage::int8::recurrent::cuda {
namespace {

using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceBuffer;
using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::RoundUp;
using ::fuselage::cuda::Spread;
using fuselage::recurrent::Cell;
using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::Kernel;
using kernels::KernelDesc;
using kernels::RunContext;
using linear::cuda::DeviceLayer;

// A direction's products; that of r*h where the gru resets first.
struct Direction {
  std::unique_ptr<Kernel> of_input;
  std::vector<DeviceLayer> of_state;
};

std::vector<Form> FormsOf(const Cell& cell) {
  switch (cell.kind()) {
    case Cell::Kind::kRnn: return {Form::kRnn};
    case Cell::Kind::kLstm: return {Form::kLstm};
    case Cell::Kind::kGru: break;
  }
  if (cell.resets_first()) return {Form::kGruReset, Form::kGruNext};
  return {Form::kGru};
}

// Inference lets no other activations through.
ElementwiseInstruction FunctionOf(const fuselage::recurrent::ActivationCall& call) {
  switch (call.activation) {
    case fuselage::recurrent::Activation::kHardSigmoid:
      return {ElementwiseOp::kHardsigmoid, 0, 0, static_cast<float>(call.alpha), static_cast<float>(call.beta)};
    case fuselage::recurrent::Activation::kSigmoid: return {ElementwiseOp::kSigmoid};
    case fuselage::recurrent::Activation::kSoftsign: return {ElementwiseOp::kSoftsign};
    default: return {ElementwiseOp::kTanh};
  }
}

class RecurrentCuda final : public Kernel {
 public:
  RecurrentCuda(const KernelDesc& desc, const Cell& cell, std::vector<Direction> directions, DeviceBuffer peepholes,
                const BeginParams& begin)
      : Kernel(desc),
        s_(cell.sizes()),
        directions_(std::move(directions)),
        peepholes_(std::move(peepholes)),
        begin_(begin),
        products_(s_.rows() * s_.gates * s_.units) {
    for (const Form form : FormsOf(cell)) AddLaunch(form, cell);
    int64_t weight_bytes = peepholes_.bytes(), part_scratch = 0;
    for (const Direction& direction : directions_) {
      weight_bytes += direction.of_input->own_weight_bytes();
      for (const DeviceLayer& layer : direction.of_state) weight_bytes += layer.memory.bytes();
      part_scratch = std::max(part_scratch, direction.of_input->scratch_bytes());
    }
    set_variant(directions_[0].of_input->variant());
    set_weight_bytes(weight_bytes);
    products_bytes_ = Aligned(s_.directions * products_ * kFloat);
    state_bytes_ = Aligned(s_.directions * s_.state_size() * kFloat);
    codes_bytes_ = Aligned(begin_.items.count);
    set_scratch_bytes(products_bytes_ + 3 * state_bytes_ + 2 * codes_bytes_ + part_scratch);
  }

 private:
  static constexpr int64_t kFloat = sizeof(float);
  static int64_t Aligned(int64_t bytes) { return RoundUp(bytes, 64); }

  void AddLaunch(Form form, const Cell& cell) {
    StepParams params;
    params.form = form;
    params.sizes = begin_.sizes;
    params.first_backwards = cell.first_backwards();
    params.input_forget = cell.input_forget();
    params.clip = cell.clip() > 0 ? cell.clip() : std::numeric_limits<float>::infinity();
    params.code_scale = begin_.code_scale;
    for (int64_t d = 0; d < s_.directions; ++d) {
      StepParams::Direction& direction = params.directions[d];
      const linear::cuda::Layer& layer = directions_[d].of_state[launches_.size()].layer;  // Each launch has its own.
      direction.weight = layer.weight;
      direction.multiplier = layer.multiplier;
      direction.bias = layer.float_bias;
      if (!cell.peepholes().empty()) {
        direction.peepholes = static_cast<const float*>(peepholes_.data()) + 3 * d * s_.units;
      }
      int count = 0;
      for (const auto& call : cell.activations(d)) direction.functions[count++] = FunctionOf(call);
    }
    launches_.push_back(params);
  }

  void Compute(absl::Span<const ConstBuffer> in, absl::Span<const Buffer> out,
               const RunContext& context) const override {
    auto* scratch = static_cast<uint8_t*>(context.scratch.data);
    const auto take = [&](int64_t bytes) {
      scratch += bytes;
      return scratch - bytes;
    };
    const auto floats = [&](int64_t bytes) { return reinterpret_cast<float*>(take(bytes)); };
    const auto input = [&](size_t i) { return i < in.size() ? in[i].data : nullptr; };
    float* products = floats(products_bytes_);
    // The last step's are the results.
    State states[2] = {{static_cast<float*>(out[1].data), nullptr}, {floats(state_bytes_), nullptr}};
    if (out.size() > 2) {
      states[0].c = static_cast<float*>(out[2].data);
      states[1].c = floats(state_bytes_);
    }
    float* update = floats(state_bytes_);
    uint8_t* codes[2] = {take(codes_bytes_), take(codes_bytes_)};

    RunContext part = context;
    part.scratch = {scratch, 0};
    for (int64_t d = 0; d < s_.directions; ++d) {
      const Kernel& of_input = *directions_[d].of_input;
      part.scratch.bytes = of_input.scratch_bytes();
      const absl::Status status =
          of_input.Run({in[fuselage::recurrent::kX]}, {Buffer{products + d * products_, products_ * kFloat}}, part);
      FUSELAGE_CHECK(status.ok());
    }

    BeginParams begin = begin_;
    begin.lengths = static_cast<const int32_t*>(input(fuselage::recurrent::kLengths));
    begin.initial_h = static_cast<const float*>(input(fuselage::recurrent::kInitialH));
    begin.initial_c = static_cast<const float*>(input(fuselage::recurrent::kInitialC));
    begin.to = states[s_.steps % 2];
    std::copy_n(codes, 2, begin.codes);
    LaunchBegin(begin, context.stream);

    for (int64_t step = 0; step < s_.steps; ++step) {
      for (StepParams params : launches_) {
        params.step = static_cast<int32_t>(step);
        params.lengths = begin.lengths;
        params.products = products;
        params.codes = codes[0];
        params.next_codes = codes[1];
        params.from = states[(s_.steps - step) % 2];
        params.to = states[(s_.steps - step - 1) % 2];
        params.update = update;
        params.y = static_cast<float*>(out[0].data);
        LaunchStep(params, context.stream);
        std::swap(codes[0], codes[1]);
      }
    }
  }

  const fuselage::recurrent::Sizes s_;
  const std::vector<Direction> directions_;
  const DeviceBuffer peepholes_;
  const BeginParams begin_;
  const int64_t products_;            // Of a direction's inputs: floats.
  std::vector<StepParams> launches_;  // Of a step.
  int64_t products_bytes_, state_bytes_, codes_bytes_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Cell cell, CellOf(desc));
  const fuselage::recurrent::Sizes& s = cell.sizes();
  std::vector<Direction> directions(s.directions);
  for (int64_t d = 0; d < s.directions; ++d) {
    const std::vector<Product> products = ProductsOf(desc, cell, d);
    ASSIGN_OR_RETURN(directions[d].of_input, linear::cuda::Create(LinearOf(desc, products[0]).desc()));
    for (size_t i = 1; i < products.size(); ++i) {
      ASSIGN_OR_RETURN(directions[d].of_state.emplace_back(), DeviceLayer::Upload(LinearOf(desc, products[i]).desc()));
    }
  }
  BeginParams begin;
  begin.sizes = {static_cast<int32_t>(s.directions), static_cast<int32_t>(s.steps),
                 static_cast<int32_t>(s.sequences),  static_cast<int32_t>(s.units),
                 static_cast<int32_t>(s.gates),      directions[0].of_state[0].layer.pitch};
  begin.code_scale = fuselage::recurrent::kStateScale;
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  ASSIGN_OR_RETURN(begin.items, Spread(s.directions * s.sequences * begin.sizes.pitch, device, desc.op));
  DeviceBuffer peepholes;
  if (!cell.peepholes().empty()) {
    ASSIGN_OR_RETURN(peepholes, DeviceBuffer::Upload(cell.peepholes().data(), cell.weight_bytes(),
                                                     absl::StrCat("the peepholes of ", desc.op)));
  }
  return std::make_unique<RecurrentCuda>(desc, cell, std::move(directions), std::move(peepholes), begin);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  for (const char* op : {"int8.rnn", "int8.gru", "int8.lstm"}) {
    registry.Register({op, kernels::LayoutRule::kRowMajor, Create});
  }
}

}  // namespace fuselage::int8::recurrent::cuda
