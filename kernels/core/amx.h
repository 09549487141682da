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
// `streams`: its lines do not displace others of the first cache.
template <int kTile>
static inline void LoadTile(const void* from, int64_t row_bytes, bool streams) {
  if (streams) {
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(row_bytes), "i"(kTile) : "memory");
  } else {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(row_bytes), "i"(kTile) : "memory");
  }
}
template <int kTile>
static inline void StoreTile(void* to, int64_t row_bytes) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(row_bytes), "i"(kTile) : "memory");
}
// C += A . B
template <int kC, int kA, int kB>
static inline void MultiplyTile(bool signed_a) {
  if (signed_a) {
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
static inline void LoadTile(const void* from, int64_t row_bytes, bool /*streams*/) {
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
template <int kC, int kA, int kB>
static inline void MultiplyTile(bool signed_a) {
  FUSELAGE_CHECK(tiles.configured);
  const TileConfig& config = tiles.config;
  FUSELAGE_CHECK(config.rows[kA] == config.rows[kC] && config.row_bytes[kA] == config.rows[kB] * 4 &&
                 config.row_bytes[kB] == config.row_bytes[kC]);
  const auto multiply = signed_a ? MultiplyData<int8_t> : MultiplyData<uint8_t>;
  multiply(tiles.data[kA][0], tiles.data[kB][0], tiles.data[kC][0]);
}

#endif  // FUSELAGE_EMULATE_AVX512

// What a product's loop branches on, in each step or, where it is known, when it is compiled.
struct Operands {
  static constexpr bool known = false, a_streams = false;
  bool signed_a, b_streams;
};
template <bool kAStreams, bool kBStreams>
struct UnsignedOperands {
  static constexpr bool known = true, signed_a = false, a_streams = kAStreams, b_streams = kBStreams;
};

// Every row of the tile's panel: sixteen reads of one line, while the first factors are on their way.
template <int kTile, int kPanels>
static inline __attribute__((always_inline)) void BeginSum(const int32_t* begin) {
  if (begin == nullptr) return ZeroTile<kTile>();
  LoadTile<kTile>(begin + kTile % kPanels * kTileRows, /*row_bytes=*/0, /*streams=*/false);
}

// One step of a product of kTiles x kPanels tiles, sums in tiles 0 to 3. What several of them share stays loaded. Loads
// all that the four other tiles hold before it multiplies, and calls begin(i) right before it adds to tile i.
template <int kTiles, int kPanels, typename Operands>
struct Step {
  static_assert(kTiles * kPanels <= kMaxTileSums, "four tiles of sums, four of factors");

  Operands operands;
  const uint8_t* a[kTiles];
  int64_t row_bytes;
  const int8_t* b;
  int64_t panel_bytes;

  template <typename Begin>
  inline __attribute__((always_inline)) void Run(Begin begin) const {
    if constexpr (kPanels == 1) {
      LoadB<0, 4>();
      LoadA<0, 5>();
      if constexpr (kTiles > 1) LoadA<1, 6>();
      if constexpr (kTiles > 2) LoadA<2, 7>();
      Multiply<0, 5, 4>(begin);
      if constexpr (kTiles > 1) Multiply<1, 6, 4>(begin);
      if constexpr (kTiles > 2) Multiply<2, 7, 4>(begin);
      if constexpr (kTiles > 3) {
        LoadA<3, 5>();
        Multiply<3, 5, 4>(begin);
      }
    } else if constexpr (kTiles == 1) {
      LoadA<0, 4>();
      LoadB<0, 5>();
      LoadB<1, 6>();
      if constexpr (kPanels > 2) LoadB<2, 7>();
      Multiply<0, 4, 5>(begin);
      Multiply<1, 4, 6>(begin);
      if constexpr (kPanels > 2) Multiply<2, 4, 7>(begin);
      if constexpr (kPanels > 3) {
        LoadB<3, 5>();
        Multiply<3, 4, 5>(begin);
      }
    } else {
      LoadA<0, 4>();
      LoadB<0, 6>();
      LoadB<1, 7>();
      LoadA<1, 5>();
      Multiply<0, 4, 6>(begin);
      Multiply<1, 4, 7>(begin);
      Multiply<2, 5, 6>(begin);
      Multiply<3, 5, 7>(begin);
    }
  }

 private:
  template <int kTile, int kTo>
  void LoadA() const {
    LoadTile<kTo>(a[kTile], row_bytes, operands.a_streams);
  }
  template <int kPanel, int kTo>
  void LoadB() const {
    LoadTile<kTo>(b + kPanel * panel_bytes, kTileRowBytes, operands.b_streams);
  }
  template <int kSums, int kA, int kB, typename Begin>
  inline __attribute__((always_inline)) void Multiply(Begin begin) const {
    begin(std::integral_constant<int, kSums>());
    MultiplyTile<kSums, kA, kB>(operands.signed_a);
  }
};

// function(i) for the tiles of sums from kFirst to kEnd.
template <int kFirst, int kEnd, typename Function>
static inline __attribute__((always_inline)) void ForTiles(Function function) {
  if constexpr (kFirst < kEnd) {
    function(std::integral_constant<int, kFirst>());
    ForTiles<kFirst + 1, kEnd>(function);
  }
}

// The whole product, whose sums stay in the tiles. Calls begin(i) where tile i still holds a sum of the product before
// and the first factors are on their way: a store of it waits for that product's last multiplications, and so does what
// comes behind the store. With one multiplication between any two stores both go on at once. Calls between() after each
// step: the vector units work beside the tiles.
template <int kTiles, int kPanels, typename Operands, typename Begin, typename Between>
static inline __attribute__((always_inline)) void MultiplyTiles(const TileProduct& product, Operands operands,
                                                                Begin begin, Between between) {
  constexpr int kSums = kTiles * kPanels;
  const int64_t* offsets = product.offsets;
  const int64_t* const end = offsets + product.steps;
  const int8_t* prefetch = product.prefetch;
  const int prefetch_lines = product.prefetch_lines;
  const int64_t prefetch_stride = product.prefetch_stride;
  Step<kTiles, kPanels, Operands> step;
  step.operands = operands;
  step.row_bytes = product.a_row_bytes;
  step.b = product.b;
  step.panel_bytes = product.b_panel_bytes;
  const auto begin_sum = [&](auto tile) __attribute__((always_inline)) {
    begin(tile);
    BeginSum<decltype(tile)::value, kPanels>(product.begin);
  };
  const auto run = [&](auto first) __attribute__((always_inline)) {
    for (int t = 0; t < kTiles; ++t) step.a[t] = product.a[t] + *offsets;
    step.Run([&](auto tile) __attribute__((always_inline)) {
      if (first) begin_sum(tile);
    });
    for (int line = 0; line < prefetch_lines; ++line, prefetch += prefetch_stride) __builtin_prefetch(prefetch, 0, 2);
    step.b += kTileBytes;
    ++offsets;
  };
  ForTiles<kSums, kMaxTileSums>(begin);
  if (offsets == end) return ForTiles<0, kSums>(begin_sum);
  if constexpr (Operands::known) {
    run(std::true_type());
    for (;;) {
      between();
      if (offsets == end) return;
      run(std::false_type());
    }
  } else {
    for (bool first = true; offsets != end; first = false) {
      run(first);
      between();
    }
  }
}

// The same for any product.
template <typename Begin, typename Between>
static inline void MultiplyTiles(const TileProduct& product, Begin begin, Between between) {
  const Operands operands = {product.signed_a, product.b_streams};
  switch (product.tiles * 8 + product.panels) {
    case 1 * 8 + 1: return MultiplyTiles<1, 1>(product, operands, begin, between);
    case 1 * 8 + 2: return MultiplyTiles<1, 2>(product, operands, begin, between);
    case 1 * 8 + 3: return MultiplyTiles<1, 3>(product, operands, begin, between);
    case 1 * 8 + 4: return MultiplyTiles<1, 4>(product, operands, begin, between);
    case 2 * 8 + 1: return MultiplyTiles<2, 1>(product, operands, begin, between);
    case 2 * 8 + 2: return MultiplyTiles<2, 2>(product, operands, begin, between);
    case 3 * 8 + 1: return MultiplyTiles<3, 1>(product, operands, begin, between);
    default: return MultiplyTiles<4, 1>(product, operands, begin, between);
  }
}

// What a product's steps are to do for results: as much after each, so that all are there when it ends. The processor
// looks ahead some 500 instructions, and behind as many of results the next steps would wait.
static inline int ShareOf(int results, const TileProduct& product) {
  const int steps = static_cast<int>(product.steps);
  return steps == 0 ? results : (results + steps - 1) / steps;
}

// One of the first `count` tiles' sums.
template <typename Tile>
static inline __attribute__((always_inline)) void StoreSum(Tile tile, int32_t* to, int count) {
  if (tile < count) StoreTile<Tile::value>(to + tile * kTileSums, kTileRowBytes);
}

// A product of at least one step, and meanwhile `results` times finish(), which works on the sums of the product
// before: `stored` tiles of them, which go to `sums`.
template <int kTiles, int kPanels, typename Operands, typename Finish>
static inline __attribute__((always_inline)) void MultiplyAndFinish(const TileProduct& product, Operands operands,
                                                                    int32_t* sums, int stored, int results,
                                                                    Finish finish) {
  const int share = ShareOf(results, product);
  const auto store = [&](auto tile) __attribute__((always_inline)) { StoreSum(tile, sums, stored); };
  MultiplyTiles<kTiles, kPanels>(
      product, operands, store, [&]() __attribute__((always_inline)) {
        const int end = results < share ? 0 : results - share;
        for (; results != end; --results) finish();
      });
}

// The same for any product, or none, and where no sums may be stored. finish(finisher, n): the next n results.
static inline void MultiplyAndFinish(const TileProduct* product, int32_t* sums, int stored, int results,
                                     void (*finish)(void*, int), void* finisher) {
  const auto store = [&](auto tile) { StoreSum(tile, sums, stored); };
  if (product == nullptr) {
    ForTiles<0, kMaxTileSums>(store);
  } else {
    const int share = ShareOf(results, *product);
    MultiplyTiles(*product, store, [&] {
      const int here = results < share ? results : share;
      if (here > 0) finish(finisher, here);
      results -= here;
    });
  }
  if (results > 0) finish(finisher, results);
}

}  // namespace FUSELAGE_AMX
}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_AMX_H_
