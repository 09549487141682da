// The emulation computes what the PTX ISA says, and catches each kind of mistake.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/fragments.h"

namespace fuselage::cuda {
namespace {

using ::testing::HasSubstr;

// Rows of 32 codes through cp.async, ldmatrix and mma: C[16][8] = A[16][32] * B[8][32]^T.
template <typename A, typename B>
struct Product {
  static constexpr int kWarps = 1;
  struct Params {
    const A* a;
    const B* b;
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
      warp.MultiplyCodes<A, B>(a, b0, b1, &acc);
      warp.ForThreads([&](Thread thread) {
        for (int i = 0; i < 4; ++i) {
          thread.Store(params.c + (thread.lane() / 4 + 8 * (i / 2)) * 8 + thread.lane() % 4 * 2 + i % 2,
                       acc[thread].values[i]);
        }
      });
    });
  }
};

template <typename A, typename B>
void ExpectProduct() {
  std::mt19937 random(7);
  alignas(16) A a[16][32];
  alignas(16) B b[8][32];
  alignas(16) int32_t c[16][8];
  for (auto& row : a) {
    for (A& x : row) x = static_cast<A>(random());
  }
  for (auto& row : b) {
    for (B& w : row) w = static_cast<B>(random());
  }
  Emulator emulator;
  emulator.AllowReads("a", a, sizeof(a));
  emulator.AllowReads("b", b, sizeof(b));
  emulator.AllowWrites("c", c, sizeof(c));
  emulator.Launch<Product<A, B>>({1, 1, 1}, 768, {&a[0][0], &b[0][0], &c[0][0]});
  ASSERT_EQ(emulator.error(), "");
  EXPECT_EQ(emulator.copied_bytes(), sizeof(a) + sizeof(b));
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
  ExpectProduct<uint8_t, int8_t>();
  ExpectProduct<int8_t, int8_t>();
  ExpectProduct<int8_t, uint8_t>();
}

// C[16][16] = A[16][32] * B[32][16], with B's columns from rows of codes; C less what 0x80 adds to B.
struct ProductOfColumns {
  static constexpr int kWarps = 1;
  struct Params {
    const uint8_t *a, *b;
    int32_t* c;
  };
  static void Run(Block& block, const Params& params) {
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        thread.CopyAsync<16>(16 * thread.index(), params.a + 16 * thread.index());
        thread.CopyAsync<16>(512 + 16 * thread.index(), params.b + 16 * thread.index());
      });
      warp.CommitCopies();
      warp.WaitForCopies<0>();
    });
    block.Phase([&](Warp warp) {
      Lanes<uint32_t> offsets, b[2][2];
      Lanes<Vector<uint32_t, 4>> a;
      Lanes<Vector<int32_t, 4>> sums[2];
      warp.ForThreads([&](Thread thread) {
        offsets[thread] = 32 * (thread.lane() % 16) + 16 * (thread.lane() / 16);
        sums[0][thread] = sums[1][thread] = {};
      });
      warp.LoadMatrices(offsets, &a);
      warp.ForThreads([&](Thread thread) {
        const int matrix = thread.lane() / 8, row = thread.lane() % 8;
        offsets[thread] = 512 + 16 * (matrix / 2 * 16 + row / 2 * 4 + matrix % 2 * 2 + row % 2);
      });
      LoadColumns(warp, offsets, 0x80, b);
      for (int i : {0, 1}) warp.MultiplyCodes<uint8_t>(a, b[i][0], b[i][1], &sums[i]);
      warp.ForThreads([&](Thread thread) {
        for (int i = 0; i < 8; ++i) {
          const int row = thread.lane() / 4 + i / 4 * 8, column = 4 * (thread.lane() % 4) + i % 4;
          thread.Store(params.c + 16 * row + column, sums[i % 2][thread].values[i / 4 * 2 + i % 4 / 2]);
        }
      });
    });
  }
};

