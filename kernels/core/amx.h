// AMX tiles, native or emulated. A source that includes this and puts its functions into `namespace FUSELAGE_AMX`
// compiles twice, as with avx512.h, which it includes: into namespace amx, and into amx_emulated, which computes what
// Intel's manual (SDM vol. 2, TILELOADD, TDPBUSD) says, and aborts where a tile is used without a configuration.
//
// The instructions are written out: GCC's intrinsics for them do not say that they read and write memory (GCC 12), so
// that stores before a tile load may come after it.
//
// Only for sources of this instruction set: it must not reach code that is compiled without its options.
#ifndef FUSELAGE_KERNELS_CORE_AMX_H_
#define FUSELAGE_KERNELS_CORE_AMX_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/core/avx512.h"
#include "kernels/core/tiles.h"

#ifdef FUSELAGE_EMULATE_AVX512
#include "ir/base/check.h"
#define FUSELAGE_AMX amx_emulated
#else
#define FUSELAGE_AMX amx
#endif

namespace fuselage::kernels {
namespace FUSELAGE_AMX {

// The operand of LDTILECFG. All eight tiles are as large as can be, so that one configuration serves every product.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

#ifndef FUSELAGE_EMULATE_AVX512

static inline void ConfigureTiles() {
  const TileConfig config;
  __asm__ volatile("ldtilecfg %0" : : "m"(config));
}
static inline void ReleaseTiles() { __asm__ volatile("tilerelease"); }

template <int kTile>
static inline void ZeroTile() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
template <int kTile>
static inline void LoadTile(const void* from, int64_t row_bytes) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(row_bytes), "i"(kTile) : "memory");
}
template <int kTile>
static inline void StoreTile(void* to, int64_t row_bytes) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(row_bytes), "i"(kTile) : "memory");
}
// C += A . B
template <int kC, int kA, int kB, bool kSignedA>
static inline void MultiplyTile() {
  if (kSignedA) {
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
  } else {
    __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
  }
}

#else

// A thread's tiles; rows and bytes beyond the configured ones are zero, as they are in the registers.
struct Tiles {
  TileConfig config;
  bool configured;
  alignas(64) uint8_t data[8][kTileRows][kTileRowBytes];
};
static thread_local Tiles tiles;

static inline void ConfigureTiles() {
  tiles.config = TileConfig();
  tiles.configured = true;
  std::memset(tiles.data, 0, sizeof(tiles.data));
}
static inline void ReleaseTiles() { tiles.configured = false; }

template <int kTile>
static inline void ZeroTile() {
  FUSELAGE_CHECK(tiles.configured);
  std::memset(tiles.data[kTile], 0, kTileBytes);
}
template <int kTile>
static inline void LoadTile(const void* from, int64_t row_bytes) {
  ZeroTile<kTile>();
  for (int row = 0; row < tiles.config.rows[kTile]; ++row) {
    std::memcpy(tiles.data[kTile][row], static_cast<const uint8_t*>(from) + row * row_bytes,
                tiles.config.row_bytes[kTile]);
  }
}
template <int kTile>
static inline void StoreTile(void* to, int64_t row_bytes) {
  FUSELAGE_CHECK(tiles.configured);
  for (int row = 0; row < tiles.config.rows[kTile]; ++row) {
    std::memcpy(static_cast<uint8_t*>(to) + row * row_bytes, tiles.data[kTile][row], tiles.config.row_bytes[kTile]);
  }
}

