// Blocks of two tiles of rows by two panels (one by four where a tile is left, four by one where a panel is), all of K
// in the tiles. While one block's products run, the vector units turn the sums of the block before into results.
#include <algorithm>
#include <cstdint>

#include "kernels/core/activate_avx512.h"
#include "kernels/core/amx.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::linear {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;
namespace tiles = kernels::FUSELAGE_AMX;

using kernels::kMaxTileSums;
using kernels::kTileBytes;
using kernels::kTileRowBytes;
using kernels::kTileRows;
using kernels::kTileSums;

constexpr int kPairPanels = 2;
// Of the weights that come next, every second line: the other of its 128 bytes comes with it. Few a step, as each on
// its way occupies a buffer that the tiles' own loads need.
constexpr int kPrefetchStride = 128, kMostPrefetches = 2;

// What exists of some tiles' sums: `rows` by `channels`.
struct Block {
  int64_t row, channel;
  int rows, channels;
  int tiles, panels;  // 0: none.
};

inline int CeilDiv(int n, int by) { return (n + by - 1) / by; }

// The lowest n bits, none or all where there are not as many.
inline uint64_t FirstBytes(int64_t n) { return n >= 64 ? ~uint64_t{0} : n <= 0 ? 0 : (uint64_t{1} << n) - 1; }

enum class Results { kCodes, kActivatedCodes, kFloats };

// Turns a block's sums into results, some rows of two panels at a time.
template <Results kResults>
class Finisher {
 public:
  static constexpr bool kFloats = kResults == Results::kFloats;
  // An activation's vectors wait for their own results: eight hide that.
  static constexpr int kRows = kResults == Results::kActivatedCodes ? 4 : 2;

  // sums: [tiles][panels][16][16], and as much as two panels behind it.
  Finisher(const Params& p, const core::OutputCodes& codes, const Block& block, const int32_t* sums, void* y)
      : p_(p), codes_(codes), block_(block), sums_(sums), row_bytes_(p.channels * kValueBytes) {
    y_ = static_cast<char*>(y) + block.row * row_bytes_ + block.channel * kValueBytes;
    next_sums_ = sums;
    EnterPanels();
  }

  // Calls of Next().
  static int StepsOf(const Block& block) {
    return CeilDiv(block.rows, kRows) * CeilDiv(block.channels, kPairPanels * static_cast<int>(kTileRows));
  }

  inline __attribute__((always_inline)) void Next() {
    __m512 v[kPairPanels * kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kPairPanels * kRows; ++i) v[i] = Value(i % kPairPanels, i / kPairPanels);
    if (kResults == Results::kActivatedCodes) {
      core::ActivateVectors<kPairPanels * kRows>(*p_.function, v);
#pragma GCC unroll 8
      for (__m512& value : v) value = _mm512_mul_ps(value, _mm512_set1_ps(p_.function_multiplier));
    }
    if (kFloats && p_.function != nullptr) Activate(v);
#pragma GCC unroll 2
    for (int row = 0; row < kRows; row += 2) {
      if (row > 0 && row_ + row >= block_.rows) break;
      StoreRows(v + row * kPairPanels, row_ + row + 1 < block_.rows, y_ + row * row_bytes_);
    }
    Advance();
  }

 private:
  static constexpr int kValueBytes = kFloats ? sizeof(float) : 1;

  // What the activation is of.
  inline __attribute__((always_inline)) __m512 Value(int panel, int row) const {
    __m512i sum = _mm512_loadu_si512(next_sums_ + panel * kTileSums + row * kTileRows);
    sum = _mm512_add_epi32(sum, addend_[panel]);
    if (p_.row_addend != nullptr) sum = _mm512_add_epi32(sum, _mm512_set1_epi32(p_.row_addend[RowOf(row)]));
    const __m512 v = _mm512_cvtepi32_ps(sum);
    if (!kFloats) return _mm512_mul_ps(v, multiplier_[panel]);
    __m512 multiplier = multiplier_[panel];
    if (p_.row_multiplier != nullptr) {
      multiplier = _mm512_mul_ps(multiplier, _mm512_set1_ps(p_.row_multiplier[RowOf(row)]));
    }
    const __m512 result = _mm512_fmadd_ps(v, multiplier, bias_[panel]);
    return p_.relu ? _mm512_max_ps(result, _mm512_setzero_ps()) : result;
  }
  // A row that does not exist has no entry.
  int64_t RowOf(int row) const { return block_.row + (row_ + row < block_.rows ? row_ + row : 0); }