TEST(EmulatedBlockTest, LoadsColumnsOfRows) {
  std::mt19937 random(7);
  alignas(16) uint8_t a[16][32], b[32][16];
  alignas(16) int32_t c[16][16];
  for (auto& row : a) {
    for (uint8_t& x : row) x = static_cast<uint8_t>(random());
  }
  for (auto& row : b) {
    for (uint8_t& x : row) x = static_cast<uint8_t>(random());
  }
  Emulator emulator;
  emulator.AllowReads("a", a, sizeof(a));
  emulator.AllowReads("b", b, sizeof(b));
  emulator.AllowWrites("c", c, sizeof(c));
  emulator.Launch<ProductOfColumns>({1, 1, 1}, 1024, {&a[0][0], &b[0][0], &c[0][0]});
  ASSERT_EQ(emulator.error(), "");
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 16; ++n) {
      int32_t sum = 0;
      for (int k = 0; k < 32; ++k) sum += a[m][k] * (b[k][n] - 128);
      EXPECT_EQ(c[m][n], sum) << m << "," << n;
    }
  }
}

// Lane i stores a T at `apart` * i; those of odd lanes come later where they take a branch of their own.
template <typename T>
struct Stores {
  static constexpr int kWarps = 1;
  struct Params {
    int apart;
    bool diverge;
  };
  static void Run(Block& block, const Params& params) {
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        if (params.diverge && thread.lane() % 2 == 1) {
          thread.StoreShared(params.apart * thread.lane(), T());
        } else {
          thread.StoreShared(params.apart * thread.lane(), T());
        }
      });
    });
  }
};

template <typename T>
int64_t Conflicts(int apart, bool diverge = false) {
  Emulator emulator;
  emulator.Launch<Stores<T>>({1, 1, 1}, 4096, {apart, diverge});
  EXPECT_EQ(emulator.error(), "");
  return emulator.shared_conflicts();
}

TEST(EmulatedBlockTest, CountsBankConflicts) {
  EXPECT_EQ(Conflicts<uint16_t>(2), 0);
  EXPECT_EQ(Conflicts<uint32_t>(4), 0);
  EXPECT_EQ(Conflicts<uint32_t>(8), 1);
  EXPECT_EQ(Conflicts<uint32_t>(128), 31);
  EXPECT_EQ(Conflicts<uint32_t>(8, /*diverge=*/true), 2);  // One for each branch.
  EXPECT_EQ(Conflicts<uint32_t>(20), 0);
  using Words = Vector<uint32_t, 4>;
  EXPECT_EQ(Conflicts<Words>(16), 0);
  EXPECT_EQ(Conflicts<Words>(32), 4);  // Four passes of eight lanes.
  EXPECT_EQ(Conflicts<Words>(80), 0);
  EXPECT_EQ((Conflicts<Vector<uint32_t, 2>>(16)), 2);
}

// Copies a constant and an input to shared memory, and stores their sum; waits before it does this part, in some warps.
struct Waiting {
  static constexpr int kWarps = 2;
  static constexpr bool kWaits = true;
  enum Before { kConstant, kInput, kSum, kNothing };
  struct Params {
    Before wait;
    int waiting_warps;
    const uint32_t *constants, *input;  // [64]
    uint32_t* sum;                      // [64]
  };
  static void Run(Block& block, const Params& params) {
    block.Phase([&](Warp warp) {
      const auto wait = [&](Before at) {
        if (params.wait == at && warp.index() < params.waiting_warps) warp.WaitForEarlier();
      };
      Lanes<uint32_t> sums;
      wait(kConstant);
      warp.ForThreads([&](Thread thread) { sums[thread] = thread.LoadConstant(params.constants + thread.index()); });
      wait(kInput);
      warp.ForThreads([&](Thread thread) { sums[thread] += thread.Load(params.input + thread.index()); });
      wait(kSum);
      warp.ForThreads([&](Thread thread) { thread.Store(params.sum + thread.index(), sums[thread]); });
    });
  }
};

std::string ErrorOf(Waiting::Before wait, int waiting_warps = Waiting::kWarps) {
  const std::vector<uint32_t> constants(64, 3), input(64, 4);
  std::vector<uint32_t> sum(64);
  Emulator emulator;
  emulator.AllowConstants("constants", constants.data(), 256);
  emulator.AllowReads("input", input.data(), 256);
  emulator.AllowWrites("sum", sum.data(), 256);
  emulator.Launch<Waiting>({1, 1, 1}, 0, {wait, waiting_warps, constants.data(), input.data(), sum.data()});
  return emulator.error();
}

