// Beside oneDNN's two products and softmax, which write the scores to memory, in the same run, on one thread:
// bazel run //kernels/attention:bench -- --benchmark_min_time=0.5
#include "kernels/attention/attention.h"

#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/fp32/fp32.h"

namespace fuselage::attention {
namespace {

using kernels::Floats;
using kernels::KernelDesc;

struct Case {
  const char* name;
  int64_t heads, key_heads, queries, keys, depth;
  bool causal;
};
constexpr Case kCases[] = {
    {"vit_b_16", 12, 12, 197, 197, 64, false}, {"swin_t windows", 192, 192, 49, 49, 32, false},
    {"bert 384", 12, 12, 384, 384, 64, false}, {"llama 256", 4, 4, 256, 256, 64, true},
    {"2048", 2, 2, 2048, 2048, 64, false},     {"2048 causal", 2, 2, 2048, 2048, 64, true},
    {"one token", 8, 2, 1, 2048, 64, false},
};

// Runs a kernel on memory of its own.
class Call {
 public:
  Call(const kernels::KernelRegistry& registry, KernelDesc desc)
      : kernel_(registry.FindOrNull(desc.op)->create(desc)), y_(desc.output()) {
    for (const auto& type : desc.inputs) x_.push_back(SeededTensor(*type, 1 + x_.size()));
    for (const Tensor& x : x_) inputs_.push_back({x.raw_data(), x.byte_size()});
    if (kernel_.ok()) scratch_ = std::make_unique<kernels::GuardedMemory>((*kernel_)->scratch_bytes());
  }
  absl::Status Run() {
    if (!kernel_.ok()) return kernel_.status();
    return (*kernel_)->Run(inputs_, {{y_.raw_data(), y_.byte_size()}},
                           {&serial_, {scratch_->data(), scratch_->size()}});
  }

 private:
  absl::StatusOr<std::unique_ptr<kernels::Kernel>> kernel_;
  Tensor y_;
  std::vector<Tensor> x_;
  std::vector<kernels::ConstBuffer> inputs_;
  std::unique_ptr<kernels::GuardedMemory> scratch_;
  kernels::Serial serial_;
};

KernelDesc Desc(const char* op, AttributeMap attributes, std::vector<Shape> inputs, Shape output, kernels::Isa isa) {
  KernelDesc desc;
  desc.op = op;
  desc.attributes = std::move(attributes);
  for (Shape& shape : inputs) desc.inputs.push_back(Floats(std::move(shape)));
  desc.outputs = {Floats(std::move(output))};
  desc.isa = isa;
  return desc;
}

void Run(benchmark::State& state, const Case& c, bool onednn, kernels::Isa isa) {
  if (!kernels::CpuSupports(isa)) return state.SkipWithError("this CPU lacks the instruction set");
  kernels::KernelRegistry registry;
  std::vector<std::unique_ptr<Call>> calls;
  const Shape q = {1, c.heads, c.queries, c.depth};
  if (onednn) {
    fp32::Register(registry);
    const Shape scores = {1, c.heads, c.queries, c.keys};
    const auto add = [&](KernelDesc desc) { calls.push_back(std::make_unique<Call>(registry, std::move(desc))); };
    add(Desc("matmul", {}, {q, {1, c.heads, c.depth, c.keys}}, scores, isa));
    add(Desc("softmax", {{"dim", -1}}, {scores}, scores, isa));
    add(Desc("matmul", {}, {scores, {1, c.heads, c.keys, c.depth}}, q, isa));
  } else {
    Register(registry);
    const Shape k = {1, c.key_heads, c.keys, c.depth};
    const AttributeMap attributes = {{"scale", 0.125}, {"is_causal", c.causal}, {"softcap", 0.0}};
    calls.push_back(
        std::make_unique<Call>(registry, Desc("scaled_dot_product_attention", attributes, {q, k, k}, q, isa)));
  }
  for (auto _ : state) {
    for (const auto& call : calls) {
      const absl::Status status = call->Run();
      if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
    }
    benchmark::ClobberMemory();
  }
  const int64_t pairs = c.causal && !onednn ? c.queries * (c.queries + 1) / 2 : c.queries * c.keys;
  // Two operations for each multiply-accumulate of both products: items are FLOPs.
  state.SetItemsProcessed(state.iterations() * 4 * c.heads * pairs * c.depth);
}

const bool kRegistered = [] {
  for (const Case& c : kCases) {
    const std::string name = c.name;
    benchmark::RegisterBenchmark((name + "/onednn").c_str(), Run, c, true, kernels::BestIsa());
    for (const Variant& variant : Variants()) {
      if (variant.isa == kernels::Isa::kScalar) continue;  // Seconds.
      benchmark::RegisterBenchmark((name + "/" + variant.name).c_str(), Run, c, false, variant.isa);
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::attention
