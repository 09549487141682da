// The scalar variant against exact integers and doubles, and every variant against the scalar one, byte for byte.
#include "kernels/int8/conv2d/conv2d.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/int8/conv2d/testing.h"
#include "kernels/int8/conv2d/variants.h"

namespace fuselage::int8::conv2d {
namespace {

using kernels::Kernel;
using kernels::KernelDesc;

// One thread per share of the tasks, started for each call: slow, and enough to show a race.
class Threads : public kernels::Parallel {
 public:
  explicit Threads(int threads) : threads_(threads) {}
  int threads() const override { return threads_; }
  void For(int tasks, absl::FunctionRef<void(int, int)> body) override {
    const auto share = [&](int thread) {
      const int64_t begin = int64_t{tasks} * thread / threads_, end = int64_t{tasks} * (thread + 1) / threads_;
      for (int64_t task = begin; task < end; ++task) body(static_cast<int>(task), thread);
    };
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads_; ++thread) others.emplace_back(share, thread);
    share(0);
    for (std::thread& other : others) other.join();
  }

 private:
  int threads_;
};

// Memory whose last byte is followed by an unreadable page: reading past the end faults.
class GuardedMemory {
 public:
  explicit GuardedMemory(const std::vector<uint8_t>& bytes) : bytes_(static_cast<int64_t>(bytes.size())) {
    const size_t page = sysconf(_SC_PAGESIZE);
    size_ = (bytes.size() + page - 1) / page * page + page;
    base_ = static_cast<uint8_t*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    FUSELAGE_CHECK(base_ != MAP_FAILED);
    FUSELAGE_CHECK(mprotect(base_ + size_ - page, page, PROT_NONE) == 0);
    data_ = base_ + size_ - page - bytes.size();
    if (!bytes.empty()) std::memcpy(data_, bytes.data(), bytes.size());
  }
  ~GuardedMemory() { munmap(base_, size_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  const uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  uint8_t* base_;
  uint8_t* data_;
  size_t size_;
  int64_t bytes_;
};

constexpr int kGuard = 128;
constexpr uint8_t kGuardByte = 0xa5;

// What a reader of a placed output relies on.
void ExpectHalo(const std::vector<uint8_t>& found, const std::vector<uint8_t>& dense,
                const kernels::PlacedTensor& placed, uint8_t padding) {
  const std::vector<uint8_t> a = Place(dense, placed, padding, 0), b = Place(dense, placed, padding, 1);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) {
      ASSERT_EQ(found[i], a[i]) << "at byte " << i << " of " << PlacementText(placed.placement);
    }
  }
}

// The output's codes, dense. Output and scratch have guard bytes on both sides, operands end at an unreadable page.
std::vector<uint8_t> Run(const Kernel& kernel, const Instance& instance) {
  const auto guarded = [](int64_t bytes) { return std::vector<uint8_t>(bytes + 2 * kGuard + 64, kGuardByte); };
  const auto aligned = [](std::vector<uint8_t>& memory) {
    return memory.data() + kGuard + (64 - (reinterpret_cast<uintptr_t>(memory.data()) + kGuard) % 64) % 64;
  };
  const auto guards_intact = [](const std::vector<uint8_t>& memory, const uint8_t* begin, int64_t bytes) {
    const auto is_guard = [](uint8_t byte) { return byte == kGuardByte; };
    return std::all_of(memory.data(), begin, is_guard) &&
           std::all_of(begin + bytes, memory.data() + memory.size(), is_guard);
  };
  const Case& c = instance.shape;
  const auto placed = [](const TensorType& type, const kernels::Placement& placement) {
    return kernels::PlacedTensor(type.shape, placement);
  };
  const GuardedMemory input(Place(instance.input, placed(*kernel.inputs()[0], c.input_placement),
                                  static_cast<uint8_t>(c.input_zero_point), 0x5b));
  std::vector<uint8_t> residual_codes;
  if (c.residual_type) {
    residual_codes = Place(instance.residual, placed(*kernel.inputs()[1], c.residual_placement),
                           static_cast<uint8_t>(c.residual_zero_point), 0x5b);
  }
  const GuardedMemory residual(residual_codes);
  const TensorType& type = kernel.outputs()[0];
  const int64_t bytes = kernels::PlacedBytes(type, c.output_placement);
  std::vector<uint8_t> output = guarded(bytes), scratch = guarded(kernel.scratch_bytes());
  uint8_t* out = aligned(output);
  uint8_t* temporary = aligned(scratch);
  Threads threads(c.threads);
  const absl::Status status =
      kernel.Run({{input.data(), input.bytes()}, {residual.bytes() == 0 ? nullptr : residual.data(), residual.bytes()}},
                 {{out, bytes}}, {&threads, {temporary, kernel.scratch_bytes()}});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(guards_intact(output, out, bytes)) << kernel.variant() << " writes outside its output";
  EXPECT_TRUE(guards_intact(scratch, temporary, kernel.scratch_bytes())) << kernel.variant() << " overruns its scratch";
  const std::vector<uint8_t> found(out, out + bytes);
  if (c.output_placement.dense()) return found;
  const kernels::PlacedTensor to = placed(type, c.output_placement);
  std::vector<uint8_t> dense;
  for (int64_t n = 0; n < to.batch; ++n) {
    for (int64_t y = 0; y < to.height; ++y) {
      for (int64_t x = 0; x < to.width; ++x) {
        const uint8_t* pixel = found.data() + to.Offset(n, y, x);
        dense.insert(dense.end(), pixel, pixel + to.channels);
      }
    }
  }
  ExpectHalo(found, dense, to, static_cast<uint8_t>(c.output_zero_point));
  return dense;
}

const Variant& Scalar() { return Variants().back(); }

std::vector<uint8_t> RunVariant(const Variant& variant, const Instance& instance) {
  auto kernel = CreateVariant(instance.Desc(), variant);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? Run(**kernel, instance) : std::vector<uint8_t>();
}

// The AVX-512 VNNI and AMX sources, emulated: the test of machines without them.
constexpr Variant kEmulated[] = {
    {/*name=*/"amx_emulated", /*isa=*/kernels::Isa::kScalar, /*supports=*/TiledSupports,
     /*worthwhile=*/[](const Problem&) { return true; },
     /*make=*/[](const Problem& problem) { return MakeTiled(problem, TiledAmxEmulated()); }, /*wish=*/TiledWish},
    {/*name=*/"avx512_vnni_emulated", /*isa=*/kernels::Isa::kAvx2, /*supports=*/DirectSupports,
     /*worthwhile=*/[](const Problem&) { return true; },
     /*make=*/[](const Problem& problem) { return MakeDirect(problem, DirectAvx512VnniEmulated()); }},
    {/*name=*/"avx512_vnni_emulated winograd", /*isa=*/kernels::Isa::kAvx2, /*supports=*/WinogradSupports,
     /*worthwhile=*/[](const Problem&) { return true; },
     /*make=*/[](const Problem& problem) { return MakeWinograd(problem, WinogradAvx512VnniEmulated()); }}};

// What this machine can run.
std::vector<const Variant*> VectorVariants() {
  std::vector<const Variant*> result;
  for (const Variant& variant : Variants()) {
    if (kernels::CpuSupports(variant.isa) && &variant != &Scalar()) result.push_back(&variant);
  }
  for (const Variant& variant : kEmulated) {
    if (kernels::CpuSupports(variant.isa)) result.push_back(&variant);
  }
  return result;
}

// Every variant that supports the case equals the scalar one. Counts the cases of each variant in `ran`.
void ExpectVariantsEqual(const Case& c, uint64_t seed, std::map<std::string, int>* ran) {
  if (!c.valid()) return;
  Case dense = c;
  dense.input_placement = dense.residual_placement = dense.output_placement = kernels::Placement();
  const std::vector<uint8_t> wanted = RunVariant(Scalar(), Instance(dense, seed));
  const Instance instance(c, seed);
  for (const Variant* variant : VectorVariants()) {
    auto kernel = CreateVariant(instance.Desc(), *variant);
    if (kernel.status().code() == absl::StatusCode::kFailedPrecondition) continue;
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    ASSERT_TRUE(Run(**kernel, instance) == wanted) << variant->name << " differs: " << c.ToString();
    ++(*ran)[variant->name];
  }
}

// Every variant that this machine runs has had at least `count` cases, the specialized ones a tenth of that.
void ExpectRan(const std::map<std::string, int>& ran, int count) {
  for (const Variant* variant : VectorVariants()) {
    const auto it = ran.find(variant->name);
    ASSERT_NE(it, ran.end()) << variant->name;
    EXPECT_GE(it->second, absl::string_view(variant->name).find(' ') == absl::string_view::npos ? count : count / 10)
        << variant->name;
  }
}

// A code as its value.
int Value(DType dtype, uint8_t bits) { return dtype == DType::kU8 ? bits : static_cast<int8_t>(bits); }

// sum (x - z_x) * w over logical NCHW indices, exactly: padding simply does not contribute.
int64_t ExactSum(const Instance& instance, int n, int oc, int oy, int ox) {
  const Case& c = instance.shape;
  const int channels = c.in_channels / c.groups, group = oc / (c.out_channels / c.groups);
  int64_t sum = 0;
  for (int ic = 0; ic < channels; ++ic) {
    for (int ky = 0; ky < c.kernel_height; ++ky) {
      for (int kx = 0; kx < c.kernel_width; ++kx) {
        const int y = oy * c.stride_y - c.top + ky * c.dilation_y, x = ox * c.stride_x - c.left + kx * c.dilation_x;
        if (y < 0 || y >= c.height || x < 0 || x >= c.width) continue;
        const uint8_t bits =
            instance.input[((int64_t{n} * c.height + y) * c.width + x) * c.in_channels + group * channels + ic];
        const int64_t tap = ((int64_t{oc} * channels + ic) * c.kernel_height + ky) * c.kernel_width + kx;
        const int8_t w = instance.weight.data<int8_t>()[tap];
        sum += int64_t{Value(c.input_type, bits) - c.input_zero_point} * w;
      }
    }
  }
  return sum;
}

// The result by arithmetic.md's formulas, and how far the codes are from the real result computed in double.
void ExpectScalarExact(const Case& c, uint64_t seed) {
  const Instance instance(c, seed);
  const std::vector<uint8_t> out = RunVariant(Scalar(), instance);
  const QuantParams& weight_quant = *instance.weight.type().quant;
  int64_t index = 0;
  for (int n = 0; n < c.batch; ++n) {
    for (int y = 0; y < c.out_height(); ++y) {
      for (int x = 0; x < c.out_width(); ++x) {
        for (int oc = 0; oc < c.out_channels; ++oc, ++index) {
          const float step = instance.input_scale * weight_quant.scales[c.per_channel ? oc : 0];
          const int64_t sum = ExactSum(instance, n, oc, y, x);
          const double real_bias = c.bias == DType::kBool  ? 0.0
                                   : c.bias == DType::kF32 ? instance.bias.data<float>()[oc]
                                                           : instance.bias.data<int32_t>()[oc] * double{step};
          if (c.output_type == DType::kF32) {
            float found;
            std::memcpy(&found, out.data() + index * sizeof(float), sizeof(float));
            float wanted = std::fma(static_cast<float>(sum), step, static_cast<float>(real_bias));
            if (c.relu && wanted < 0) wanted = 0;
            ASSERT_EQ(found, wanted) << c.ToString() << " at " << index;
            continue;
          }
          const int found = Value(c.output_type, out[index]);
          const int64_t bias = c.bias == DType::kI32 ? instance.bias.data<int32_t>()[oc]
                               : c.bias == DType::kF32
                                   ? static_cast<int64_t>(std::nearbyint(instance.bias.data<float>()[oc] / step))
                                   : 0;
          float v = static_cast<float>(sum + bias) * (step / instance.output_scale);
          double real = sum * double{step} + real_bias;
          if (c.residual_type) {
            const int r = Value(*c.residual_type, instance.residual[index]) - c.residual_zero_point;
            v = std::fma(static_cast<float>(r), instance.residual_scale / instance.output_scale, v);
            real += r * double{instance.residual_scale};
          }
          const IntegerRange range = RangeOf(c.output_type);
          const int64_t lo = c.relu ? std::max<int64_t>(range.min, c.output_zero_point) : range.min;
          const int64_t wanted =
              std::min(std::max(static_cast<int64_t>(std::nearbyint(v)) + c.output_zero_point, lo), range.max);
          ASSERT_EQ(found, wanted) << c.ToString() << " at " << index;
          const double ideal =
              std::min<double>(std::max<double>(real / instance.output_scale + c.output_zero_point, lo), range.max);
          // Half a step of rounding, and the bias's own rounding to steps of s_x*s_w.
          ASSERT_NEAR(found, ideal, 0.501 + 0.51 * step / instance.output_scale) << c.ToString() << " at " << index;
        }
      }
    }
  }
}

// A pseudo-random case: all the dimensions of the problem vary together.
Case RandomCase(uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 0x1234567;
  const auto pick = [&](int count) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state >> 33) % count);
  };
  const DType codes[] = {DType::kU8, DType::kI8};
  const auto zero_point = [&](DType dtype) {
    const int lo = dtype == DType::kU8 ? 0 : -128;
    const int choices[] = {lo, lo + 255, lo + 128, lo + 3};
    return choices[pick(4)];
  };
  Case c;
  c.batch = 1 + pick(6) / 4 + pick(6) / 5;
  c.groups = pick(4) == 0 ? 2 + pick(3) : 1;
  const int kinds = pick(8);
  c.in_channels = c.groups * (kinds == 0 ? 1 : 1 + pick(c.groups > 1 ? 20 : 40));
  c.out_channels = c.groups * (1 + pick(c.groups > 1 ? 20 : 70));
  if (pick(8) == 0) {
    c.groups = c.in_channels = c.out_channels = 1 + pick(50);
    if (pick(4) == 0) c.out_channels *= 2;
  }
  c.height = 1 + pick(14);
  c.width = 1 + pick(20);
  const int kernels[] = {1, 2, 3, 3, 3, 5, 7};
  c.kernel_height = kernels[pick(7)];
  c.kernel_width = pick(3) == 0 ? kernels[pick(7)] : c.kernel_height;
  c.stride_y = 1 + pick(5) / 2;
  c.stride_x = pick(4) == 0 ? 1 + pick(3) : c.stride_y;
  c.top = pick(c.kernel_height + 1);
  c.left = pick(c.kernel_width + 1);
  c.bottom = pick(c.kernel_height + 1);
  c.right = pick(c.kernel_width + 1);
  c.dilation_y = 1 + pick(6) / 4;
  c.dilation_x = 1 + pick(6) / 4;
  if (pick(6) == 0) {  // What Winograd takes.
    c.groups = 1;
    c.kernel_height = c.kernel_width = 3;
    c.stride_y = c.stride_x = c.dilation_y = c.dilation_x = 1;
  }
  c.relu = pick(2) == 0;
  c.per_channel = pick(4) != 0;
  const DType biases[] = {DType::kF32, DType::kI32, DType::kBool};
  c.bias = biases[pick(3)];
  c.input_type = codes[pick(2)];
  c.input_zero_point = zero_point(c.input_type);
  c.output_type = pick(6) == 0 ? DType::kF32 : codes[pick(2)];
  if (c.output_type != DType::kF32) {
    c.output_zero_point = zero_point(c.output_type);
    if (pick(3) == 0) {
      c.residual_type = codes[pick(2)];
      c.residual_zero_point = zero_point(*c.residual_type);
    }
  }
  const Fill fills[] = {Fill::kRandom, Fill::kRandom, Fill::kRandom, Fill::kSaturated, Fill::kAlternating};
  c.fill = fills[pick(5)];
  c.threads = 1 + (pick(8) == 0 ? 1 + pick(2) : 0);
  return c;
}