TEST(EmulatedBlockTest, ConstantsAloneDoNotWaitForEarlierLaunches) {
  EXPECT_EQ(ErrorOf(Waiting::kConstant), "");
  EXPECT_EQ(ErrorOf(Waiting::kInput), "");
  EXPECT_EQ(ErrorOf(Waiting::kSum), "loads before having waited for earlier launches");
  EXPECT_EQ(ErrorOf(Waiting::kNothing), "loads before having waited for earlier launches");
  EXPECT_EQ(ErrorOf(Waiting::kInput, /*waiting_warps=*/1), "loads before having waited for earlier launches");
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

enum class Lapse {
  kNone,
  kNoTicket,
  kNoFenceBefore,
  kFenceBeforeStore,
  kNoBarrierBefore,
  kNoFenceAfter,
  kFenceBeforeTicket,
  kNoBarrierAfter,
  kFirstInsteadOfLast,
  kWrongCount,
  kLoadsTicket,
  kTicketElsewhere,
};

// The block that comes last adds what all have stored.
struct SumOfBlocks {
  static constexpr int kWarps = 2;
  static constexpr int kThreads = kWarps * kWarpSize;
  struct Params {
    Lapse lapse;
    int blocks;
    uint32_t* partial;  // [blocks][kThreads]
    uint32_t* sums;     // [kThreads]
    uint32_t* ticket;
  };
  static void Run(Block& block, const Params& p) {
    const auto is = [&](Lapse lapse) { return p.lapse == lapse; };
    bool sums_up = false;
    const auto take = [&](Thread thread) {
      if (thread.index() != 0) return;
      if (is(Lapse::kLoadsTicket)) thread.Load(p.ticket);
      const int count = is(Lapse::kWrongCount) ? p.blocks + 1 : p.blocks;
      const uint32_t before = thread.TakeTicket(is(Lapse::kTicketElsewhere) ? p.sums : p.ticket, count);
      sums_up = is(Lapse::kNoTicket) || before == (is(Lapse::kFirstInsteadOfLast) ? 0u : p.blocks - 1u);
    };
    const auto sum = [&](Thread thread) {
      if (!sums_up) return;
      if (!is(Lapse::kNoFenceAfter) && !is(Lapse::kFenceBeforeTicket)) thread.Fence();
      uint32_t sum = 0;
      for (int i = 0; i < p.blocks; ++i) sum += thread.Load(p.partial + i * kThreads + thread.index());
      thread.Store(p.sums + thread.index(), sum);
    };
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        if (is(Lapse::kFenceBeforeStore)) thread.Fence();
        thread.Store(p.partial + block.x() * kThreads + thread.index(), 100u * block.x() + thread.index());
        if (!is(Lapse::kNoFenceBefore) && !is(Lapse::kFenceBeforeStore)) thread.Fence();
        if (is(Lapse::kNoBarrierBefore)) take(thread);
      });
    });
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        if (is(Lapse::kFenceBeforeTicket)) thread.Fence();
        if (!is(Lapse::kNoBarrierBefore)) take(thread);
        if (is(Lapse::kNoBarrierAfter)) sum(thread);
      });
    });
    if (is(Lapse::kNoBarrierAfter)) return;
    block.Phase([&](Warp warp) { warp.ForThreads(sum); });
  }
};

std::string ErrorOf(Lapse lapse) {
  constexpr int kBlocks = 5, kThreads = SumOfBlocks::kThreads;
  uint32_t partial[kBlocks * kThreads] = {}, sums[kThreads], ticket = 0;
  Emulator emulator;
  emulator.AllowWrites("partial", partial, sizeof(partial));
  emulator.AllowWrites("sums", sums, sizeof(sums));
  emulator.AllowTickets("ticket", &ticket, 1);
  for (int launch = 0; launch < 2; ++launch) {
    emulator.Launch<SumOfBlocks>({kBlocks, 1, 1}, 0, {lapse, kBlocks, partial, sums, &ticket});
    if (!emulator.error().empty()) return emulator.error();
    for (int i = 0; i < kThreads; ++i) EXPECT_EQ(sums[i], 100 * (kBlocks * (kBlocks - 1) / 2) + kBlocks * i);
  }
  return "";
}

