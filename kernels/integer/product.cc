#include "kernels/integer/product.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace fuselage::integer {
namespace {

constexpr int64_t kBlock = 32;  // Rows that a thread packs at once.

int64_t BlockBytes(const Product& product) { return (kBlock * product.steps() * kStepBytes + 63) / 64 * 64; }

template <typename T>
void Pack(const Product& product, int64_t panel, Element element, T* to) {
  const int64_t group = panel / product.panels(), first = panel % product.panels() * kPanel;
  const int64_t per_step = product.per_step();
  int32_t sums[kPanel] = {};
  for (int64_t k = 0; k < product.steps() * per_step; ++k) {
    for (int64_t n = 0; n < kPanel; ++n) {
      const bool inside = k < product.depth && first + n < product.columns;
      const T value = inside ? static_cast<T>(element(group, k, first + n)) : T{0};
      to[(k / per_step * kPanel + n) * per_step + k % per_step] = value;
      sums[n] += value;
    }
  }
  if (product.bytes) std::memcpy(to + product.steps() * kPanel * per_step, sums, sizeof(sums));
}

struct Bounds {
  int64_t least, greatest;
};

template <typename Code>
Bounds BoundsOf(const Tensor& codes) {
  const absl::Span<const Code> values = codes.values<Code>();
  if (values.empty()) return {0, 0};
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  return {*least, *greatest};
}

Bounds BoundsOf(const Tensor& codes) {
  return codes.dtype() == DType::kU8 ? BoundsOf<uint8_t>(codes) : BoundsOf<int8_t>(codes);
}

}  // namespace

TensorType Product::packed_type() const {
  return {DType::kI8, {groups * panels() * panel_bytes()}, std::nullopt, Layout::kRowMajor};
}

int64_t Product::scratch_bytes(int threads) const { return BlockBytes(*this) * std::max(1, threads); }

void PackPanel(const Product& product, int64_t panel, Element element, void* packed) {
  char* to = static_cast<char*>(packed) + panel * product.panel_bytes();
  if (product.bytes) {
    Pack(product, panel, element, reinterpret_cast<int8_t*>(to));
  } else {
    Pack(product, panel, element, reinterpret_cast<int16_t*>(to));
  }
}

Left LeftOf(const Product& product, DType dtype, int32_t zero_point) {
  const int32_t less = !product.bytes ? zero_point : dtype == DType::kU8 ? 0 : -128;
  return {less, zero_point - less};
}

void Multiply(const Product& p, const void* packed_b, int32_t left_zero, PackRows pack_rows, Function* run, int32_t* c,
              void* scratch, kernels::Parallel& parallel) {
  const int64_t blocks = (p.rows + kBlock - 1) / kBlock, steps = p.steps(), panels = p.groups * p.panels();
  // Where there are few rows, the threads share the columns.
  const int64_t parts = blocks == 0 ? 1 : std::min<int64_t>(panels, (parallel.threads() + blocks - 1) / blocks);
  parallel.For(static_cast<int>(blocks * parts), [&](int task, int thread) {
    char* a = static_cast<char*>(scratch) + thread * BlockBytes(p);
    const int64_t row = task / parts * kBlock, part = task % parts, n = std::min(kBlock, p.rows - row);
    int64_t packed_group = -1;
    for (int64_t panel = panels * part / parts; panel < panels * (part + 1) / parts; ++panel) {
      const int64_t group = panel / p.panels(), first = panel % p.panels() * kPanel;
      if (group != packed_group) pack_rows(row, n, group, a);
      packed_group = group;
      const char* b = static_cast<const char*>(packed_b) + panel * p.panel_bytes();
      // sum (a - zero) * b = sum a*b - zero * sum b
      int32_t addend[kPanel] = {};
      if (p.bytes) std::memcpy(addend, b + steps * kPanel * kStepBytes, sizeof(addend));
      for (int32_t& sum : addend)
        sum = static_cast<int32_t>(static_cast<uint32_t>(sum) * static_cast<uint32_t>(-left_zero));
      const int64_t c_stride = p.groups * p.columns;
      run({a, b, addend, c + row * c_stride + group * p.columns + first, steps, c_stride, n,
           static_cast<int>(std::min<int64_t>(kPanel, p.columns - first))});
    }
  });
}

bool BytesFit(const Tensor& codes, const Tensor* zero_point) {
  const Bounds values = BoundsOf(codes), zeros = zero_point == nullptr ? Bounds{0, 0} : BoundsOf(*zero_point);
  return values.least - zeros.greatest >= -128 && values.greatest - zeros.least <= 127;
}

int32_t ZeroPoint(const kernels::Kernel& kernel, size_t operand, absl::Span<const kernels::ConstBuffer> inputs,
                  int64_t i) {
  if (operand >= inputs.size() || !kernel.inputs()[operand]) return 0;
  const void* data = inputs[operand].data;
  return kernel.inputs()[operand]->dtype == DType::kU8 ? static_cast<const uint8_t*>(data)[i]
                                                       : static_cast<const int8_t*>(data)[i];
}

std::string TextOf(const Tensor* zero_point) {
  std::string text;
  for (int64_t i = 0; zero_point != nullptr && i < zero_point->num_elements(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", zero_point->At(i));
  }
  return text;
}

}  // namespace fuselage::integer
