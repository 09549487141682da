#include <cstring>

#include "kernels/core/activate_avx512.h"
#include "kernels/core/avx512.h"
#include "kernels/core/multiply/multiply_avx512.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::linear {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;

using kernels::kMaxRows;
using kernels::kPanel;

constexpr int kMaxPanels = 4;
constexpr int64_t kStripRows = 11 * kMaxRows;
// Dwords at a time: their weights of 64 channels take 128 KB, and stay in the second-level cache while the strip's rows
// pass and the next weights come. From there products are as fast as from the first, and sums stay in registers longer.
constexpr int64_t kChunk = 512;

inline int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// Copies kFull bytes or, at the last channels, fewer. kFull bytes are moves, and no call.
template <int kFull>
inline void CopyFull(const void* from, int64_t bytes, void* to) {
  if (bytes == kFull) {
    std::memcpy(to, from, kFull);
  } else {
    std::memcpy(to, from, bytes);
  }
}

// A row's `count` values, of channels from `to` on, which leave as codes or floats. Values in excess of kPanels are 0.
template <int kPanels, bool kFloats>
inline __attribute__((always_inline)) void StoreRow(const core::OutputCodes& codes, const __m512* v, int64_t count,
                                                    int64_t to, void* y) {
  if (kFloats) {
    float* const floats = static_cast<float*>(y) + to;
    __m512 copy[kPanels];  // For memcpy: v stays in registers.
#pragma GCC unroll 4
    for (int j = 0; j < kPanels; ++j) {
      if (count == kPanels * kPanel) {
        _mm512_storeu_ps(floats + kPanel * j, v[j]);
      } else {
        copy[j] = v[j];
      }
    }
    if (count < kPanels * kPanel) std::memcpy(floats, copy, count * sizeof(float));
  } else {
    const __m512i q = core::ToCodes(v[0], v[1], v[2], v[3], codes);
    CopyFull<kPanels * kPanel>(&q, count, static_cast<uint8_t*>(y) + to);
  }
}

// A strip's sums, [rows][16 * kPanels], to codes or floats; by way of floats in their place where an activation
// follows, which one call computes.
template <int kPanels, bool kFloats>
void Store(const Params& p, const core::OutputCodes& codes, const Range& strip, int32_t* sums, void* y) {
  const int64_t n = strip.channel_begin, count = strip.channel_end - n, rows = strip.row_end - strip.row_begin;
  __m512i addend[kPanels];
  __m512 multiplier[kPanels], bias[kPanels];
#pragma GCC unroll 4
  for (int j = 0; j < kPanels; ++j) {
    addend[j] = _mm512_loadu_si512(p.addend + n + kPanel * j);
    multiplier[j] = _mm512_loadu_ps(p.multiplier + n + kPanel * j);
    if (kFloats) bias[j] = _mm512_loadu_ps(p.float_bias + n + kPanel * j);
  }
  __m512 v[kMaxPanels];
  for (int j = kPanels; j < kMaxPanels; ++j) v[j] = _mm512_setzero_ps();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t in_all = strip.row_begin + row;
    const __m512i row_addend = _mm512_set1_epi32(p.row_addend == nullptr ? 0 : p.row_addend[in_all]);
    const __m512 row_multiplier = _mm512_set1_ps(p.row_multiplier == nullptr ? 1.0f : p.row_multiplier[in_all]);
    int32_t* const row_sums = sums + row * kPanels * kPanel;
#pragma GCC unroll 4
    for (int j = 0; j < kPanels; ++j) {
      const __m512i all = _mm512_add_epi32(addend[j], row_addend);
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_loadu_si512(row_sums + kPanel * j), all));
      if (kFloats) {
        v[j] = _mm512_fmadd_ps(sum, _mm512_mul_ps(multiplier[j], row_multiplier), bias[j]);
        if (p.relu) v[j] = _mm512_max_ps(v[j], _mm512_setzero_ps());
      } else {
        v[j] = _mm512_mul_ps(sum, multiplier[j]);
      }
      if (p.function != nullptr) _mm512_storeu_ps(row_sums + kPanel * j, v[j]);
    }
    if (p.function == nullptr) StoreRow<kPanels, kFloats>(codes, v, count, in_all * p.channels + n, y);
  }
  if (p.function == nullptr) return;
  float* const values = reinterpret_cast<float*>(sums);
  core::Activate(*p.function, values, rows * kPanels * kPanel);
  for (int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 4
    for (int j = 0; j < kPanels; ++j) {
      const __m512 value = _mm512_loadu_ps(values + (row * kPanels + j) * kPanel);
      v[j] = _mm512_mul_ps(value, _mm512_set1_ps(p.function_multiplier));
    }
    StoreRow<kPanels, kFloats>(codes, v, count, (strip.row_begin + row) * p.channels + n, y);
  }
}