TEST(EmulatedBlockTest, CatchesLapsesBetweenBlocks) {
  EXPECT_EQ(ErrorOf(Lapse::kNone), "");
  for (const Lapse lapse : {Lapse::kNoFenceBefore, Lapse::kFenceBeforeStore, Lapse::kNoBarrierBefore,
                            Lapse::kNoFenceAfter, Lapse::kFenceBeforeTicket, Lapse::kNoBarrierAfter}) {
    EXPECT_THAT(ErrorOf(lapse), HasSubstr("of partial, which the same launch stores, without fence"))
        << static_cast<int>(lapse);
  }
  EXPECT_THAT(ErrorOf(Lapse::kNoTicket), HasSubstr("of partial, which the same launch"));
  EXPECT_THAT(ErrorOf(Lapse::kFirstInsteadOfLast), HasSubstr("of partial, which the same launch has loaded"));
  EXPECT_THAT(ErrorOf(Lapse::kWrongCount), HasSubstr("leaves 5 at byte 0 of ticket, wanted 0"));
  EXPECT_THAT(ErrorOf(Lapse::kLoadsTicket), HasSubstr("loads 4 bytes of ticket"));
  EXPECT_THAT(ErrorOf(Lapse::kTicketElsewhere), HasSubstr("takes a ticket where there is none"));
}

// A constant, and lanes' values of each other.
struct Shuffled {
  static constexpr int kWarps = 1;
  struct Params {
    const int* x;
    int* y;  // [3][32]
  };
  static void Run(Block& block, const Params& params) {
    block.Phase([&](Warp warp) {
      Lanes<int> x;
      warp.ForThreads([&](Thread thread) { x[thread] = thread.LoadConstant(params.x + thread.lane()); });
      const Lanes<int> exchanged = warp.Exchange(5, x);
      const Lanes<int> shifted = warp.ShiftUp(3, x);
      const int fourth = warp.Broadcast(4, x);
      warp.ForThreads([&](Thread thread) {
        thread.Store(params.y + thread.lane(), exchanged[thread]);
        thread.Store(params.y + 32 + thread.lane(), fourth);
        thread.Store(params.y + 64 + thread.lane(), shifted[thread]);
      });
    });
  }
};

TEST(EmulatedBlockTest, LanesExchangeValues) {
  int x[32], y[96];
  for (int i = 0; i < 32; ++i) x[i] = 100 + i;
  Emulator emulator;
  emulator.AllowConstants("x", x, sizeof(x));
  emulator.AllowWrites("y", y, sizeof(y));
  emulator.Launch<Shuffled>({1, 1, 1}, 0, {x, y});
  ASSERT_EQ(emulator.error(), "");
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(y[i], 100 + (i ^ 5));
    EXPECT_EQ(y[32 + i], 104);
    EXPECT_EQ(y[64 + i], 100 + (i < 3 ? i : i - 3));
  }
}

// C[64][64] = A[64][64] * B[64][64]^T by a group of four warps: A by CopyTile, B by CopyBulk of rows that lie permuted.
struct ProductInGroup {
  static constexpr int kWarps = 4;
  enum class Lapse { kNone, kNoWait, kFewerBytes, kTwice, kByAnother, kUnaligned, kNotShared, kOverBarrier };
  struct Params {
    Lapse lapse;
    TileMap a;
    const int8_t* b;
    int32_t* c;
  };
  static constexpr uint32_t kBarrierA = 0, kBarrierB = 8, kA = 512, kB = 512 + 4096;

