#include "kernels/int8/conv2d/testing/compare.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/conv2d/testing/emulated.h"

namespace fuselage::int8::conv2d {
namespace {

using kernels::Kernel;

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

// What readers of a placed output rely on, and those of what lies between its pixels.
void ExpectPlaced(const std::vector<uint8_t>& found, const std::vector<uint8_t>& dense,
                  const kernels::PlacedTensor& placed, uint8_t padding) {
  const std::vector<uint8_t> a = Place(dense, placed, padding, 0), b = Place(dense, placed, padding, 1);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) {
      ASSERT_EQ(found[i], a[i]) << "at byte " << i << " of " << PlacementText(placed.placement);
    } else if (placed.placement.even()) {
      ASSERT_EQ(found[i], kGuardByte) << "between the pixels, at byte " << i;
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
  uint8_t* out = aligned(output) + (c.output_placement.dense() || !c.output_placement.even() ? 0 : 5);
  uint8_t* temporary = aligned(scratch);
  kernels::TestThreads threads(c.threads);
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
  ExpectPlaced(found, dense, to, static_cast<uint8_t>(c.output_zero_point));
  return dense;
}

// What this machine can run.
std::vector<const Variant*> VectorVariants() {
  std::vector<const Variant*> result;
  for (const Variant& variant : Variants()) {
    if (kernels::CpuSupports(variant.isa) && &variant != &Scalar()) result.push_back(&variant);
  }
  for (const Variant& variant : EmulatedVariants()) {
    if (kernels::CpuSupports(variant.isa)) result.push_back(&variant);
  }
  return result;
}

}  // namespace

const Variant& Scalar() { return Variants().front(); }

const Variant& EmulatedAmx() { return EmulatedVariants().back(); }

std::vector<uint8_t> RunVariant(const Variant& variant, const Instance& instance) {
  auto kernel = CreateVariant(instance.Desc(), variant);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? Run(**kernel, instance) : std::vector<uint8_t>();
}

void ExpectVariantsEqual(const Case& c, uint64_t seed, std::map<std::string, int>* ran) {
  if (!c.valid()) return;
  Case dense = c;
  dense.input_placement = dense.residual_placement = dense.output_placement = kernels::Placement();
  const std::vector<uint8_t> wanted = RunVariant(Scalar(), Instance(dense, seed));
  const Instance instance(c, seed);
  for (const Variant* variant : VectorVariants()) {
    if (!Supports(*variant, instance.Desc())) continue;
    auto kernel = CreateVariant(instance.Desc(), *variant);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    ASSERT_TRUE(Run(**kernel, instance) == wanted) << variant->name << " differs: " << c.ToString();
    ++(*ran)[variant->name];
  }
}

void ExpectRan(const std::map<std::string, int>& ran, int count) {
  for (const Variant* variant : VectorVariants()) {
    const auto it = ran.find(variant->name);
    ASSERT_NE(it, ran.end()) << variant->name;
    EXPECT_GE(it->second, absl::string_view(variant->name).find(' ') == absl::string_view::npos ? count : count / 10)
        << variant->name;
  }
}

Case RandomCase(uint64_t seed) {
  Picker pick(seed);
  Case c;
  c.batch = 1 + pick(6) / 4 + pick(6) / 5;
  c.groups = pick(4) == 0 ? 2 + pick(3) : 1;
  const int kinds = pick(8);
  c.in_channels = c.groups * (kinds == 0 ? 1 : 1 + pick(c.groups > 1 ? 20 : 40));
  c.out_channels = c.groups * (1 + pick(c.groups > 1 ? 20 : kinds == 1 ? 8 : 70));
  if (pick(6) == 0) {
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
  if (pick(3) == 0) {  // Small groups.
    const int channels = 4 << pick(3);
    c.groups = 2 + pick(10);
    c.in_channels = c.out_channels = c.groups * channels;
  }
  if (pick(6) == 0) {  // What Winograd takes.
    c.groups = 1 + pick(3);
    c.in_channels = c.groups * 2 * (1 + pick(20));
    c.out_channels = c.groups == 1 ? 1 + pick(70) : c.groups * 16 * (1 + pick(3));
    c.kernel_height = c.kernel_width = 3;
    c.stride_y = c.stride_x = 1;
  }
  PickOperands(pick, &c);
  c.threads = 1 + (pick(8) == 0 ? 1 + pick(2) : 0);
  return c;
}

}  // namespace fuselage::int8::conv2d
