#include "kernels/integer/product.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fuselage::integer {
namespace {

constexpr int64_t kBlock = 32;  // Rows that a thread packs at once.

int64_t BlockBytes(const Product& product) { return (kBlock * product.steps() * kStepBytes + 63) / 64 * 64; }

struct PanelEnd {
  int32_t shifts[kPanel] = {}, sums[kPanel] = {};
};

template <typename T>
void Pack(const Product& product, int64_t panel, Element element, T* to) {
  const int64_t group = panel / product.panels(), first = panel % product.panels() * kPanel;
  const int64_t per_step = product.per_step(), columns = std::min<int64_t>(kPanel, product.columns - first);
  std::fill_n(to, product.steps() * kPanel * per_step, T{0});
  PanelEnd end;
  std::vector<int16_t> column(product.depth);
  for (int64_t n = 0; n < columns; ++n) {
    for (int64_t k = 0; k < product.depth; ++k) column[k] = element(group, k, first + n);
    if (product.bytes && !column.empty()) {
      const auto [least, greatest] = std::minmax_element(column.begin(), column.end());
      end.shifts[n] = *least < -128 ? -128 - *least : *greatest > 127 ? 127 - *greatest : 0;
    }
    for (int64_t k = 0; k < product.depth; ++k) {
      const T value = static_cast<T>(column[k] + end.shifts[n]);
      to[(k / per_step * kPanel + n) * per_step + k % per_step] = value;
      end.sums[n] += value;
    }
  }
  if (product.bytes) std::memcpy(to + product.steps() * kPanel * per_step, &end, sizeof(end));
}

// Products modulo 2^32.
int32_t Times(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

// sum of zero - a[k], of each row of bytes
void LessRowSums(const Product& p, int32_t zero, const uint8_t* a, int64_t rows, int32_t* sums) {
  const int64_t stride = p.steps() * p.per_step();
  for (int64_t row = 0; row < rows; ++row, a += stride) {
    int32_t sum = 0;
    for (int64_t k = 0; k < stride; ++k) sum += a[k];
    sums[row] = Times(zero, static_cast<int32_t>(p.depth)) - sum;
  }
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
    int32_t row_factors[kBlock];
    int64_t packed_group = -1, summed_group = -1;
    for (int64_t panel = panels * part / parts; panel < panels * (part + 1) / parts; ++panel) {
      const int64_t group = panel / p.panels(), first = panel % p.panels() * kPanel, c_stride = p.groups * p.columns;
      if (group != packed_group) pack_rows(row, n, group, a);
      packed_group = group;
      const char* b = static_cast<const char*>(packed_b) + panel * p.panel_bytes();
      int32_t addend[kPanel] = {};
      Tile tile{a, b, addend};
      PanelEnd end;
      if (p.bytes) {
        // sum (a - zero) * (b - shift) = sum a*b - zero * sum b + shift * sum (zero - a)
        std::memcpy(&end, b + steps * kPanel * kStepBytes, sizeof(end));
        for (int i = 0; i < kPanel; ++i) addend[i] = Times(end.sums[i], -left_zero);
        if (std::any_of(end.shifts, end.shifts + kPanel, [](int32_t shift) { return shift != 0; })) {
          if (group != summed_group) {
            LessRowSums(p, left_zero, reinterpret_cast<const uint8_t*>(a), n, row_factors);
          }
          summed_group = group;
          tile.row_factors = row_factors;
          tile.column_factors = end.shifts;
        }
      }
      tile.c = c + row * c_stride + group * p.columns + first;
      tile.steps = steps;
      tile.c_stride = c_stride;
      tile.rows = n;
      tile.columns = static_cast<int>(std::min<int64_t>(kPanel, p.columns - first));
      run(tile);
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
