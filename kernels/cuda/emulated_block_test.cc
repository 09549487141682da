// The emulation computes what the PTX ISA says, and catches each kind of mistake.
#include <cstdint>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/block.h"

namespace fuselage::cuda {
namespace {

using ::testing::HasSubstr;

// Rows of 32 codes through cp.async, ldmatrix and mma: C[16][8] = A[16][32] * B[8][32]^T.
template <typename X>
struct Product {
  static constexpr int kWarps = 1;
  struct Params {
    const X* a;
    const int8_t* b;
    int32_t* c;
  };
  static void Run(Block& block, const Params& params) {
    Lanes<Vector<int32_t, 4>> acc;
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        acc[thread] = {};
        thread.CopyAsync<16>(16 * thread.index(), params.a + 16 * thread.index());
        if (thread.index() < 16) thread.CopyAsync<16>(512 + 16 * thread.index(), params.b + 16 * thread.index());
      });
      warp.CommitCopies();
      warp.WaitForCopies<0>();
    });
    block.Phase([&](Warp warp) {
      Lanes<uint32_t> offsets, b0, b1;
      Lanes<Vector<uint32_t, 4>> a, b;
      warp.ForThreads([&](Thread thread) {
        const int matrix = thread.lane() / 8, row = thread.lane() % 8;
        offsets[thread] = 32 * (row + 8 * (matrix % 2)) + 16 * (matrix / 2);
      });
      warp.LoadMatrices(offsets, &a);
      warp.ForThreads(
          [&](Thread thread) { offsets[thread] = 512 + 32 * (thread.lane() % 8) + 16 * (thread.lane() / 8 % 2); });
      warp.LoadMatrices(offsets, &b);
      warp.ForThreads([&](Thread thread) {
        b0[thread] = b[thread].values[0];
        b1[thread] = b[thread].values[1];
      });
      warp.MultiplyCodes<X>(a, b0, b1, &acc);
      warp.ForThreads([&](Thread thread) {
        for (int i = 0; i < 4; ++i) {
          thread.Store(params.c + (thread.lane() / 4 + 8 * (i / 2)) * 8 + thread.lane() % 4 * 2 + i % 2,
                       acc[thread].values[i]);
        }
      });
    });
  }
};

template <typename X>
void ExpectProduct() {
  std::mt19937 random(7);
  alignas(16) X a[16][32];
  alignas(16) int8_t b[8][32];
  alignas(16) int32_t c[16][8];
  for (auto& row : a) {
    for (X& x : row) x = static_cast<X>(random());
  }
  for (auto& row : b) {
    for (int8_t& w : row) w = static_cast<int8_t>(random());
  }
  Emulator emulator;
  emulator.AllowReads("a", a, sizeof(a));
  emulator.AllowReads("b", b, sizeof(b));
  emulator.AllowWrites("c", c, sizeof(c));
  emulator.Launch<Product<X>>({1, 1, 1}, 768, {&a[0][0], &b[0][0], &c[0][0]});
  ASSERT_EQ(emulator.error(), "");
  // Rows of 32 bytes: four lie in different banks. Four matrices of A, one of B that counts four times.
  EXPECT_EQ(emulator.matrix_conflicts(), 8 * 4);
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      int32_t sum = 0;
      for (int k = 0; k < 32; ++k) sum += a[m][k] * b[n][k];
      EXPECT_EQ(c[m][n], sum) << m << "," << n;
    }
  }
}

TEST(EmulatedBlockTest, MultipliesFragments) {
  ExpectProduct<uint8_t>();
  ExpectProduct<int8_t>();
}

enum class Mistake {
  kNone,
  kUninitialized,
  kRaceLoad,
  kRaceStore,
  kStoreAfterLoad,
  kNoWait,
  kNeverWaited,
  kOutsideShared,
  kMisalignedShared,
  kOutsideGlobal,
  kMisalignedGlobal,
  kWritesInput,
  kStoresTwice,
  kLoadsOutput,
  kConstantInput,
};

