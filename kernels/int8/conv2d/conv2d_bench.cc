// Every variant on ResNet18's convolutions at 224x224, and all twenty of them in the network's order, as they share the
// caches in a run. Names: variant/layer/batch/threads.
//
//   bazel run //kernels/int8/conv2d:bench -- --benchmark_min_time=1 --benchmark_filter=resnet18
//
// peak_% is of what the variant's instruction set multiplies at most (kernels/core/testing/peak.h), on as many threads.
// It may exceed 100 for Winograd, which multiplies less than the convolution that it counts.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/core/testing/peak.h"
#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/testing/testing.h"

namespace fuselage::int8::conv2d {
namespace {

// Threads that spin between jobs: what is measured is the kernel, not the wake-up.
class SpinningThreads : public kernels::Parallel {
 public:
  explicit SpinningThreads(int threads) : threads_(threads) {
    for (int thread = 1; thread < threads; ++thread) {
      workers_.emplace_back([this, thread] {
        for (int seen = 0;;) {
          int now;
          while ((now = started_.load(std::memory_order_acquire)) == seen) {
          }
          seen = now;
          if (tasks_ < 0) return;
          Share(thread);
          finished_.fetch_add(1, std::memory_order_release);
        }
      });
    }
  }
  ~SpinningThreads() override {
    tasks_ = -1;
    started_.fetch_add(1, std::memory_order_release);
    for (std::thread& worker : workers_) worker.join();
  }
  int threads() const override { return threads_; }
  void For(int tasks, absl::FunctionRef<void(int, int)> body) override {
    tasks_ = tasks;
    body_ = &body;
    finished_.store(0, std::memory_order_relaxed);
    started_.fetch_add(1, std::memory_order_release);
    Share(0);
    while (finished_.load(std::memory_order_acquire) != threads_ - 1) {
    }
  }

 private:
  void Share(int thread) {
    const int64_t end = int64_t{tasks_} * (thread + 1) / threads_;
    for (int64_t task = int64_t{tasks_} * thread / threads_; task < end; ++task) {
      (*body_)(static_cast<int>(task), thread);
    }
  }