  __attribute__((noinline)) void Activate(__m512* v) const {
    core::ActivateVectors<kPairPanels * kRows>(*p_.function, v);
  }

  // Two rows, of which the second may not exist.
  inline __attribute__((always_inline)) void StoreRows(const __m512* v, bool second, char* to) const {
    if (kFloats) {
      StoreFloats(v, to);
      if (second) StoreFloats(v + kPairPanels, to + row_bytes_);
      return;
    }
    const __m512i q = core::ToCodes(v[0], v[1], v[2], v[3], codes_);
    _mm512_mask_storeu_epi8(to, existing_[0], q);
    const __m512i of_second = _mm512_castsi256_si512(_mm512_extracti64x4_epi64(q, 1));
    if (second) _mm512_mask_storeu_epi8(to + row_bytes_, existing_[0], of_second);
  }
  inline __attribute__((always_inline)) void StoreFloats(const __m512* v, char* to) const {
#pragma GCC unroll 2
    for (int i = 0; i < kPairPanels; ++i) {
      _mm512_mask_storeu_epi8(to + i * kTileRowBytes, existing_[i], _mm512_castps_si512(v[i]));
    }
  }

  inline __attribute__((always_inline)) void Advance() {
    row_ += kRows;
    y_ += kRows * row_bytes_;
    next_sums_ += kRows * kTileRows;
    if (row_ % kTileRows != 0 && row_ < block_.rows) return;
    next_sums_ += (block_.panels - 1) * kTileSums;  // To the next tile's.
    if (row_ < block_.rows) return;
    y_ += kPairPanels * kTileRows * kValueBytes - row_ * row_bytes_;
    row_ = 0;
    panel_ += kPairPanels;
    next_sums_ = sums_ + panel_ * kTileSums;
    if (panel_ < block_.panels) EnterPanels();
  }

  void EnterPanels() {
    const int64_t n = panel_ * kTileRows, left = block_.channels - n;
    existing_[0] = kFloats ? FirstBytes(left * kValueBytes) : FirstBytes(left) & 0xffffffff;
    existing_[1] = FirstBytes((left - kTileRows) * kValueBytes);
#pragma GCC unroll 2
    for (int i = 0; i < kPairPanels; ++i) {
      const int64_t channel = block_.channel + (panel_ + i < block_.panels ? n + i * kTileRows : n);
      addend_[i] = _mm512_loadu_si512(p_.addend + channel);
      multiplier_[i] = _mm512_loadu_ps(p_.multiplier + channel);
      if (kFloats) bias_[i] = _mm512_loadu_ps(p_.float_bias + channel);
    }
  }

  const Params& p_;
  const core::OutputCodes codes_;
  const Block block_;
  const int32_t* const sums_;
  const int64_t row_bytes_;
  int row_ = 0, panel_ = 0;
  const int32_t* next_sums_;
  char* y_;
  uint64_t existing_[kPairPanels];  // A bit for each byte: of floats a panel each, of codes both panels together.
  __m512i addend_[kPairPanels];
  __m512 multiplier_[kPairPanels], bias_[kPairPanels];
};

// What one call of amx::Run works with.
struct Call {
  const Params& p;
  const core::OutputCodes codes;
  void* const y;
  int32_t* const sums;  // See Finisher.
  Block before;         // Whose sums are in the tiles.

  int sums_before() const { return before.tiles * before.panels; }
};

// A product of two tiles by two panels of at least one step, and meanwhile the results of the block before.
template <Results kResults, bool kWeightsStream>
__attribute__((noinline)) void RunTogether(const Call& call, const kernels::TileProduct& product) {
  Finisher<kResults> finisher(call.p, call.codes, call.before, call.sums, call.y);
  tiles::MultiplyAndFinish<2, 2>(
      product, tiles::UnsignedOperands<true, kWeightsStream>(), call.sums, call.sums_before(),
      finisher.StepsOf(call.before), [&]() __attribute__((always_inline)) { finisher.Next(); });
}