struct Mistaken {
  static constexpr int kWarps = 2;
  struct Params {
    Mistake mistake;
    const uint32_t* x;  // [64]
    uint32_t* y;        // [64]
  };
  static void Run(Block& block, const Params& params) {
    const auto is = [&](Mistake mistake) { return params.mistake == mistake; };
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const int i = thread.index();
        if (is(Mistake::kUninitialized) && i == 5) return;
        thread.StoreShared(4 * i, i);
        if (is(Mistake::kRaceLoad) && i == 40) thread.LoadShared<int>(4 * 3);
        if (is(Mistake::kRaceStore) && i == 40) thread.StoreShared(4 * 3, 1);
        if (is(Mistake::kOutsideShared) && i == 63) thread.StoreShared(256, 1);
        if (is(Mistake::kMisalignedShared) && i == 2) thread.LoadShared<int>(4 * i + 2);
      });
    });
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const int i = thread.index();
        const int other = thread.LoadShared<int>(4 * (63 - i));
        if (is(Mistake::kStoreAfterLoad)) thread.StoreShared(4 * i, other);
        thread.Store(params.y + i, static_cast<uint32_t>(other) + thread.Load(params.x + i));
        if (is(Mistake::kOutsideGlobal) && i == 63) thread.Load(params.x + 64);
        if (is(Mistake::kMisalignedGlobal)) {
          thread.Load(reinterpret_cast<const uint32_t*>(reinterpret_cast<const uint8_t*>(params.x) + 2));
        }
        if (is(Mistake::kWritesInput)) thread.Store(const_cast<uint32_t*>(params.x), 1u);
        if (is(Mistake::kStoresTwice) && i == 63) thread.Store(params.y, 1u);
        if (is(Mistake::kLoadsOutput) && i == 63) thread.Load(params.y);
        if (is(Mistake::kConstantInput)) thread.LoadConstant(params.x + i);
      });
    });
    if (!is(Mistake::kNoWait) && !is(Mistake::kNeverWaited)) return;
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        if (thread.index() < 16) thread.CopyAsync<16>(16 * thread.index(), params.x + 4 * thread.index());
      });
      warp.CommitCopies();
    });
    if (is(Mistake::kNeverWaited)) return;
    block.Phase(
        [&](Warp warp) { warp.ForThreads([&](Thread thread) { thread.LoadShared<int>(4 * thread.index()); }); });
  }
};

std::string ErrorOf(Mistake mistake) {
  alignas(16) uint32_t x[68] = {}, y[64];  // The end of x is not given to the kernel.
  Emulator emulator;
  emulator.AllowReads("x", x, 256);
  emulator.AllowWrites("y", y, sizeof(y));
  emulator.Launch<Mistaken>({1, 1, 1}, 256, {mistake, x, y});
  return emulator.error();
}

TEST(EmulatedBlockTest, CatchesMistakes) {
  EXPECT_EQ(ErrorOf(Mistake::kNone), "");
  EXPECT_THAT(ErrorOf(Mistake::kUninitialized), HasSubstr("nobody stored"));
  EXPECT_THAT(ErrorOf(Mistake::kRaceLoad), HasSubstr("another thread stores in this phase"));
  EXPECT_THAT(ErrorOf(Mistake::kRaceStore), HasSubstr("another thread uses in this phase"));
  EXPECT_THAT(ErrorOf(Mistake::kStoreAfterLoad), HasSubstr("another thread"));
  EXPECT_THAT(ErrorOf(Mistake::kNoWait), HasSubstr("copy to it is pending"));
  EXPECT_THAT(ErrorOf(Mistake::kNeverWaited), HasSubstr("never waited for"));
  EXPECT_THAT(ErrorOf(Mistake::kOutsideShared), HasSubstr("outside of 256"));
  EXPECT_THAT(ErrorOf(Mistake::kMisalignedShared), HasSubstr("misaligned"));
  EXPECT_THAT(ErrorOf(Mistake::kOutsideGlobal), HasSubstr("outside of global memory"));
  EXPECT_THAT(ErrorOf(Mistake::kMisalignedGlobal), HasSubstr("not aligned"));
  EXPECT_THAT(ErrorOf(Mistake::kWritesInput), HasSubstr("stores 4 bytes to x"));
  EXPECT_THAT(ErrorOf(Mistake::kStoresTwice), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf(Mistake::kLoadsOutput), HasSubstr("which the same launch stores"));
  EXPECT_THAT(ErrorOf(Mistake::kConstantInput), HasSubstr("of x as a constant"));
}

// A constant, and lanes' values of each other.
struct Shuffled {
  static constexpr int kWarps = 1;
  struct Params {
    const int* x;
    int* y;  // [2][32]
  };
  static void Run(Block& block, const Params& params) {
    block.Phase([&](Warp warp) {
      Lanes<int> x;
      warp.ForThreads([&](Thread thread) { x[thread] = thread.LoadConstant(params.x + thread.lane()); });
      const Lanes<int> exchanged = warp.Exchange(5, x);
      const int fourth = warp.Broadcast(4, x);
      warp.ForThreads([&](Thread thread) {
        thread.Store(params.y + thread.lane(), exchanged[thread]);
        thread.Store(params.y + 32 + thread.lane(), fourth);
      });
    });
  }
};

TEST(EmulatedBlockTest, LanesExchangeValues) {
  int x[32], y[64];
  for (int i = 0; i < 32; ++i) x[i] = 100 + i;
  Emulator emulator;
  emulator.AllowConstants("x", x, sizeof(x));
  emulator.AllowWrites("y", y, sizeof(y));
  emulator.Launch<Shuffled>({1, 1, 1}, 0, {x, y});
  ASSERT_EQ(emulator.error(), "");
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(y[i], 100 + (i ^ 5));
    EXPECT_EQ(y[32 + i], 104);
  }
}

}  // namespace
}  // namespace fuselage::cuda