TEST(Conv2dTest, ScalarEqualsExactArithmetic) {
  int ran = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Case c = RandomCase(seed);
    if (!c.valid()) continue;
    ExpectScalarExact(c, seed);
    if (HasFatalFailure()) return;
    ++ran;
  }
  EXPECT_GT(ran, 200);
}

TEST(Conv2dTest, VariantsEqualScalarOnRandomShapes) {
  std::map<std::string, int> ran;
  for (uint64_t seed = 1000; seed < 3000; ++seed) {
    ExpectVariantsEqual(RandomCase(seed), seed, &ran);
    if (HasFailure()) return;
  }
  ExpectRan(ran, 1200);
}

// Placements that suit the case or do not: what a variant cannot read in place it copies or declines.
void PlaceAtRandom(uint64_t seed, Case* c) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 99;
  const auto pick = [&](int count) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state >> 33) % count);
  };
  const auto any = [&](int channels) {
    kernels::Placement placement;
    const kernels::Blocking blockings[] = {kernels::Blocking::kNone, kernels::Blocking::kNone,
                                           kernels::Blocking::kPhasePlanes, kernels::Blocking::kSpaceToDepth};
    placement.blocking = blockings[pick(4)];
    placement.halo = pick(4);
    const int codes = placement.blocking == kernels::Blocking::kSpaceToDepth ? 4 * channels : channels;
    if (pick(3) == 0) placement.pixel_bytes = codes + pick(20);
    return placement;
  };
  if (pick(3) != 0) c->input_placement = any(c->in_channels);
  if (pick(3) == 0) c->input_placement = WishedPlacement(Instance(*c, seed).Desc(), kEmulated[0]);
  if (c->residual_type && pick(2) == 0) c->residual_placement = any(c->out_channels);
  if (c->output_type != DType::kF32 && pick(3) != 0) c->output_placement = any(c->out_channels);
}

