#include "kernels/integer/product.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fuselage::integer {
namespace {

constexpr int64_t kBlock = 32;  // Rows that a thread packs at once.

int64_t BlockBytes(const Product& product) { return (kBlock * 2 * product.pairs() * 2 + 63) / 64 * 64; }

}  // namespace

int64_t Product::scratch_bytes(int threads) const { return BlockBytes(*this) * std::max(1, threads); }

void PackPanel(const Product& product, int64_t panel, Element element, int16_t* packed) {
  const int64_t group = panel / product.panels(), first = panel % product.panels() * kPanel;
  int16_t* to = packed + panel * product.pairs() * 2 * kPanel;
  for (int64_t k = 0; k < 2 * product.pairs(); ++k) {
    for (int64_t n = 0; n < kPanel; ++n) {
      const bool inside = k < product.depth && first + n < product.columns;
      to[(k / 2 * kPanel + n) * 2 + k % 2] = inside ? element(group, k, first + n) : int16_t{0};
    }
  }
}

void Multiply(const Product& p, const int16_t* packed_b, PackRows pack_rows, Function* run, int32_t* c, void* scratch,
              kernels::Parallel& parallel) {
  const int64_t blocks = (p.rows + kBlock - 1) / kBlock, pairs = p.pairs(), panels = p.groups * p.panels();
  // Where there are few rows, the threads share the columns.
  const int64_t parts = blocks == 0 ? 1 : std::min<int64_t>(panels, (parallel.threads() + blocks - 1) / blocks);
  parallel.For(static_cast<int>(blocks * parts), [&](int task, int thread) {
    int16_t* a = reinterpret_cast<int16_t*>(static_cast<char*>(scratch) + thread * BlockBytes(p));
    const int64_t row = task / parts * kBlock, part = task % parts, n = std::min(kBlock, p.rows - row);
    int64_t packed_group = -1;
    for (int64_t panel = panels * part / parts; panel < panels * (part + 1) / parts; ++panel) {
      const int64_t group = panel / p.panels(), first = panel % p.panels() * kPanel;
      if (group != packed_group) pack_rows(row, n, group, a);
      packed_group = group;
      const int64_t c_stride = p.groups * p.columns;
      run({a, packed_b + panel * pairs * 2 * kPanel, c + row * c_stride + group * p.columns + first, pairs, c_stride, n,
           static_cast<int>(std::min<int64_t>(kPanel, p.columns - first))});
    }
  });
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
