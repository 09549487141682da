// The fused kernel, and the kernels that it replaces one after the other, in the same run on one thread:
// bazel run //kernels/int8/norm:bench -- --benchmark_min_time=0.5
#include "kernels/int8/norm/norm.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/register_all.h"

namespace fuselage::int8::norm {
namespace {

using kernels::KernelDesc;

struct Case {
  const char* name;
  const char* op;
  int64_t rows, columns;
  bool codes, sum, row_scales;
};
constexpr Case kCases[] = {
    {"swin_t 96 codes", "layer_norm", 3136, 96, true, false, false},
    {"edgenext 24 codes", "layer_norm", 3136, 24, true, false, false},
    {"swin_t 192 codes", "layer_norm", 784, 192, true, false, false},
    {"vit_b_16 codes", "layer_norm", 197, 768, true, false, false},
    {"vit_b_16 sum, rows", "layer_norm", 197, 768, false, true, true},
    {"llama 256 sum, rows", "rms_norm", 256, 256, false, true, true},
    {"llama 1024 sum, rows", "rms_norm", 128, 1024, false, true, true},
    {"llama 5120 sum, rows", "rms_norm", 128, 5120, false, true, true},
    {"llama 5120 token sum, rows", "rms_norm", 1, 5120, false, true, true},
};

const kernels::KernelRegistry& Kernels() {
  static const auto* registry = [] {
    auto* created = new kernels::KernelRegistry;
    kernels::RegisterAll(*created);
    return created;
  }();
  return *registry;
}

// Kernels that run one after the other, each on the first result of the one before; the first reads `inputs`.
class Chain {
 public:
  Chain(const Case& c, bool fused) {
    const TensorType floats = kernels::Floats({c.rows, c.columns});
    const TensorType in = c.codes ? kernels::Codes(DType::kU8, floats.shape, 0.02f, 128) : floats;
    const std::vector<TensorType> out =
        c.row_scales ? std::vector<TensorType>{{DType::kI8, floats.shape, std::nullopt, Layout::kRowMajor},
                                               kernels::Floats({c.rows, 1})}
                     : std::vector<TensorType>{kernels::Codes(DType::kU8, floats.shape, 0.02f, 128)};
    const AttributeMap norm = {{"normalized_shape", Shape{c.columns}}, {"eps", 1e-5}};
    const AttributeMap add = {{"alpha", 1.0}, {"activation", "none"}};
    const std::vector<TensorType> ins(c.sum ? 2 : 1, in);
    for (const TensorType& type : ins) inputs_.push_back(SeededTensor(type, inputs_.size() + 1));
    if (fused) {
      std::vector<TensorType> results = out;
      if (c.sum) results.push_back(floats);
      Add(absl::StrCat("int8.", c.op), norm, ins, results);
      return;
    }
    if (c.codes) Add("int8.dequantize", {}, ins, {floats});
    if (c.sum) Add("add", add, ins, {floats});
    Add(c.op, norm, {floats}, {floats});
    Add(c.row_scales ? "dynamic_quantize_symmetric" : "int8.quantize", {{"dims", Shape{-1}}}, {floats}, out);
  }

  bool Run() {
    kernels::Serial serial;
    std::vector<kernels::ConstBuffer> buffers;
    for (const Tensor& input : inputs_) buffers.push_back({input.raw_data(), input.byte_size()});
    for (const Step& step : steps_) {
      std::vector<kernels::Buffer> results;
      for (const auto& memory : step.results) results.push_back({memory->data(), memory->size()});
      if (!step.kernel->Run(buffers, results, {&serial, {step.scratch->data(), step.scratch->size()}}).ok())
        return false;
      buffers = {{results[0].data, results[0].bytes}};
    }
    return true;
  }

 private:
  struct Step {
    std::unique_ptr<kernels::Kernel> kernel;
    std::vector<std::unique_ptr<kernels::GuardedMemory>> results;
    std::unique_ptr<kernels::GuardedMemory> scratch;
  };

  void Add(const std::string& op, AttributeMap attributes, const std::vector<TensorType>& in,
           const std::vector<TensorType>& out) {
    KernelDesc desc;
    desc.op = op;
    desc.attributes = std::move(attributes);
    desc.inputs.assign(in.begin(), in.end());
    desc.outputs = out;
    desc.isa = kernels::BestIsa();
    Step& step = steps_.emplace_back();
    step.kernel = *Kernels().FindOrNull(op)->create(desc);
    for (const TensorType& type : out) {
      step.results.push_back(std::make_unique<kernels::GuardedMemory>(type.byte_size()));
    }
    step.scratch = std::make_unique<kernels::GuardedMemory>(step.kernel->scratch_bytes());
  }

  std::vector<Tensor> inputs_;
  std::vector<Step> steps_;
};

void Run(benchmark::State& state, const Case& c, bool fused) {
  Chain chain(c, fused);
  for (auto _ : state) {
    if (!chain.Run()) return state.SkipWithError("a kernel failed");
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * c.rows * c.columns);
}

const bool kRegistered = [] {
  for (const Case& c : kCases) {
    for (const bool fused : {false, true}) {
      benchmark::RegisterBenchmark(absl::StrCat(c.name, fused ? " fused" : " apart").c_str(),
                                   [&c, fused](benchmark::State& state) { Run(state, c, fused); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::norm