TEST(Conv2dTest, VariantsEqualScalarOnPlacedOperands) {
  std::map<std::string, int> ran;
  for (uint64_t seed = 5000; seed < 6500; ++seed) {
    Case c = RandomCase(seed);
    if (!c.valid()) continue;
    PlaceAtRandom(seed, &c);
    ExpectVariantsEqual(c, seed, &ran);
    if (HasFailure()) return;
  }
  ExpectRan(ran, 300);
}

TEST(Conv2dTest, EveryKernelStrideDilationAndPadding) {
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (int kernel : {1, 2, 3, 5, 7}) {
    for (int stride = 1; stride <= 3; ++stride) {
      for (int dilation = 1; dilation <= 2; ++dilation) {
        for (int pad = 0; pad <= 3; ++pad) {
          for (int groups : {1, 3}) {
            Case c;
            c.in_channels = 6, c.out_channels = 18, c.height = 9, c.width = 11;
            c.kernel_height = c.kernel_width = kernel;
            c.stride_y = c.stride_x = stride;
            c.dilation_y = c.dilation_x = dilation;
            c.top = pad, c.left = pad / 2, c.bottom = (pad + 1) / 2, c.right = pad;
            c.groups = groups;
            c.input_zero_point = 255;
            c.output_zero_point = 7;
            ExpectVariantsEqual(c, ++seed, &ran);
          }
        }
      }
    }
  }
}