using StoreStrip = decltype(Store<1, false>);
constexpr StoreStrip* kStores[2][kMaxPanels] = {
    {Store<1, false>, Store<2, false>, Store<3, false>, Store<4, false>},
    {Store<1, true>, Store<2, true>, Store<3, true>, Store<4, true>},
};

// At most kStripRows and kMaxPanels. `following`: the weights of what runs after it, or null; the first products of a
// chunk each fetch a panel of the next.
void RunStrip(const Params& p, const core::OutputCodes& codes, const uint8_t* x, const Range& strip,
              const int8_t* following, void* y) {
  const int64_t rows = strip.row_end - strip.row_begin, parts = (rows + kMaxRows - 1) / kMaxRows;
  const int64_t channels = strip.channel_end - strip.channel_begin, panels = (channels + kPanel - 1) / kPanel;
  const int64_t dwords = p.depth / kernels::kDwordBytes;
  alignas(64) int32_t sums[kStripRows * kMaxPanels * kPanel];
  kernels::Multiply m = {};
  m.a_stride = p.pitch;
  m.b_stride = p.pitch * kPanel;
  m.c_stride = panels * kPanel;
  m.panels = static_cast<int>(panels);
  int64_t dword = 0;
  do {  // Once where there are none: sums of nothing are zeros.
    m.offsets = p.step_offsets + dword;
    m.depth = Least(kChunk, dwords - dword);
    m.b = p.weight + strip.channel_begin * p.pitch + dword * kernels::kPanelBytes;
    m.accumulate = dword > 0;
    const char* next = reinterpret_cast<const char*>(following);
    if (dword + kChunk < dwords) next = static_cast<const char*>(m.b) + kChunk * kernels::kPanelBytes;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t row = rows * part / parts;
      m.rows = static_cast<int>(rows * (part + 1) / parts - row);
      m.a = x + (strip.row_begin + row) * p.pitch;
      m.c = sums + row * m.c_stride;
      m.next = next != nullptr && part < panels ? next + part * m.b_stride : nullptr;
      kernels::MultiplyPanels<kernels::ByteProduct>(m);
    }
  } while ((dword += kChunk) < dwords);
  kStores[p.float_output][panels - 1](p, codes, strip, sums, y);
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const void* x, void* y, const Range& range) {
  const core::OutputCodes codes = core::MakeOutputCodes(p.zero_point, p.lo, p.hi, p.flip);
  Range strip;
  for (int64_t n = range.channel_begin; n < range.channel_end; n = strip.channel_end) {
    strip.channel_begin = n;
    strip.channel_end = Least(range.channel_end, n + kMaxPanels * kPanel);
    for (int64_t row = range.row_begin; row < range.row_end; row = strip.row_end) {
      strip.row_begin = row;
      strip.row_end = Least(range.row_end, row + kStripRows);
      const int64_t next = strip.row_end < range.row_end ? strip.channel_begin : strip.channel_end;
      RunStrip(p, codes, static_cast<const uint8_t*>(x), strip,
               next < range.channel_end ? p.weight + next * p.pitch : nullptr, y);
    }
  }
}

}  // namespace fuselage::int8::linear