  static void Run(Block& block, const Params& params) {
    const Lapse lapse = params.lapse;
    // What the copies overwrite.
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        thread.StoreShared(kB + 8 * thread.index(), uint64_t{0});
        if (lapse != Lapse::kNotShared || thread.index() != 5) thread.ShareWithCopies();
      });
    });
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        if (thread.index() == 0) {
          thread.InitBarriers(0, 2);
          if (lapse == Lapse::kOverBarrier) thread.StoreShared(kBarrierB + 4, uint32_t{0});
          thread.ExpectBytes(kBarrierA, 4096);
          thread.CopyTile(kA, params.a, /*column=*/0, /*row=*/-8, kBarrierA);
          thread.ExpectBytes(kBarrierB, lapse == Lapse::kFewerBytes ? 2048 : 4096);
          if (lapse == Lapse::kTwice) thread.ExpectBytes(kBarrierB, 4096);
        }
        if (thread.index() == (lapse == Lapse::kByAnother ? 1 : 0)) {
          thread.CopyBulk(lapse == Lapse::kUnaligned ? kB + 16 : kB, params.b, 4096, kBarrierB);
        }
      });
    });
    block.Phase([&](Warp warp) {
      warp.WaitForBytes(kBarrierA, 0);
      if (lapse != Lapse::kNoWait) warp.WaitForBytes(kBarrierB, 0);
      Lanes<Vector<int32_t, 4>> sums[8];
      for (auto& of_columns : sums) of_columns = {};
      for (int half = 0; half < 2; ++half) {
        Lanes<uint32_t> offsets;
        Lanes<Vector<uint32_t, 4>> a;
        warp.ForThreads([&](Thread thread) {
          const int row = 16 * warp.index() + thread.lane() % 16, piece = 2 * half + thread.lane() / 16;
          offsets[thread] = kA + 64 * row + 16 * (piece ^ (row / 2 % 4));
        });
        warp.LoadMatrices(offsets, &a);
        warp.BeginProducts();
        warp.MultiplyInGroup<uint8_t>(a, (lapse == Lapse::kUnaligned ? kB + 16 : kB) + 32 * half, /*adds=*/half > 0,
                                      sums);
        warp.CommitProducts();
      }
      warp.WaitForProducts<0>();
      warp.ForThreads([&](Thread thread) {
        for (int i = 0; i < 32; ++i) {
          const int row = 16 * warp.index() + thread.lane() / 4 + i % 4 / 2 * 8;
          const int column = i / 4 * 8 + thread.lane() % 4 * 2 + i % 2;
          thread.Store(params.c + 64 * row + column, sums[i / 4][thread].values[i % 4]);
        }
      });
    });
  }
};

std::string ErrorOf(ProductInGroup::Lapse lapse) {
  // Rows of A before the first, after the 50 that there are, and columns from the 48th on, are 0.
  constexpr int kRows = 50, kColumns = 48;
  std::mt19937 random(3);
  alignas(16) uint8_t a[kRows][kColumns];
  alignas(16) int8_t b[64][64];
  int32_t c[64][64];
  for (auto& row : a) {
    for (uint8_t& x : row) x = static_cast<uint8_t>(random());
  }
  for (auto& row : b) {
    for (int8_t& w : row) w = static_cast<int8_t>(random());
  }
  Emulator emulator;
  emulator.AllowReads("a", a, sizeof(a));
  emulator.AllowConstants("b", b, sizeof(b));
  emulator.AllowWrites("c", c, sizeof(c));
  const TileMap map = {{}, a[0], kRows, kColumns, /*box_rows=*/64};
  emulator.Launch<ProductInGroup>({1, 1, 1}, 512 + 2 * 4096 + 16, {lapse, map, b[0], c[0]});
  if (!emulator.error().empty()) return emulator.error();
  EXPECT_EQ(emulator.matrix_conflicts(), 0);
  EXPECT_EQ(emulator.copied_bytes(), 2 * 4096);
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 64; ++column) {
      int32_t wanted = 0;
      for (int k = 0; k < kColumns; ++k) {
        // Piece k / 16 of B's row lies where its number is xored with row / 2.
        const int8_t w = b[column][(k / 16 ^ column / 2 % 4) * 16 + k % 16];
        if (row >= 8 && row - 8 < kRows) wanted += a[row - 8][k] * w;
      }
      EXPECT_EQ(c[row][column], wanted) << row << ", " << column;
    }
  }
  return "";
}

TEST(EmulatedBlockTest, GroupsMultiplyWhatBulkCopiesBring) {
  using Lapse = ProductInGroup::Lapse;
  EXPECT_EQ(ErrorOf(Lapse::kNone), "");
  EXPECT_THAT(ErrorOf(Lapse::kNoWait), HasSubstr("while a copy to it is pending"));
  EXPECT_THAT(ErrorOf(Lapse::kFewerBytes), HasSubstr("waits for 2048 bytes, of which 4096 are on their way"));
  EXPECT_THAT(ErrorOf(Lapse::kTwice), HasSubstr("expects bytes before"));
  EXPECT_THAT(ErrorOf(Lapse::kByAnother), HasSubstr("which it has not made"));
  EXPECT_THAT(ErrorOf(Lapse::kUnaligned), HasSubstr("want a multiple of 512"));
  EXPECT_THAT(ErrorOf(Lapse::kNotShared), HasSubstr("copies over what thread 5 stored"));
  EXPECT_THAT(ErrorOf(Lapse::kOverBarrier), HasSubstr("over a barrier"));
}

}  // namespace
}  // namespace fuselage::cuda
