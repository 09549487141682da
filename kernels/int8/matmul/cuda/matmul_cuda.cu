#include "kernels/int8/matmul/cuda/matmul_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/cuda/fetch.h"
#include "kernels/cuda/fragments.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::matmul::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::FetchLines;
using ::fuselage::cuda::Floats4;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::Lines;
using ::fuselage::cuda::PerThread;
using ::fuselage::cuda::PerWarp;
using ::fuselage::cuda::Splat;
using ::fuselage::cuda::StoreValues;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Vector;
using ::fuselage::cuda::Warp;

// A block multiplies in steps of kStep of the depth, which go through kStages buffers of shared memory: there a step is
// rows of a, then rows of b, of 64 bytes each, their 16-byte pieces permuted so that what ldmatrix takes at once lies
// in different banks. Sums of the codes themselves, for the zero points, are products with ones: each warp has those of
// every second fragment of its rows, and of its columns; the warps beside it have the others.
template <typename X, bool wide>
struct Matmul {
  using Params = LaunchParams;
  static constexpr int kWarpsDown = 2, kWarpsAcross = 2, kWarps = kWarpsDown * kWarpsAcross;
  static constexpr int kThreads = kWarps * kWarpSize;
  static constexpr int kBlocks = wide ? 3 : 4;
  static constexpr int kRows = RowsOfABlock(wide), kColumns = kColumnsOfABlock;
  static constexpr int kRowFragments = kRows / kWarpsDown / 16, kColumnPairs = kColumns / kWarpsAcross / 16;
  static constexpr int kStep = 64, kPieces = kStep / 16;
  static_assert(kColumns == kStep, "rows of a and of b are as long");
  static constexpr int kStages = 3, kStageBytes = (kRows + kStep) * kStep;
  static constexpr int kSharedBytes = kStages * kStageBytes;