// Weights are widened and transposed to [k][column] first, so that columns are the lanes.
template <typename A>
static inline void MultiplyData(const uint8_t* a, const uint8_t* b, uint8_t* c) {
  int16_t weights[kTileRowBytes][kTileRows];
  for (int k = 0; k < kTileRowBytes; ++k) {
    for (int n = 0; n < kTileRows; ++n) {
      weights[k][n] = static_cast<int8_t>(b[k / 4 * kTileRowBytes + n * 4 + k % 4]);
    }
  }
  for (int m = 0; m < kTileRows; ++m) {
    int32_t sums[kTileRows];
    std::memcpy(sums, c + m * kTileRowBytes, sizeof(sums));
    for (int k = 0; k < kTileRowBytes; ++k) {
      const int16_t code = static_cast<A>(a[m * kTileRowBytes + k]);
      for (int n = 0; n < kTileRows; ++n) sums[n] += code * weights[k][n];
    }
    std::memcpy(c + m * kTileRowBytes, sums, sizeof(sums));
  }
}
template <int kC, int kA, int kB, bool kSignedA>
static inline void MultiplyTile() {
  FUSELAGE_CHECK(tiles.configured);
  const TileConfig& config = tiles.config;
  FUSELAGE_CHECK(config.rows[kA] == config.rows[kC] && config.row_bytes[kA] == config.rows[kB] * 4 &&
                 config.row_bytes[kB] == config.row_bytes[kC]);
  const auto multiply = kSignedA ? MultiplyData<int8_t> : MultiplyData<uint8_t>;
  multiply(tiles.data[kA][0], tiles.data[kB][0], tiles.data[kC][0]);
}

#endif  // FUSELAGE_EMULATE_AVX512

// The addresses of one step's tiles.
template <int kTiles>
struct StepTiles {
  const uint8_t* a[kTiles];
  int64_t row_bytes;
  const int8_t* b;
  int64_t panel_bytes;

  template <int kTile, int kTo>
  void LoadA() const {
    LoadTile<kTo>(a[kTile], row_bytes);
  }
  template <int kPanel, int kTo>
  void LoadB() const {
    LoadTile<kTo>(b + kPanel * panel_bytes, kTileRowBytes);
  }
};

// One step of a product of kTiles x kPanels tiles, sums in tiles 0 to 3. What several of them share stays loaded. The
// first step loads all that the four other tiles hold and calls begin() before it multiplies.
template <int kTiles, int kPanels, bool kSignedA, bool kFirst, typename Begin>
static inline __attribute__((always_inline)) void MultiplyStep(const StepTiles<kTiles>& from, Begin begin) {
  static_assert(kTiles * kPanels <= kMaxTileSums, "four tiles of sums, four of factors");
  if constexpr (kPanels == 1) {
    from.template LoadB<0, 4>();
    from.template LoadA<0, 5>();
    if constexpr (kFirst && kTiles > 1) from.template LoadA<1, 6>();
    if constexpr (kFirst && kTiles > 2) from.template LoadA<2, 7>();
    if constexpr (kFirst) begin();
    MultiplyTile<0, 5, 4, kSignedA>();
    if constexpr (kTiles > 1) {
      if constexpr (!kFirst) from.template LoadA<1, 6>();
      MultiplyTile<1, 6, 4, kSignedA>();
    }
    if constexpr (kTiles > 2) {
      if constexpr (!kFirst) from.template LoadA<2, 7>();
      MultiplyTile<2, 7, 4, kSignedA>();
    }
    if constexpr (kTiles > 3) {
      from.template LoadA<3, 5>();
      MultiplyTile<3, 5, 4, kSignedA>();
    }
  } else if constexpr (kTiles == 1) {
    from.template LoadA<0, 4>();
    from.template LoadB<0, 5>();
    if constexpr (kFirst) from.template LoadB<1, 6>();
    if constexpr (kFirst && kPanels > 2) from.template LoadB<2, 7>();
    if constexpr (kFirst) begin();
    MultiplyTile<0, 4, 5, kSignedA>();
    if constexpr (!kFirst) from.template LoadB<1, 6>();
    MultiplyTile<1, 4, 6, kSignedA>();
    if constexpr (kPanels > 2) {
      if constexpr (!kFirst) from.template LoadB<2, 7>();
      MultiplyTile<2, 4, 7, kSignedA>();
    }
    if constexpr (kPanels > 3) {
      from.template LoadB<3, 5>();
      MultiplyTile<3, 4, 5, kSignedA>();
    }
  } else {
    from.template LoadA<0, 4>();
    from.template LoadB<0, 6>();
    if constexpr (kFirst) {
      from.template LoadB<1, 7>();
      from.template LoadA<1, 5>();
    }
    if constexpr (kFirst) begin();
    MultiplyTile<0, 4, 6, kSignedA>();
    if constexpr (!kFirst) from.template LoadB<1, 7>();
    MultiplyTile<1, 4, 7, kSignedA>();
    if constexpr (!kFirst) from.template LoadA<1, 5>();
    MultiplyTile<2, 5, 6, kSignedA>();
    MultiplyTile<3, 5, 7, kSignedA>();
  }
}

