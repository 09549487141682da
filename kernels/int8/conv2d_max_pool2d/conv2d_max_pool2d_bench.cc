// A convolution and the max pool behind it, as two kernels and as one. Names: layer/how/batch/threads, where `how` is
// "apart", "fused", or a number of pooled rows a band.
//
//   bazel run //kernels/int8/conv2d_max_pool2d:conv2d_max_pool2d_bench -- --benchmark_min_time=1
//   --benchmark_filter=stem
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d_max_pool2d/conv2d_max_pool2d.h"
#include "kernels/int8/max_pool2d/max_pool2d.h"
#include "runtime/thread_pool.h"

namespace fuselage::int8::conv2d_max_pool2d {
namespace {

using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::Kernel;
using kernels::KernelDesc;
using Ints = std::vector<int64_t>;

struct Layer {
  const char* name;
  int64_t in_channels, size, out_channels, kernel, stride, pool_kernel, pool_padding;
};

// ResNet18's, those of ResNet-D and of SqueezeNet 1.1, and those of VGG16 (Simonyan and Zisserman, ICLR 2015): larger
// weights, and a smaller image each time.
constexpr Layer kLayers[] = {{"stem", 3, 224, 64, 7, 2, 3, 1},       {"resnet_d", 32, 112, 64, 3, 1, 3, 1},
                             {"squeezenet", 3, 224, 64, 3, 2, 3, 0}, {"vgg1", 64, 224, 64, 3, 1, 2, 0},
                             {"vgg2", 128, 112, 128, 3, 1, 2, 0},    {"vgg3", 256, 56, 256, 3, 1, 2, 0},
                             {"vgg4", 512, 28, 512, 3, 1, 2, 0}};

constexpr int64_t kApart = -1, kFused = 0;

struct Kernels {
  Kernels(const Layer& l, int64_t how, int64_t batch, int threads) {
    const int64_t conv_size = (l.size - 1) / l.stride + 1, size = (conv_size + l.pool_padding - l.pool_kernel) / 2 + 1;
    const Tensor weight =
        SeededTensor(kernels::Codes(DType::kI8, {l.out_channels, l.in_channels, l.kernel, l.kernel}, 0.01f, 0), 1);
    KernelDesc whole;
    whole.isa = kernels::BestIsa();
    whole.threads = threads;
    whole.inputs = {kernels::Codes(DType::kU8, {batch, l.in_channels, l.size, l.size}, 0.02f, 115, Layout::kNhwc)};
    whole.outputs = {kernels::Codes(DType::kU8, {batch, l.out_channels, size, size}, 0.5f, 0, Layout::kNhwc)};
    whole.parameters["weight"] = &weight;
    whole.attributes = {{"stride", Ints{l.stride, l.stride}},
                        {"padding", Ints(4, l.kernel / 2)},
                        {"dilation", Ints{1, 1}},
                        {"groups", 1},
                        {"activation", "relu"},
                        {"pool_kernel_size", Ints{l.pool_kernel, l.pool_kernel}},
                        {"pool_stride", Ints{2, 2}},
                        {"pool_padding", Ints{l.pool_padding, l.pool_padding, 0, 0}},
                        {"pool_dilation", Ints{1, 1}},
                        {"pool_ceil_mode", false}};
    whole.input_placements = {EntryWith(conv2d::Variants()).preferred_placement(whole)};
    if (how != kApart) {
      kernels.push_back(*(how == kFused ? Create(whole) : CreateWithBands(conv2d::Variants(), whole, how)));
    } else {
      KernelDesc conv = whole, pool = whole;
      pool.input_placements.clear();
      conv.outputs[0].shape[2] = conv.outputs[0].shape[3] = conv_size;
      pool.inputs = {conv.outputs[0]};
      for (const auto& [name, value] : whole.attributes) {
        if (name.substr(0, 5) == "pool_") pool.attributes.insert_or_assign(name.substr(5), value);
      }
      kernels.push_back(*conv2d::Create(conv));
      kernels.push_back(*max_pool2d::Create(pool));
    }
    int64_t scratch_bytes = 0;
    macs = batch * conv_size * conv_size * weight.num_elements();
    values.emplace_back(kernels::PlacedBytes(whole.input(0), whole.input_placement(0)));
    values[0].FillRandom(1);
    for (const auto& kernel : kernels) {
      values.emplace_back(kernel->outputs()[0].byte_size());
      scratch_bytes = std::max(scratch_bytes, kernel->scratch_bytes());
    }
    scratch = std::make_unique<kernels::GuardedMemory>(scratch_bytes);
  }

  void Run(kernels::Parallel& parallel) {
    for (size_t i = 0; i < kernels.size(); ++i) {
      const absl::Status status = kernels[i]->Run({ConstBuffer{values[i].data(), values[i].size()}},
                                                  {Buffer{values[i + 1].data(), values[i + 1].size()}},
                                                  {&parallel, {scratch->data(), scratch->size()}});
      FUSELAGE_CHECK(status.ok());
    }
  }

  int64_t macs;  // Multiply-accumulates.
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<kernels::GuardedMemory> values;
  std::unique_ptr<kernels::GuardedMemory> scratch;
};

void Run(benchmark::State& state, const Layer& layer, int64_t how, int64_t batch, int threads) {
  Kernels kernels(layer, how, batch, threads);
  runtime::ThreadPool pool(threads);
  int64_t bytes = 0;
  for (const auto& value : kernels.values) bytes += value.size();
  for (auto _ : state) kernels.Run(pool);
  state.SetItemsProcessed(state.iterations() * kernels.macs);
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetLabel(kernels.kernels[0]->variant());
}

const bool kRegistered = [] {
  for (const Layer& layer : kLayers) {
    for (const int64_t batch : {1, 16}) {
      for (const int threads : {1, 2}) {
        for (const int64_t how : {kApart, kFused, int64_t{2}, int64_t{4}, int64_t{8}, int64_t{14}, int64_t{28}}) {
          const std::string name = how == kApart ? "apart" : how == kFused ? "fused" : absl::StrCat(how);
          benchmark::RegisterBenchmark(
              absl::StrCat(layer.name, "/", name, "/batch:", batch, "/threads:", threads).c_str(),
              [&layer, how, batch, threads](benchmark::State& state) { Run(state, layer, how, batch, threads); })
              ->Unit(benchmark::kMicrosecond)
              ->UseRealTime();
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::conv2d_max_pool2d
