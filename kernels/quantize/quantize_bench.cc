#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/quantize/quantize.h"

namespace fuselage::quantize {
namespace {

// 56x56x64 in NHWC, a scale for each channel.
void Run(benchmark::State& state, const Variant& variant, const Form& form) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  constexpr int64_t kPixels = 56 * 56, kChannels = 64;
  const Tensor x = SeededTensor({form.from, {kPixels, kChannels}, std::nullopt, Layout::kRowMajor}, 1);
  Tensor y(form.to, {kPixels, kChannels});
  const std::vector<float> scales(kChannels, 0.02f);
  const std::vector<int32_t> zero_points(kChannels, 3);
  for (auto _ : state) {
    for (int64_t pixel = 0; pixel < kPixels; ++pixel) {
      const int64_t at = pixel * kChannels;
      variant.run(form, {static_cast<const char*>(x.raw_data()) + at * ByteSize(form.from),
                         static_cast<char*>(y.raw_data()) + at * ByteSize(form.to), scales.data(), zero_points.data(),
                         kChannels, 1, 1, 1});
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * x.num_elements());
  state.SetBytesProcessed(state.iterations() * (x.byte_size() + y.byte_size()));
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    for (const Form form : {Form{DType::kF32, DType::kU8}, Form{DType::kF32, DType::kI16},
                            Form{DType::kI8, DType::kF32}, Form{DType::kI32, DType::kF32}}) {
      const std::string name = absl::StrCat(variant.name, " ", DTypeName(form.from), " to ", DTypeName(form.to));
      benchmark::RegisterBenchmark(name.c_str(),
                                   [&variant, form](benchmark::State& state) { Run(state, variant, form); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::quantize