  const int threads_;
  int tasks_ = 0;
  absl::FunctionRef<void(int, int)>* body_ = nullptr;
  std::atomic<int> started_{0}, finished_{0};
  std::vector<std::thread> workers_;
};

struct Layer {
  const char* name;
  int in_channels, size, out_channels, kernel, stride;
  bool residual;
  int count;  // In the network.
  int groups = 1, dilation = 1;
  const char* activation = "none";
};

// He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, table 1.
constexpr Layer kLayers[] = {
    {"stem", 3, 224, 64, 7, 2, false, 1},
    {"layer1", 64, 56, 64, 3, 1, false, 2},
    {"layer1_residual", 64, 56, 64, 3, 1, true, 2},
    {"layer2_down", 64, 56, 128, 3, 2, false, 1},
    {"layer2_shortcut", 64, 56, 128, 1, 2, false, 1},
    {"layer2", 128, 28, 128, 3, 1, false, 1},
    {"layer2_residual", 128, 28, 128, 3, 1, true, 2},
    {"layer3_down", 128, 28, 256, 3, 2, false, 1},
    {"layer3_shortcut", 128, 28, 256, 1, 2, false, 1},
    {"layer3", 256, 14, 256, 3, 1, false, 1},
    {"layer3_residual", 256, 14, 256, 3, 1, true, 2},
    {"layer4_down", 256, 14, 512, 3, 2, false, 1},
    {"layer4_shortcut", 256, 14, 512, 1, 2, false, 1},
    {"layer4", 512, 7, 512, 3, 1, false, 1},
    {"layer4_residual", 512, 7, 512, 3, 1, true, 2},
};

// Depthwise: MobileNetV2 (Sandler et al., CVPR 2018, table 2), MobileNetV3-Large (Howard et al., ICCV 2019, table 1),
// EfficientNet-B0 (Tan and Le, ICML 2019, table 1). Small ones: MobileNet at a quarter of its width (Howard et al.,
// 2017, table 1), BlazeFace (Bazarevsky et al., 2019, table 4), and channels from a few to a few more than a panel.
// With functions: PP-LCNet (Cui et al., 2021, table 1).
constexpr Layer kDepthwise[] = {
    {"mobilenet_v2_112", 32, 112, 32, 3, 1, false, 1, 32},
    {"mobilenet_v2_112_s2", 96, 112, 96, 3, 2, false, 1, 96},
    {"mobilenet_v2_56", 144, 56, 144, 3, 1, false, 1, 144},
    {"mobilenet_v2_56_s2", 144, 56, 144, 3, 2, false, 1, 144},
    {"mobilenet_v2_28", 192, 28, 192, 3, 1, false, 2, 192},
    {"mobilenet_v2_28_s2", 192, 28, 192, 3, 2, false, 1, 192},
    {"mobilenet_v2_14", 384, 14, 384, 3, 1, false, 4, 384},
    {"mobilenet_v2_14_wide", 576, 14, 576, 3, 1, false, 2, 576},
    {"mobilenet_v2_14_s2", 576, 14, 576, 3, 2, false, 1, 576},
    {"mobilenet_v2_7", 960, 7, 960, 3, 1, false, 3, 960},
    {"mobilenet_v3_56_5x5_s2", 72, 56, 72, 5, 2, false, 1, 72},
    {"mobilenet_v3_28_5x5", 120, 28, 120, 5, 1, false, 2, 120},
    {"mobilenet_v3_7_5x5", 960, 7, 960, 5, 1, false, 2, 960},
    {"efficientnet_b0_56_5x5_s2", 144, 56, 144, 5, 2, false, 1, 144},
    {"efficientnet_b0_28_5x5", 240, 28, 240, 5, 1, false, 1, 240},
    {"efficientnet_b0_14_5x5", 672, 14, 672, 5, 1, false, 2, 672},
    {"efficientnet_b0_14_5x5_s2", 672, 14, 672, 5, 2, false, 1, 672},
    {"efficientnet_b0_7_5x5", 1152, 7, 1152, 5, 1, false, 3, 1152},
    {"mobilenet_quarter_112", 8, 112, 8, 3, 1, false, 1, 8},
    {"blazeface_64_5x5", 24, 64, 24, 5, 1, false, 1, 24},
    {"blazeface_64_5x5_s2", 28, 64, 28, 5, 2, false, 1, 28},
    {"short_56_3", 3, 56, 3, 3, 1, false, 1, 3},
    {"short_56_5", 5, 56, 5, 3, 1, false, 1, 5},
    {"short_56_8_s2", 8, 56, 8, 3, 2, false, 1, 8},
    {"short_56_12", 12, 56, 12, 3, 1, false, 1, 12},
    {"short_56_17", 17, 56, 17, 3, 1, false, 1, 17},
    {"lcnet_112_hardswish", 32, 112, 32, 3, 1, false, 1, 32, 1, "hardswish"},
    {"lcnet_14_5x5_hardswish", 256, 14, 256, 5, 1, false, 5, 256, 1, "hardswish"},
};

// Groups: ResNeXt50 32x4d (Xie et al., CVPR 2017, table 1), RegNetY-400MF (Radosavovic et al., CVPR 2020, table 2),
// DLA-46-X-C (Yu et al., CVPR 2018, table 1); two outputs for each input.
constexpr Layer kGrouped[] = {
    {"resnext50_56_4", 128, 56, 128, 3, 1, false, 3, 32},
    {"resnext50_56_8_s2", 256, 56, 256, 3, 2, false, 1, 32},
    {"resnext50_28_8", 256, 28, 256, 3, 1, false, 3, 32},
    {"resnext50_28_16_s2", 512, 28, 512, 3, 2, false, 1, 32},
    {"resnext50_14_16", 512, 14, 512, 3, 1, false, 5, 32},
    {"resnext50_14_32_s2", 1024, 14, 1024, 3, 2, false, 1, 32},
    {"resnext50_7_32", 1024, 7, 1024, 3, 1, false, 2, 32},
    {"regnet_y_112_8_s2", 48, 112, 48, 3, 2, false, 1, 6},
    {"regnet_y_56_8_s2", 104, 56, 104, 3, 2, false, 1, 13},
    {"regnet_y_28_8", 104, 28, 104, 3, 1, false, 2, 13},
    {"regnet_y_14_8", 208, 14, 208, 3, 1, false, 5, 26},
    {"regnet_y_7_8", 440, 7, 440, 3, 1, false, 5, 55},
    {"dla46_x_c_112_2_s2", 64, 112, 64, 3, 2, false, 1, 32},
    {"dla46_x_c_56_2", 64, 56, 64, 3, 1, false, 1, 32},
    {"multiplier_56_2", 32, 56, 64, 3, 1, false, 1, 32},
    {"regnetz_112_16_s2", 96, 112, 96, 3, 2, false, 1, 6},
    {"regnetz_56_16", 144, 56, 144, 3, 1, false, 1, 9},
    {"regnetx_28_48", 192, 28, 192, 3, 1, false, 5, 4},
    {"regnetz_112_16_s2_silu", 96, 112, 96, 3, 2, false, 1, 6, 1, "silu"},
    {"regnetz_14_16_silu", 576, 14, 576, 3, 1, false, 1, 36, 1, "silu"},
    {"regnetz_56_16_silu", 144, 56, 144, 3, 1, false, 1, 9, 1, "silu"},
};

// Where Winograd's transforms weigh most: those of pixels with few channels, as in SqueezeNet 1.1 (Iandola et al.,
// 2016), GoogLeNet (Szegedy et al., CVPR 2015, table 1) and DenseNet121 (Huang et al., CVPR 2017, table 1), and those
// of weights with many, as in VGG11 (Simonyan and Zisserman, ICLR 2015, table 1). Channels that are no multiple of 32:
// A2N (Chen, Gu and Zhang, 2021).
constexpr Layer kTransforms[] = {
    {"squeezenet_55", 16, 55, 64, 3, 1, false, 2},    {"squeezenet_27", 32, 27, 128, 3, 1, false, 2},
    {"squeezenet_13", 48, 13, 192, 3, 1, false, 2},   {"squeezenet_13_wide", 64, 13, 256, 3, 1, false, 2},
    {"googlenet_28", 16, 28, 32, 3, 1, false, 1},     {"googlenet_28_32", 32, 28, 96, 3, 1, false, 1},
    {"googlenet_28_96", 96, 28, 128, 3, 1, false, 1}, {"googlenet_14_16", 16, 14, 48, 3, 1, false, 1},
    {"googlenet_14_24", 24, 14, 64, 3, 1, false, 1},  {"densenet121_56", 128, 56, 32, 3, 1, false, 6},
    {"densenet121_28", 128, 28, 32, 3, 1, false, 12}, {"densenet121_14", 128, 14, 32, 3, 1, false, 24},
    {"densenet121_7", 128, 7, 32, 3, 1, false, 16},   {"vgg11_28", 512, 28, 512, 3, 1, false, 1},
    {"vgg11_14", 512, 14, 512, 3, 1, false, 2},       {"a2n_64", 40, 64, 40, 3, 1, false, 48},
    {"a2n_64_24", 40, 64, 24, 3, 1, false, 1},        {"a2n_128", 24, 128, 24, 3, 1, false, 1},
};

// Dilated: FCN and DeepLab v3 on ResNet50 (Chen et al., 2017) at 224x224; their heads have so many input channels that
// Winograd divides them. Two groups: ResNeSt (Zhang et al., 2020).
constexpr Layer kDilated[] = {
    {"fcn_28_256", 256, 28, 256, 3, 1, false, 5, 1, 2},   {"fcn_28_512", 512, 28, 512, 3, 1, false, 1, 1, 2},
    {"fcn_28_512_4", 512, 28, 512, 3, 1, false, 2, 1, 4}, {"resnest_56", 64, 56, 128, 3, 1, false, 1, 2},
    {"resnest_28", 256, 28, 512, 3, 1, false, 1, 2},      {"resnest_14", 512, 14, 1024, 3, 1, false, 1, 2},
    {"fcn_28_head", 2048, 28, 512, 3, 1, false, 1},       {"deeplab_28_aspp", 2048, 28, 256, 3, 1, false, 1, 1, 12},
};

// Whose taps mostly lie outside the input: DeepLab v3 on MobileNetV3 (Chen et al., 2017; torchvision) at 224x224 and
// 520x520, and 3x3 kernels on the last maps of small images.
constexpr Layer kOutside[] = {
    {"deeplab_14_12", 960, 14, 256, 3, 1, false, 1, 1, 12},
    {"deeplab_14_24", 960, 14, 256, 3, 1, false, 1, 1, 24},
    {"deeplab_33_12", 960, 33, 256, 3, 1, false, 1, 1, 12},
    {"deeplab_33_24", 960, 33, 256, 3, 1, false, 1, 1, 24},
    {"deeplab_33_36", 960, 33, 256, 3, 1, false, 1, 1, 36},
    {"map_1", 512, 1, 512, 3, 1, false, 1},
    {"map_2", 512, 2, 512, 3, 1, false, 1},
    {"map_3", 256, 3, 256, 3, 1, false, 1},
    {"map_3_narrow", 64, 3, 64, 3, 1, false, 1},
};

// Expansions and projections: of bottlenecks (ResNet50; K. He et al., "Deep Residual Learning for Image Recognition",
// CVPR 2016, table 1), and of inverted residuals, whose depth is short (MobileNetV2, table 2; EfficientNet-B0);
// PP-LCNet's.
constexpr Layer kPointwise[] = {
    {"resnet50_56_reduce", 256, 56, 64, 1, 1, false, 2},
    {"resnet50_56_expand", 64, 56, 256, 1, 1, true, 3},
    {"resnet50_28_reduce", 512, 28, 128, 1, 1, false, 3},
    {"resnet50_28_expand", 128, 28, 512, 1, 1, true, 4},
    {"resnet50_14_reduce", 1024, 14, 256, 1, 1, false, 5},
    {"resnet50_14_expand", 256, 14, 1024, 1, 1, true, 6},
    {"resnet50_7_reduce", 2048, 7, 512, 1, 1, false, 2},
    {"resnet50_7_expand", 512, 7, 2048, 1, 1, true, 3},
    {"mobilenet_v2_112_project", 32, 112, 16, 1, 1, false, 1},
    {"mobilenet_v2_112_expand", 16, 112, 96, 1, 1, false, 1},
    {"mobilenet_v2_56_project", 144, 56, 24, 1, 1, true, 1},
    {"mobilenet_v2_56_expand", 24, 56, 144, 1, 1, false, 2},
    {"mobilenet_v2_28_project", 192, 28, 32, 1, 1, true, 2},
    {"mobilenet_v2_28_expand", 32, 28, 192, 1, 1, false, 3},
    {"mobilenet_v2_14_project", 384, 14, 64, 1, 1, true, 3},
    {"mobilenet_v2_14_expand", 64, 14, 384, 1, 1, false, 4},
    {"efficientnet_b0_56_expand_silu", 24, 56, 144, 1, 1, false, 2, 1, 1, "silu"},
    {"lcnet_112_hardswish", 16, 112, 32, 1, 1, false, 1, 1, 1, "hardswish"},
    {"lcnet_14_hardswish", 256, 14, 256, 1, 1, false, 5, 1, 1, "hardswish"},
    {"lcnet_14_silu", 256, 14, 256, 1, 1, false, 5, 1, 1, "silu"},
    {"lcnet_14", 256, 14, 256, 1, 1, false, 5},
};

// What makes an image, a map or scores of features: the last layers of networks that restore or segment images (ESPCN,
// Shi et al., CVPR 2016; U-Net, Ronneberger et al., 2015), and heads of face detectors (YuNet, Wu et al., 2023).
constexpr Layer kFew[] = {
    {"espcn_image", 32, 224, 3, 3, 1, false, 1},    {"unet_map", 64, 128, 1, 1, 1, false, 1},
    {"unet_classes", 64, 128, 4, 1, 1, false, 1},   {"voc_classes", 64, 128, 8, 1, 1, false, 1},
    {"yunet_score", 64, 40, 1, 1, 1, false, 1},     {"yunet_box", 64, 40, 4, 1, 1, false, 1},
    {"denoiser_image", 64, 128, 1, 3, 1, false, 1}, {"short_3", 16, 64, 3, 1, 1, false, 1},
    {"short_6", 16, 64, 6, 1, 1, false, 1},         {"stem_8", 3, 112, 8, 3, 2, false, 1},
};

// 64-byte aligned.
Tensor Memory(int64_t bytes) { return Tensor(DType::kU8, {bytes}); }
Tensor Memory(const std::vector<uint8_t>& bytes) {
  Tensor memory = Memory(static_cast<int64_t>(bytes.size()));
  if (!bytes.empty()) std::memcpy(memory.raw_data(), bytes.data(), bytes.size());
  return memory;
}

// A layer whose operands lie as in a graph: the input where the variant prefers it; if that is not dense, residual and
// output with the halo that the next layer prefers.
struct Prepared {
  Prepared(const Layer& layer, int batch, int threads, const Variant* variant)
      : instance(CaseOf(layer, batch, threads, variant), 1) {
    kernels::KernelDesc desc = instance.Desc();
    desc.isa = kernels::BestIsa();
    const kernels::Placement placement =
        variant == nullptr ? EntryOf(Variants()).preferred_placement(desc) : PreferredInputPlacement(*variant, desc);
    kernels::Placement halo;
    halo.halo = placement.dense() ? 0 : 1;
    desc.input_placements = {placement, halo};
    desc.output_placement = halo;
    auto made = variant == nullptr ? Create(desc) : CreateVariant(desc, *variant);
    if (!made.ok()) return;
    kernel = std::move(*made);
    input = Memory(Place(instance.input, {desc.input(0).shape, placement}, 0, 0));
    if (desc.has_input(1)) residual = Memory(Place(instance.residual, {desc.input(1).shape, halo}, 0, 0));
    output = Memory(kernels::PlacedBytes(desc.output(), halo));
    scratch = Memory(kernel->scratch_bytes());
  }