// Any product, or none, and the results of the block before, if there is one.
template <Results kResults>
void RunBlock(const Call& call, const kernels::TileProduct* product) {
  if (call.before.tiles == 0) return tiles::MultiplyAndFinish(product, nullptr, 0, 0, nullptr, nullptr);
  if (product != nullptr && product->tiles == 2 && product->panels == 2 && product->steps > 0) {
    const auto run = product->b_streams ? RunTogether<kResults, true> : RunTogether<kResults, false>;
    return run(call, *product);
  }
  Finisher<kResults> finisher(call.p, call.codes, call.before, call.sums, call.y);
  const auto finish = [](void* of, int n) {
    for (; n > 0; --n) static_cast<Finisher<kResults>*>(of)->Next();
  };
  tiles::MultiplyAndFinish(product, call.sums, call.sums_before(), finisher.StepsOf(call.before), finish, &finisher);
}

}  // namespace

// Four panels at a time: their pairs by all pairs of tiles, so that the weights of a pair stay in the first cache, if
// they fit, while the rows pass by.
void FUSELAGE_AMX::Run(const Params& p, const void* x, void* y, const Range& range) {
  alignas(64) int32_t sums[(kMaxTileSums + 1) * kTileSums];
  Call call = {p, core::MakeOutputCodes(p.zero_point, p.lo, p.hi, p.flip), y, sums, {}};
  const auto run = p.float_output          ? RunBlock<Results::kFloats>
                   : p.function != nullptr ? RunBlock<Results::kActivatedCodes>
                                           : RunBlock<Results::kCodes>;
  const int rows = static_cast<int>(range.row_end - range.row_begin);
  const int channels = static_cast<int>(range.channel_end - range.channel_begin);
  const int row_tiles = CeilDiv(rows, kTileRows), panels = CeilDiv(channels, kTileRows), paired_tiles = row_tiles / 2 * 2;
  kernels::TileProduct product = {};
  product.a_row_bytes = kTileRowBytes;
  product.offsets = p.step_offsets;
  product.steps = p.depth / kTileRowBytes;
  product.b_panel_bytes = kTileRows * p.pitch;
  product.prefetch_stride = kPrefetchStride;
  if (range.channel_end < p.channels && product.steps > 0) {  // The next call is likely to read what follows.
    product.prefetch = p.weight + range.channel_end * p.pitch;
    const int64_t steps = product.steps * CeilDiv(row_tiles, 2) * CeilDiv(panels, 2);
    product.prefetch_lines = static_cast<int>(
        std::min<int64_t>(kMostPrefetches, (channels * p.pitch / kPrefetchStride + steps - 1) / steps));
  }
  const auto run_block = [&](int tile, int block_tiles, int panel, int block_panels) {
    Block block;
    block.row = range.row_begin + tile * kTileRows;
    block.channel = range.channel_begin + panel * kTileRows;
    block.rows = std::min<int>(rows - tile * kTileRows, block_tiles * kTileRows);
    block.channels = std::min<int>(channels - panel * kTileRows, block_panels * kTileRows);
    block.tiles = product.tiles = block_tiles;
    block.panels = product.panels = block_panels;
    product.b_streams = block_panels * product.b_panel_bytes > kernels::kKeptBytes;
    for (int t = 0; t < block_tiles; ++t) {
      product.a[t] = static_cast<const uint8_t*>(x) + (block.row + t * kTileRows) * p.pitch;
    }
    product.b = p.weight + block.channel * p.pitch;
    run(call, &product);
    product.prefetch += product.prefetch_lines * product.steps * kPrefetchStride;
    call.before = block;
  };
  tiles::ConfigureTiles();
  for (int panel = 0; panel < panels; panel += kMaxTileSums) {
    const int here = std::min(panels - panel, kMaxTileSums);
    for (int pair = 0; pair + 2 <= here; pair += 2) {
      for (int tile = 0; tile < paired_tiles; tile += 2) run_block(tile, 2, panel + pair, 2);
    }
    for (int tile = 0; here % 2 != 0 && tile < paired_tiles; tile += kMaxTileSums) {
      run_block(tile, std::min(paired_tiles - tile, kMaxTileSums), panel + here - 1, 1);
    }
    if (paired_tiles < row_tiles) run_block(paired_tiles, 1, panel, here);
  }
  run(call, nullptr);
  tiles::ReleaseTiles();
}

}  // namespace fuselage::int8::linear