TEST(Conv2dTest, EveryChannelCountAndWidth) {
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (int channels = 1; channels <= 40; ++channels) {
    for (int kernel : {1, 3}) {
      for (bool depthwise : {false, true}) {
        Case c;
        c.in_channels = channels, c.out_channels = depthwise ? channels : 41 - channels;
        c.groups = depthwise ? channels : 1;
        c.height = 6, c.width = 7;
        c.kernel_height = c.kernel_width = kernel;
        c.input_zero_point = 128;
        c.relu = true;
        c.residual_type = channels % 2 ? DType::kU8 : DType::kI8;
        ExpectVariantsEqual(c, ++seed, &ran);
      }
    }
  }
  for (int width = 1; width <= 34; ++width) {
    for (int stride = 1; stride <= 2; ++stride) {
      Case c;
      c.in_channels = 16, c.out_channels = 32, c.height = 5, c.width = width;
      c.stride_y = c.stride_x = stride;
      ExpectVariantsEqual(c, ++seed, &ran);
    }
  }
}

// The proof in conv2d_winograd.cc holds up to sum|w| < 2^18, and at the last channel count below it the extreme values
// still come out right.
TEST(Conv2dTest, WinogradUpToItsBound) {
  const auto it = std::find_if(Variants().begin(), Variants().end(),
                               [](const Variant& v) { return absl::string_view(v.name) == "avx2 winograd"; });
  ASSERT_NE(it, Variants().end());
  std::map<std::string, int> ran;
  for (const Fill fill : {Fill::kSaturated, Fill::kAlternating}) {
    Case c;
    c.in_channels = 227, c.height = c.width = 5;
    c.fill = fill;
    for (const DType type : {DType::kU8, DType::kI8}) {
      c.input_type = type;
      ExpectVariantsEqual(c, 1, &ran);
    }
    EXPECT_TRUE(CreateVariant(Instance(c, 1).Desc(), *it).ok());
    c.in_channels = 230;
    EXPECT_EQ(CreateVariant(Instance(c, 1).Desc(), *it).status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

// The layers of ResNet18 with fewer channels where that does not change the path, on one, two and three threads.
TEST(Conv2dTest, NetworkShapesOnSeveralThreads) {
  struct Layer {
    int ic, size, oc, kernel, stride, pad;
  };
  const Layer layers[] = {{3, 64, 64, 7, 2, 3},  {64, 20, 64, 3, 1, 1},  {64, 20, 48, 3, 2, 1}, {32, 28, 64, 1, 2, 0},
                          {96, 14, 80, 3, 1, 1}, {256, 7, 128, 3, 1, 1}, {512, 7, 64, 3, 1, 1}, {256, 8, 64, 3, 2, 1}};
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (const Layer& layer : layers) {
    for (int threads = 1; threads <= 3; ++threads) {
      for (int batch : {1, 3}) {
        if (batch > 1 && threads == 1) continue;
        Case c;
        c.batch = batch;
        c.in_channels = layer.ic, c.out_channels = layer.oc, c.height = c.width = layer.size;
        c.kernel_height = c.kernel_width = layer.kernel;
        c.stride_y = c.stride_x = layer.stride;
        c.top = c.left = c.bottom = c.right = layer.pad;
        c.threads = threads;
        c.relu = true;
        if (layer.stride == 1) c.residual_type = DType::kU8;
        ExpectVariantsEqual(c, ++seed, &ran);
      }
    }
  }
}

// A layer of ResNet18 (He et al., CVPR 2016, table 1).
Case Layer(int in_channels, int size, int out_channels, int kernel, int stride) {
  Case c;
  c.in_channels = in_channels, c.out_channels = out_channels, c.height = c.width = size;
  c.kernel_height = c.kernel_width = kernel;
  c.stride_y = c.stride_x = stride;
  c.top = c.left = c.bottom = c.right = kernel / 2;
  c.relu = true;
  return c;
}

const Case kResNet18[] = {Layer(3, 224, 64, 7, 2),   Layer(64, 56, 64, 3, 1),   Layer(64, 56, 128, 3, 2),
                          Layer(64, 56, 128, 1, 2),  Layer(128, 28, 128, 3, 1), Layer(128, 28, 256, 3, 2),
                          Layer(128, 28, 256, 1, 2), Layer(256, 14, 256, 3, 1), Layer(256, 14, 512, 3, 2),
                          Layer(256, 14, 512, 1, 2), Layer(512, 7, 512, 3, 1)};

TEST(Conv2dTest, ResNet18InItsPlacements) {
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (Case c : kResNet18) {
    c.threads = 2;
    c.input_placement = WishedPlacement(Instance(c, seed).Desc(), kEmulated[0]);
    c.output_placement.halo = 1;
    if (c.in_channels == c.out_channels) c.residual_type = DType::kU8;
    ExpectVariantsEqual(c, ++seed, &ran);
  }
  EXPECT_EQ(ran["amx_emulated"], 11);
}

// Images and tiles in several parts, for the caches and the threads.
TEST(Conv2dTest, LargeBatchesAndImages) {
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (const int batch : {7, 20, 64}) {
    for (const int threads : {1, 3}) {
      Case c = batch == 64 ? Layer(16, 6, 20, 3, 1) : batch == 20 ? Layer(64, 40, 8, 3, 1) : Layer(512, 5, 160, 3, 1);
      c.batch = batch;
      c.threads = threads;
      c.residual_type = DType::kI8;
      ExpectVariantsEqual(c, ++seed, &ran);
      c.input_placement.halo = c.residual_placement.halo = c.output_placement.halo = 1;
      ExpectVariantsEqual(c, ++seed, &ran);
    }
  }
  ExpectVariantsEqual(Layer(64, 125, 4, 3, 1), ++seed, &ran);
  EXPECT_EQ(ran["amx_emulated"], 13);
}

TEST(Conv2dTest, TilesWishForAHaloThatIsThere) {
  const auto wish = [](const Case& c) { return PlacementText(WishedPlacement(Instance(c, 1).Desc(), kEmulated[0])); };
  EXPECT_EQ(wish(Layer(3, 224, 64, 7, 2)), "space to depth, halo 2, 16 bytes a pixel");
  EXPECT_EQ(wish(Layer(64, 56, 64, 3, 1)), "halo 1");
  EXPECT_EQ(wish(Layer(64, 56, 128, 3, 2)), "phase planes, halo 1");
  EXPECT_EQ(wish(Layer(64, 56, 128, 1, 2)), "phase planes, halo 1");
  EXPECT_EQ(wish(Layer(512, 7, 512, 3, 1)), "halo 1, 576 bytes a pixel");
  EXPECT_EQ(wish(Layer(512, 7, 512, 1, 1)), "dense");
  EXPECT_EQ(wish(Layer(24, 7, 512, 1, 1)), "24 bytes a pixel");
  Case wide = Layer(16, 8, 16, 3, 1);
  wide.top = wide.bottom = 100;
  EXPECT_EQ(CreateVariant(Instance(wide, 1).Desc(), kEmulated[0]).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Conv2dTest, TakesPlacementsThatCostItNothing) {
  kernels::KernelRegistry registry;
  Register(registry);
  const kernels::KernelEntry* entry = registry.FindOrNull("int8.conv2d");
  Case c = Layer(64, 8, 64, 3, 1);
  const auto places = [&] {
    const Instance instance(c, 1);
    KernelDesc desc = instance.Desc();
    desc.isa = kernels::Isa::kAvx2;
    return entry->places(desc);
  };
  EXPECT_TRUE(places());
  c.input_placement.halo = c.output_placement.halo = 1;
  EXPECT_TRUE(places());
  c.output_placement.blocking = kernels::Blocking::kPhasePlanes;
  EXPECT_FALSE(places());  // Only the scalar variant would.
  const Instance instance(c, 1);
  KernelDesc desc = instance.Desc();
  desc.isa = kernels::Isa::kAvx2;
  EXPECT_TRUE(entry->wished_placement(desc).dense());
}

TEST(Conv2dTest, VariantsThatThisMachineCannotRun) {
  for (const Variant& variant : Variants()) {
    if (kernels::CpuSupports(variant.isa)) continue;
    std::cout << "SKIPPED natively: variant \"" << variant.name << "\" needs " << kernels::IsaName(variant.isa)
              << ", which this CPU lacks\n";
  }
  EXPECT_EQ(Scalar().isa, kernels::Isa::kScalar);
  EXPECT_STREQ(Scalar().name, "scalar");
}

TEST(Conv2dTest, CreateObeysTheInstructionSet) {
  const Instance instance(Case(), 1);
  for (kernels::Isa isa : {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512Vnni, kernels::Isa::kAmx}) {
    KernelDesc desc = instance.Desc();
    desc.isa = isa;
    auto kernel = Create(desc);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const std::string chosen = (*kernel)->variant();
    const auto it =
        std::find_if(Variants().begin(), Variants().end(), [&](const Variant& v) { return v.name == chosen; });
    ASSERT_NE(it, Variants().end());
    EXPECT_LE(it->isa, isa);
    EXPECT_TRUE(kernels::CpuSupports(it->isa));
    EXPECT_EQ((*kernel)->macs(), 8 * 8 * 16 * 16 * 9);
    EXPECT_GE((*kernel)->weight_bytes(), 16 * 16 * 9);
    EXPECT_EQ((*kernel)->output_scale(), instance.output_scale);
  }
}

TEST(Conv2dTest, DeclinesWhatIsWrong) {
  const Instance instance(Case(), 1);
  const auto code = [&](auto edit) {
    KernelDesc desc = instance.Desc();
    edit(desc);
    return Create(desc).status().code();
  };
  EXPECT_EQ(code([](KernelDesc&) {}), absl::StatusCode::kOk);
  EXPECT_EQ(code([](KernelDesc& d) { d.outputs[0].shape[2] = 9; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) { d.attributes.at("groups") = 3; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) { d.attributes.at("groups") = 0; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.attributes.at("stride") = std::vector<int64_t>{0, 1};
            }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.attributes.at("padding") = std::vector<int64_t>{1, 1};
            }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.attributes.at("dilation") = std::vector<int64_t>{1LL << 40, 1};
            }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.attributes.at("dilation") = std::vector<int64_t>{9, 9};
            }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) { d.attributes.at("activation") = "gelu"; }), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code([](KernelDesc& d) { d.inputs[0]->quant.reset(); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) { d.inputs[0]->dtype = DType::kF32; }), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code([](KernelDesc& d) { d.parameters.erase("weight"); }), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.inputs[1] = d.outputs[0];
              d.inputs[1]->shape[1] = 3;
            }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.inputs[1] = d.outputs[0];
              d.outputs[0].dtype = DType::kF32;
            }),
            absl::StatusCode::kUnimplemented);
}

TEST(Conv2dTest, RegistersOnce) {
  kernels::KernelRegistry registry;
  Register(registry);
  ASSERT_NE(registry.FindOrNull("int8.conv2d"), nullptr);
  EXPECT_EQ(registry.FindQuantizedFormOrNull("conv2d"), registry.FindOrNull("int8.conv2d"));
}

}  // namespace
}  // namespace fuselage::int8::conv2d