  static Case CaseOf(const Layer& layer, int batch, int threads, const Variant* variant) {
    Case c = SquareCase(layer.in_channels, layer.size, layer.out_channels, layer.kernel, layer.stride);
    c.batch = batch;
    c.groups = layer.groups;
    c.dilation_y = c.dilation_x = layer.dilation;
    for (int* side : {&c.top, &c.left, &c.bottom, &c.right}) *side *= layer.dilation;
    c.activation = ParseActivation(layer.activation).value();
    if (layer.residual) c.residual_type = DType::kU8;
    c.threads = threads;
    if (variant != nullptr) c.max_weight = 63;  // Which every variant takes.
    return c;
  }

  void Run(kernels::Parallel* parallel) {
    const absl::Status status = kernel->Run(
        {{input.raw_data(), input.byte_size()},
         {residual.byte_size() == 0 ? nullptr : residual.raw_data(), residual.byte_size()}},
        {{output.raw_data(), output.byte_size()}}, {parallel, {scratch.raw_data(), kernel->scratch_bytes()}});
    FUSELAGE_CHECK(status.ok());
  }

  Instance instance;
  std::unique_ptr<kernels::Kernel> kernel;
  Tensor input, residual, output, scratch;
};

void SetCounters(benchmark::State& state, kernels::Isa isa, int threads, int64_t macs, int64_t bytes) {
  state.SetItemsProcessed(state.iterations() * macs);
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["GMAC/s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * macs) * 1e-9, benchmark::Counter::kIsRate);
  if (const double peak = kernels::PeakMacsPerSecond(isa) * threads; peak > 0) {
    state.counters["peak_%"] =
        benchmark::Counter(static_cast<double>(state.iterations() * macs) / peak * 100, benchmark::Counter::kIsRate);
  }
}

void BenchmarkLayer(benchmark::State& state, const Layer& layer, const Variant* variant, int batch, int threads) {
  Prepared prepared(layer, batch, threads, variant);
  if (prepared.kernel == nullptr) {
    state.SkipWithError("the variant does not support this problem");
    return;
  }
  SpinningThreads parallel(threads);
  for (auto _ : state) prepared.Run(&parallel);
  SetCounters(state, variant->isa, threads, prepared.instance.shape.macs(),
              prepared.input.byte_size() + prepared.output.byte_size() + prepared.kernel->weight_bytes());
}

void BenchmarkNetwork(benchmark::State& state, int batch, int threads) {
  std::vector<std::unique_ptr<Prepared>> network;
  int64_t macs = 0, weights = 0;
  for (const Layer& layer : kLayers) {
    for (int i = 0; i < layer.count; ++i) {
      network.push_back(std::make_unique<Prepared>(layer, batch, threads, nullptr));
      macs += network.back()->instance.shape.macs();
      weights += network.back()->kernel->weight_bytes();
    }
  }
  SpinningThreads parallel(threads);
  for (auto _ : state) {
    for (auto& prepared : network) prepared->Run(&parallel);
  }
  SetCounters(state, kernels::BestIsa(), threads, macs, weights);
  state.counters["weight_MB"] = static_cast<double>(weights) * 1e-6;
}

bool Supported(const Layer& layer, const Variant& variant) {
  return kernels::CpuSupports(variant.isa) && Prepared(layer, 1, 1, &variant).kernel != nullptr;
}

void RegisterLayers(absl::Span<const Layer> layers) {
  for (const Layer& layer : layers) {
    for (const Variant& variant : Variants()) {
      if (!Supported(layer, variant)) continue;
      for (int batch : {1, 16}) {
        for (int threads : {1, 2}) {
          if (variant.isa == kernels::Isa::kScalar && (batch > 1 || threads > 1)) continue;
          benchmark::RegisterBenchmark(
              absl::StrCat(variant.name, "/", layer.name, "/batch:", batch, "/threads:", threads).c_str(),
              [&layer, &variant, batch, threads](benchmark::State& state) {
                BenchmarkLayer(state, layer, &variant, batch, threads);
              })
              ->Unit(benchmark::kMicrosecond)
              ->UseRealTime();
        }
      }
    }
  }
}

void RegisterAll() {
  RegisterLayers(kLayers);
  RegisterLayers(kDepthwise);
  RegisterLayers(kGrouped);
  RegisterLayers(kTransforms);
  RegisterLayers(kDilated);
  RegisterLayers(kOutside);
  RegisterLayers(kPointwise);
  RegisterLayers(kFew);
  for (int batch : {1, 16}) {
    for (int threads : {1, 2}) {
      benchmark::RegisterBenchmark(
          absl::StrCat("resnet18/batch:", batch, "/threads:", threads).c_str(),
          [batch, threads](benchmark::State& state) { BenchmarkNetwork(state, batch, threads); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace fuselage::int8::conv2d

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  fuselage::int8::conv2d::RegisterAll();
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
