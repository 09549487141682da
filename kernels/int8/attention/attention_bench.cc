// Beside attention in FP32 (kernels/attention), in the same run, on one thread; the packing of keys and values counts:
// bazel run //kernels/int8/attention:bench -- --benchmark_min_time=0.5
#include "kernels/int8/attention/attention.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/attention/attention.h"
#include "kernels/core/testing/peak.h"
#include "kernels/core/testing/testing.h"

namespace fuselage::int8::attention {
namespace {

using kernels::KernelDesc;

struct Case {
  const char* name;
  int64_t heads, key_heads, queries, keys, depth;
  bool causal, mask;  // A mask: of floats for each head.
};
constexpr Case kCases[] = {
    {"vit_b_16", 12, 12, 197, 197, 64, false, false},
    {"swin_t windows", 192, 192, 49, 49, 32, false, false},
    {"swin_t windows masked", 192, 192, 49, 49, 32, false, true},
    {"1024", 4, 4, 1024, 1024, 64, false, false},
    {"2048", 2, 2, 2048, 2048, 64, false, false},
    {"2048 causal", 2, 2, 2048, 2048, 64, true, false},
    {"one token", 8, 2, 1, 2048, 64, false, false},
};

KernelDesc DescOf(const Case& c, bool codes, kernels::Isa isa) {
  const auto type = [&](int64_t heads, int64_t length) {
    const Shape shape = {1, heads, length, c.depth};
    return codes ? kernels::Codes(DType::kU8, shape, 0.02f, 128) : kernels::Floats(shape);
  };
  KernelDesc desc;
  desc.op = codes ? "int8.attention" : "scaled_dot_product_attention";
  desc.attributes = {{"scale", 0.125}, {"is_causal", c.causal}, {"softcap", 0.0}};
  desc.inputs = {type(c.heads, c.queries), type(c.key_heads, c.keys), type(c.key_heads, c.keys)};
  if (c.mask) desc.inputs.push_back(kernels::Floats({c.heads, c.queries, c.keys}));
  desc.outputs = {type(c.heads, c.queries)};
  desc.isa = isa;
  return desc;
}

void Run(benchmark::State& state, const Case& c, const KernelDesc& desc, const linear::Variant* products) {
  if (!kernels::CpuSupports(desc.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  auto kernel = products != nullptr
                    ? attention::CreateVariant(desc, *products, kernels::BestVariant(Variants(), products->isa))
                    : fuselage::attention::CreateWith(fuselage::attention::Variants(), desc);
  std::vector<Tensor> inputs;
  std::vector<kernels::ConstBuffer> buffers;
  for (const auto& type : desc.inputs) inputs.push_back(SeededTensor(*type, 1 + inputs.size()));
  for (const Tensor& input : inputs) buffers.push_back({input.raw_data(), input.byte_size()});
  kernels::GuardedMemory y(desc.output().byte_size()), scratch((*kernel)->scratch_bytes());
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status =
        (*kernel)->Run(buffers, {kernels::Buffer{y.data(), y.size()}}, {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError("the kernel failed");
    benchmark::ClobberMemory();
  }
  const int64_t pairs = c.causal ? c.queries * (c.queries + 1) / 2 : c.queries * c.keys;
  const double macs = static_cast<double>(state.iterations() * 2 * c.heads * pairs * c.depth);
  state.counters["GMAC/s"] = benchmark::Counter(macs * 1e-9, benchmark::Counter::kIsRate);
  if (const double peak = kernels::PeakMacsPerSecond(desc.isa); products != nullptr && peak > 0) {
    state.counters["peak_%"] = benchmark::Counter(macs / peak * 100, benchmark::Counter::kIsRate);
  }
}

const bool kRegistered = [] {
  for (const Case& c : kCases) {
    benchmark::RegisterBenchmark(absl::StrCat(c.name, "/fp32").c_str(), Run, c,
                                 DescOf(c, /*codes=*/false, kernels::BestIsa()), nullptr);
    for (const linear::Variant& variant : linear::VariantsOfAnyWeight()) {
      if (variant.isa == kernels::Isa::kScalar) continue;  // Seconds.
      benchmark::RegisterBenchmark(absl::StrCat(c.name, "/", variant.name).c_str(), Run, c,
                                   DescOf(c, /*codes=*/true, variant.isa), &variant);
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::attention