template <int kSums>
static inline __attribute__((always_inline)) void ZeroTiles() {
  ZeroTile<0>();
  if constexpr (kSums > 1) ZeroTile<1>();
  if constexpr (kSums > 2) ZeroTile<2>();
  if constexpr (kSums > 3) ZeroTile<3>();
}
// The first `count` tiles' sums.
static inline __attribute__((always_inline)) void StoreSums(int32_t* to, int count) {
  StoreTile<0>(to, kTileRowBytes);
  if (count > 1) StoreTile<1>(to + kTileSums, kTileRowBytes);
  if (count > 2) StoreTile<2>(to + 2 * kTileSums, kTileRowBytes);
  if (count > 3) StoreTile<3>(to + 3 * kTileSums, kTileRowBytes);
}

// The whole product, whose sums stay in the tiles. Calls begin() while these still hold those of the product before and
// the first factors are on their way: stores of those sums wait for its last multiplications, and what comes behind
// such stores does too. Calls between() after each step: the vector units work beside the tiles.
template <int kTiles, int kPanels, bool kSignedA, typename Begin, typename Between>
static inline __attribute__((always_inline)) void MultiplyTiles(const TileProduct& product, Begin begin,
                                                                Between between) {
  constexpr int kSums = kTiles * kPanels;
  const int64_t* offsets = product.offsets;
  const int64_t* const end = offsets + product.steps;
  const int8_t* prefetch = product.prefetch;
  const int prefetch_lines = product.prefetch_lines;
  const int64_t prefetch_stride = product.prefetch_stride;
  StepTiles<kTiles> tiles;
  tiles.row_bytes = product.a_row_bytes;
  tiles.b = product.b;
  tiles.panel_bytes = product.b_panel_bytes;
  const auto begin_sums = [&]() __attribute__((always_inline)) {
    begin();
    ZeroTiles<kSums>();
  };
  const auto step = [&](auto first) __attribute__((always_inline)) {
    for (int t = 0; t < kTiles; ++t) tiles.a[t] = product.a[t] + *offsets;
    MultiplyStep<kTiles, kPanels, kSignedA, decltype(first)::value>(tiles, begin_sums);
    for (int line = 0; line < prefetch_lines; ++line, prefetch += prefetch_stride) __builtin_prefetch(prefetch, 0, 2);
    between();
    tiles.b += kTileBytes;
    ++offsets;
  };
  if (offsets == end) return begin_sums();
  step(std::true_type());
  while (offsets != end) step(std::false_type());
}

// The same for any shape that a driver may ask for.
template <bool kSignedA, typename Begin, typename Between>
static inline void MultiplyTilesOfShape(const TileProduct& product, Begin begin, Between between) {
  switch (product.tiles * 8 + product.panels) {
    case 1 * 8 + 1: return MultiplyTiles<1, 1, kSignedA>(product, begin, between);
    case 1 * 8 + 2: return MultiplyTiles<1, 2, kSignedA>(product, begin, between);
    case 1 * 8 + 3: return MultiplyTiles<1, 3, kSignedA>(product, begin, between);
    case 1 * 8 + 4: return MultiplyTiles<1, 4, kSignedA>(product, begin, between);
    case 2 * 8 + 1: return MultiplyTiles<2, 1, kSignedA>(product, begin, between);
    case 2 * 8 + 2: return MultiplyTiles<2, 2, kSignedA>(product, begin, between);
    case 3 * 8 + 1: return MultiplyTiles<3, 1, kSignedA>(product, begin, between);
    default: return MultiplyTiles<4, 1, kSignedA>(product, begin, between);
  }
}
template <typename Begin, typename Between>
static inline void MultiplyTiles(const TileProduct& product, Begin begin, Between between) {
  if (product.signed_a) {
    MultiplyTilesOfShape<true>(product, begin, between);
  } else {
    MultiplyTilesOfShape<false>(product, begin, between);
  }
}

}  // namespace FUSELAGE_AMX
}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_AMX_H_
