#include "kernels/core/multiply/multiply_pairs_avx2.h"
#include "kernels/int8/linear/linear_tile_avx2.h"

namespace fuselage::int8::linear {
namespace {

// Weights stay i8 in memory and are widened on the way: vpmaddwd is exact where vpmaddubsw saturates.
struct WordProduct {
  using Input = int16_t;
  static constexpr int64_t kGroup = 2;
  static inline __m256i Weights(const int8_t* w) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
  }
  static inline __m256i Add(__m256i sum, __m256i x, __m256i w) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(w, x));
  }
};

// vpmaddubsw adds two products u8 * i8 in 16 bits, exactly where they fit (Pairs::kFit): three instructions for 32
// products where words take four. A few rows stream weights, which take their time.
struct PairProduct {
  using Input = uint8_t;
  static constexpr int64_t kGroup = 4;
  static inline __m256i Weights(const int8_t* w) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)); }
  static inline __m256i Add(__m256i sum, __m256i x, __m256i w) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), _mm256_set1_epi16(1)));
  }
};

// Sums of all rows times a panel, chunk by chunk of its depth.
void MultiplyPanel(const Params& p, const uint8_t* x, const Range& range, int32_t* sums) {
  kernels::Multiply m = {};
  m.a_stride = p.pitch;
  m.c = sums;
  m.c_stride = kernels::kPanel;
  m.rows = static_cast<int>(range.row_end - range.row_begin);
  m.panels = 1;
  m.parts_of_step = p.parts_of_step;
  const int64_t steps = p.depth / kernels::kDwordBytes;
  const kernels::PairPanel panel = {steps, p.parts_of_step};
  const int64_t chunk = panel.chunk_steps();
  m.b = p.weight + range.channel_begin / kernels::kPanel * p.block_bytes;
  m.a = x + range.row_begin * p.pitch;
  m.offsets = p.step_offsets;
  for (int64_t step = 0; step < steps; step += chunk, m.offsets += chunk) {
    m.depth = steps - step < chunk ? steps - step : chunk;
    kernels::MultiplyPairs<false>(m);
    m.b = static_cast<const int8_t*>(m.b) + panel.chunk_bytes();
    m.accumulate = true;
  }
  if (steps == 0) std::memset(sums, 0, m.rows * kernels::kPanelBytes);
}

}  // namespace

void avx2::Run(const Params& p, const void* x, void* y, const Range& range) { RunTiles<WordProduct>(p, x, y, range); }
void avx2::RunFewRows(const Params& p, const void* x, void* y, const Range& range) {
  RunTiles<PairProduct>(p, x, y, range);
}

void avx2::RunPairs(const Params& p, const void* x, void* y, const Range& range) {
  const kernels::avx2::OutputCodes codes = kernels::avx2::MakeOutputCodes(p.zero_point, p.lo, p.hi, p.flip);
  alignas(32) int32_t sums[kPairTaskRows * kernels::kPanel];
  Range panel = range;
  for (; panel.channel_begin < range.channel_end; panel.channel_begin = panel.channel_end) {
    const int64_t left = range.channel_end - panel.channel_begin;
    panel.channel_end = panel.channel_begin + (left < kernels::kPanel ? left : kernels::kPanel);
    MultiplyPanel(p, static_cast<const uint8_t*>(x), panel, sums);
    Range tile = panel;
    for (; tile.row_begin < panel.row_end; tile.row_begin = tile.row_end) {
      const int64_t rows = panel.row_end - tile.row_begin;
      tile.row_end = tile.row_begin + (rows < kMaxRows ? rows : kMaxRows);
      Store<kernels::kPanel / kBlock>(p, codes, tile, sums + (tile.row_begin - panel.row_begin) * kernels::kPanel, y);
    }
  }
}

}  // namespace fuselage::int8::linear