  struct Sums {
    Lanes<Vector<int32_t, 4>> products[kRowFragments][kColumnPairs][2];
    Lanes<Vector<int32_t, 4>> rows[kRowFragments / kWarpsAcross], columns[kColumnPairs];
  };
  struct Tile {
    int64_t product;
    int first_row, first_column;
  };

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const int tile_of_product = block.x() % p.product_blocks;
    const Tile tile = {block.x() / p.product_blocks, tile_of_product / p.column_blocks * kRows,
                       tile_of_product % p.column_blocks * kColumns};
    const int steps = (p.depth + kStep - 1) / kStep;
    PerThread<Matrices, kWarps> matrices;
    PerWarp<Sums, kWarps> sums;
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        matrices[thread] = MatricesOf(p, thread, tile.product);
        Clear(thread, sums[warp]);
      });
      FUSELAGE_NO_UNROLL
      for (int step = 0; step < kStages - 1; ++step) {
        if (step < steps) warp.ForThreads([&](Thread thread) { Fetch(p, thread, matrices[thread], tile, step); });
        warp.CommitCopies();
      }
      warp.template WaitForCopies<kStages - 2>();
    });
    for (int step = 0; step < steps; ++step) {
      // The buffer that is filled is the one that was emptied before the last barrier.
      block.Phase([&](Warp warp) {
        const int ahead = step + kStages - 1;
        if (ahead < steps) warp.ForThreads([&](Thread thread) { Fetch(p, thread, matrices[thread], tile, ahead); });
        warp.CommitCopies();
        Multiply(p, warp, step % kStages * kStageBytes, sums[warp]);
        warp.template WaitForCopies<kStages - 2>();
      });
    }
    Store(block, p, tile, sums);
  }

 private:
  static constexpr int kRowAddends = 0, kColumnAddends = 4 * kRows;  // In shared memory, in the end.

  FUSELAGE_DEVICE static int Row(Warp warp) { return warp.index() / kWarpsAcross * kRowFragments * 16; }
  FUSELAGE_DEVICE static int Column(Warp warp) { return warp.index() % kWarpsAcross * kColumnPairs * 16; }

  // Where pieces of a step lie. ldmatrix takes eight rows of a that follow each other, and of b those of two pairs of
  // rows in each eight.
  FUSELAGE_DEVICE static uint32_t PlaceOfA(int row, int piece) { return row * kStep + ((piece ^ (row >> 1 & 3)) << 4); }
  FUSELAGE_DEVICE static uint32_t PlaceOfB(int k, int piece) {
    return kRows * kStep + k * kStep + ((piece ^ (k >> 2 & 3)) << 4);
  }

  struct Matrices {
    const uint8_t *a, *b;
  };
  FUSELAGE_DEVICE static Matrices MatricesOf(const Params& p, Thread thread, int64_t product) {
    return {p.a.codes + thread.LoadConstant(p.a.matrices + product) * p.rows * p.depth,
            p.b.codes + thread.LoadConstant(p.b.matrices + product) * p.depth * p.columns};
  }

  FUSELAGE_DEVICE static void Clear(Thread thread, Sums& sums) {
    FUSELAGE_UNROLL
    for (int i = 0; i < kRowFragments; ++i) {
      sums.rows[i / kWarpsAcross][thread] = {};
      FUSELAGE_UNROLL
      for (int j = 0; j < 2 * kColumnPairs; ++j) sums.products[i][j / 2][j % 2][thread] = {};
    }
    FUSELAGE_UNROLL
    for (int j = 0; j < kColumnPairs; ++j) sums.columns[j][thread] = {};
  }

  // What lies beyond the depth is 0 on both sides.
  FUSELAGE_DEVICE static void Fetch(const Params& p, Thread thread, const Matrices& from, const Tile& tile, int step) {
    const uint32_t stage = step % kStages * kStageBytes;
    const int row = tile.first_row, column = tile.first_column, k = step * kStep;
    const Lines a = {from.a + int64_t{row} * p.depth + k, p.depth, p.rows - row, p.depth - k, p.a.end, p.a.padding};
    const Lines b = {
        from.b + int64_t{k} * p.columns + column, p.columns, p.depth - k, p.columns - column, p.b.end, p.b.padding};
    FetchLines<kRows, kPieces, kThreads>(thread, a, [&](int row, int piece) { return stage + PlaceOfA(row, piece); });
    FetchLines<kStep, kPieces, kThreads>(thread, b, [&](int k, int piece) { return stage + PlaceOfB(k, piece); });
  }

  FUSELAGE_DEVICE static void Multiply(const Params& p, Warp warp, uint32_t stage, Sums& sums) {
    FUSELAGE_UNROLL
    for (int half = 0; half < kStep / 32; ++half) {
      Lanes<Vector<uint32_t, 4>> a[kRowFragments];
      Lanes<uint32_t> b[kColumnPairs][2][2], offsets;
      FUSELAGE_UNROLL
      for (int i = 0; i < kRowFragments; ++i) {
        // 16 rows on it is as many bytes more; two pieces on, from the first two, it has another bit 5.
        warp.ForThreads([&](Thread thread) {
          const uint32_t first = stage + PlaceOfA(Row(warp) + thread.lane() % 16, thread.lane() / 16);
          offsets[thread] = (first ^ half * 32) + 16 * i * kStep;
        });
        warp.LoadMatrices(offsets, &a[i]);
      }
      FUSELAGE_UNROLL
      for (int j = 0; j < kColumnPairs; ++j) {
        // k in the order that a has it.
        warp.ForThreads([&](Thread thread) {
          const int matrix = thread.lane() / 8, row = thread.lane() % 8;
          const int k = matrix / 2 * 16 + row / 2 * 4 + matrix % 2 * 2 + row % 2;
          const uint32_t first = stage + PlaceOfB(k, Column(warp) / 16);
          offsets[thread] = (first ^ j * 16) + 32 * half * kStep;
        });
        fuselage::cuda::LoadColumns(warp, offsets, p.b_flip, b[j]);
      }
      FUSELAGE_UNROLL
      for (int i = 0; i < kRowFragments; ++i) {
        FUSELAGE_UNROLL
        for (int j = 0; j < 2 * kColumnPairs; ++j) {
          const Lanes<uint32_t>(&of_columns)[2] = b[j / 2][j % 2];
          warp.template MultiplyCodes<X>(a[i], of_columns[0], of_columns[1], &sums.products[i][j / 2][j % 2]);
        }
      }
      AddCodes(p, warp, a, b, sums);
    }
  }

  FUSELAGE_DEVICE static void AddCodes(const Params& p, Warp warp, const Lanes<Vector<uint32_t, 4>> (&a)[kRowFragments],
                                       const Lanes<uint32_t> (&b)[kColumnPairs][2][2], Sums& sums) {
    Lanes<Vector<uint32_t, 4>> ones;
    Lanes<uint32_t> one;
    warp.ForThreads([&](Thread thread) {
      one[thread] = Splat(1);
      ones[thread] = {{Splat(1), Splat(1), Splat(1), Splat(1)}};
    });
    FUSELAGE_UNROLL
    for (int own = 0; own < 2; ++own) {
      if (p.b.zero_point != 0 && warp.index() % kWarpsAcross == own) {
        FUSELAGE_UNROLL
        for (int i = own; i < kRowFragments; i += kWarpsAcross) {
          warp.template MultiplyCodes<X>(a[i], one, one, &sums.rows[i / kWarpsAcross]);
        }
      }
      if (p.a.zero_point != 0 && warp.index() / kWarpsAcross == own) {
        FUSELAGE_UNROLL
        for (int j = 0; j < kColumnPairs; ++j) {
          warp.template MultiplyCodes<X>(ones, b[j][own][0], b[j][own][1], &sums.columns[j]);
        }
      }
    }
  }

  // sum (a - z_a) * (b - z_b) = sum a*b - z_b * sum a - z_a * sum b + depth * z_a * z_b, modulo 2^32.
  FUSELAGE_DEVICE static void Store(Block& block, const Params& p, const Tile& tile, PerWarp<Sums, kWarps>& sums) {
    const auto z_a = static_cast<uint32_t>(p.a.zero_point), z_b = static_cast<uint32_t>(p.b.zero_point);
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        // All columns of a fragment of rows have a row's sum, and all rows of one of columns a column's.
        FUSELAGE_UNROLL
        for (int i = 0; i < 2 * (kRowFragments / kWarpsAcross); ++i) {
          if (thread.lane() % 4 != 0) continue;
          const int fragment = i / 2 * kWarpsAcross + warp.index() % kWarpsAcross;
          const int row = Row(warp) + 16 * fragment + i % 2 * 8 + thread.lane() / 4;
          const auto sum = static_cast<uint32_t>(sums[warp].rows[i / 2][thread].values[i % 2 * 2]);
          thread.StoreShared(kRowAddends + 4 * row, 0u - z_b * sum);
        }
        FUSELAGE_UNROLL
        for (int j = 0; j < 2 * kColumnPairs; ++j) {
          if (thread.lane() >= 4) continue;
          const int column = Column(warp) + j / 2 * 16 + thread.lane() * 4 + j % 2 * 2 + warp.index() / kWarpsAcross;
          const auto sum = static_cast<uint32_t>(sums[warp].columns[j / 2][thread].values[j % 2]);
          thread.StoreShared(kColumnAddends + 4 * column, z_a * (static_cast<uint32_t>(p.depth) * z_b - sum));
        }
      });
    });
    block.Phase(
        [&](Warp warp) { warp.ForThreads([&](Thread thread) { StoreSums(p, warp, thread, tile, sums[warp]); }); });
  }

  FUSELAGE_DEVICE static void StoreSums(const Params& p, Warp warp, Thread thread, const Tile& tile, Sums& sums) {
    const int column = Column(warp) + 4 * (thread.lane() % 4), left = p.columns - tile.first_column - column;
    Vector<uint32_t, 4> of_columns[kColumnPairs];
    FUSELAGE_UNROLL
    for (int j = 0; j < kColumnPairs; ++j) {
      of_columns[j] = thread.template LoadShared<Vector<uint32_t, 4>>(kColumnAddends + 4 * (column + 16 * j));
    }
    FUSELAGE_UNROLL
    for (int i = 0; i < 2 * kRowFragments; ++i) {
      const int row = Row(warp) + 8 * i + thread.lane() / 4;
      if (tile.first_row + row >= p.rows) continue;
      const auto of_row = thread.template LoadShared<uint32_t>(kRowAddends + 4 * row);
      const int64_t at = (tile.product * p.rows + tile.first_row + row) * p.columns + tile.first_column + column;
      FUSELAGE_UNROLL
      for (int j = 0; j < kColumnPairs; ++j) {
        Floats4 values;
        FUSELAGE_UNROLL
        for (int k = 0; k < 4; ++k) {
          const int32_t product = sums.products[i / 2][j][k % 2][thread].values[i % 2 * 2 + k / 2];
          const uint32_t sum = static_cast<uint32_t>(product) + of_row + of_columns[j].values[k];
          values.values[k] = fuselage::cuda::Rescale(static_cast<int32_t>(sum), p.multiplier);
        }
        StoreValues(thread, p.y, at + 16 * j, values, left - 16 * j);
      }
    }
  }
};

template <bool wide>
void LaunchOf(const LaunchParams& params, int blocks, void* stream) {
  const auto launch = [&](auto kernel) {
    using Kernel = decltype(kernel);
    fuselage::cuda::Launch<Kernel>({blocks, 1, 1}, Kernel::kSharedBytes, params, stream);
  };
  params.a_is_signed ? launch(Matmul<int8_t, wide>()) : launch(Matmul<uint8_t, wide>());
}

}  // namespace

void Launch(const LaunchParams& params, bool wide, int blocks, void* stream) {
  wide ? LaunchOf<true>(params, blocks, stream) : LaunchOf<false>(params, blocks, stream);
}

}  // namespace fuselage::int8::matmul::cuda
