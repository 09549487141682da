// block.h on the host: the same kernel, one warp and one thread after the other, with every access checked. Only
// block.h includes this.
#ifndef FUSELAGE_KERNELS_CUDA_EMULATED_BLOCK_H_
#define FUSELAGE_KERNELS_CUDA_EMULATED_BLOCK_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/cuda/emulated_cluster.h"

#define FUSELAGE_DEVICE inline
#define FUSELAGE_UNROLL
#define FUSELAGE_NO_UNROLL
#define FUSELAGE_UNROLL_BY_4

namespace fuselage::cuda {

constexpr bool kHasClusters = true;

inline int Recomputed(int x) { return x; }

class Block;

// Global memory and what was found wrong. One launch may load what it was given to read, and store each byte at most
// once; what another thread of it stored it may not load, since it could be first, unless a ticket says that it was
// not: the storing thread had a fence, then its block took a ticket, then the loading block took the same one, and the
// loading thread had a fence after that; where two threads of a block follow each other so, a barrier lies between.
// LoadConstant may load constants alone: all else a kernel of the same graph launch writes, and the path for constants
// need not see that. Before a warp has waited for earlier launches, it touches nothing but constants.
class Emulator {
 public:
  void AllowConstants(absl::string_view name, const void* data, int64_t bytes);
  void AllowReads(absl::string_view name, const void* data, int64_t bytes);
  void AllowWrites(absl::string_view name, void* data, int64_t bytes);
  // For TakeTicket alone. They are 0 before a launch, and have to be after it.
  void AllowTickets(absl::string_view name, uint32_t* data, int64_t count);

  // Runs all blocks of a grid, in no order that a kernel could rely on. `clusters`: as cuda::Launch.
  template <typename Kernel>
  void Launch(std::array<int, 3> grid, int shared_bytes, const typename Kernel::Params& params, bool clusters = false);

  // What the first mistake was; empty: none.
  const std::string& error() const { return error_; }
  // How many rows ldmatrix loaded from banks that another row of the same matrix needs: each costs a pass.
  int64_t matrix_conflicts() const { return matrix_conflicts_; }
  // Passes over shared memory's banks beyond the first, of what a warp's threads load, store and copy there by the same
  // line of code at the same time.
  int64_t shared_conflicts() const { return shared_conflicts_; }
  // What cp.async copied. Those of 16 bytes come from the L2 cache, whoever fetched the same before.
  int64_t copied_bytes() const { return copied_bytes_; }

 private:
  friend class Block;
  friend class Thread;
  friend class Warp;
  enum class Use { kConstants, kReads, kWrites, kTickets };
  // Who stored a byte in this launch: a block, counted from 1 (0: nobody yet), and a thread after so many fences.
  struct Writer {
    uint32_t block;
    uint16_t thread, fences;
  };
  struct Range {
    std::string name;
    const uint8_t* data;
    int64_t bytes;
    Use use;
    std::vector<Writer> writers;  // Of each byte that may be written,
    std::vector<bool> loaded;     // and whether this launch loaded it.
  };
  // By block: how many fences each of its threads had had when it took a ticket.
  using Fences = std::map<uint32_t, std::vector<uint16_t>>;

  void Allow(absl::string_view name, const void* data, int64_t bytes, Use use);
  Range* FindOrNull(const void* data, int64_t bytes);
  void BeginLaunch();
  void EndLaunch();
  static std::vector<std::array<int, 3>> Shuffled(const std::array<int, 3>& grid);
  bool MayLoad(Block& block, int thread, const void* data, int64_t bytes, bool as_constant);
  bool MayStore(const Writer& writer, void* data, int64_t bytes);
  bool MayTake(const uint32_t* ticket);
  void Fail(std::string what);

  std::vector<Range> ranges_;
  std::map<const uint32_t*, Fences> tickets_;  // Taken in this launch.
  uint32_t blocks_ = 0;                        // Begun in this launch.
  std::string error_;
  int64_t matrix_conflicts_ = 0;
  int64_t shared_conflicts_ = 0;
  int64_t copied_bytes_ = 0;
};

class Thread {
 public:
  Thread(Block& block, int index) : block_(block), index_(index) {}
  int index() const { return index_; }
  int lane() const { return index_ % kWarpSize; }

  template <typename T>
  T Load(const T* pointer) const;
  template <typename T>
  T LoadConstant(const T* pointer) const;
  template <typename T>
  void Store(T* pointer, const T& value) const;
  void Fence() const;
  uint32_t TakeTicket(uint32_t* ticket, uint32_t count) const;
  // `line`: of the caller.
  template <typename T>
  T LoadShared(uint32_t offset, int line = __builtin_LINE()) const;
  template <typename T>
  void StoreShared(uint32_t offset, const T& value, int line = __builtin_LINE()) const;
  template <int kBytes>
  void CopyAsync(uint32_t offset, const void* from, int line = __builtin_LINE()) const;
  void InitBarriers(uint32_t offset, int count) const;
  void ExpectBytes(uint32_t barrier, int bytes) const;
  void CopyBulk(uint32_t offset, const void* from, int bytes, uint32_t barrier) const;
  void CopyTile(uint32_t offset, const TileMap& map, int column, int row, uint32_t barrier) const;
  void Prefetch(const void* from, int bytes) const;
  void ShareWithCopies() const;
  void StoreInCluster(int z, uint32_t offset, const Vector<int32_t, 4>& value, uint32_t barrier) const;

 private:
  Block& block_;
  int index_;
};

template <typename T>
class Lanes {
 public:
  T& operator[](const Thread& thread) { return values_[thread.lane()]; }
  const T& operator[](const Thread& thread) const { return values_[thread.lane()]; }
  const std::array<T, kWarpSize>& values() const { return values_; }
  std::array<T, kWarpSize>& values() { return values_; }

 private:
  std::array<T, kWarpSize> values_;
};

class Warp {
 public:
  Warp(Block& block, int index) : block_(block), index_(index) {}
  int index() const { return index_; }

  template <typename F>
  void ForThreads(F f) const;
  void LoadMatrices(const Lanes<uint32_t>& offsets, Lanes<Vector<uint32_t, 4>>* fragments) const {
    LoadRows(offsets, /*transposed=*/false, fragments);
  }
  void LoadTransposed(const Lanes<uint32_t>& offsets, Lanes<Vector<uint32_t, 4>>* fragments) const {
    LoadRows(offsets, /*transposed=*/true, fragments);
  }
  template <typename A, typename B = int8_t>
  void MultiplyCodes(const Lanes<Vector<uint32_t, 4>>& a, const Lanes<uint32_t>& b0, const Lanes<uint32_t>& b1,
                     Lanes<Vector<int32_t, 4>>* acc) const;
  void BeginProducts() const {}
  void CommitProducts() const {}
  template <int kPending>
  void WaitForProducts() const {}
  void WaitForBytes(uint32_t barrier, int parity) const;
  void WaitForStores(uint32_t barrier, int parity) const { WaitForBytes(barrier, parity); }
  void ArriveInCluster() const;
  void WaitForCluster() const;
  template <typename X, int kFragments>
  void MultiplyInGroup(const Lanes<Vector<uint32_t, 4>>& a, uint32_t b, bool adds,
                       Lanes<Vector<int32_t, 4>> (&acc)[kFragments]) const {
    static_assert(kFragments == 8 || kFragments == 16);
    for (int i = 0; i < kFragments; ++i) {
      if (!adds) acc[i] = {};
      MultiplyBySharedRows<X>(a, b + 512 * i, &acc[i]);
    }
  }
  template <typename T>
  Lanes<T> Exchange(int mask, const Lanes<T>& values) const {
    Lanes<T> result;
    for (int lane = 0; lane < kWarpSize; ++lane) result.values()[lane] = values.values()[lane ^ mask];
    return result;
  }
  template <typename T>
  T Broadcast(int lane, const Lanes<T>& values) const {
    return values.values()[lane];
  }
  template <typename T>
  Lanes<T> ShiftUp(int lanes, const Lanes<T>& values) const {
    Lanes<T> result;
    for (int lane = 0; lane < kWarpSize; ++lane)
      result.values()[lane] = values.values()[lane < lanes ? lane : lane - lanes];
    return result;
  }
  template <typename F>
  void Rarely(bool condition, F f) const {
    if (condition) f();
  }
  void WaitForEarlier() const;
  void CommitCopies() const;
  template <int kPending>
  void WaitForCopies() const {
    WaitForAllBut(kPending);
  }

 private:
  void WaitForAllBut(int pending) const;
  void LoadRows(const Lanes<uint32_t>& offsets, bool transposed, Lanes<Vector<uint32_t, 4>>* fragments) const;
  template <typename X>
  void MultiplyBySharedRows(const Lanes<Vector<uint32_t, 4>>& a, uint32_t b, Lanes<Vector<int32_t, 4>>* acc) const;

  Block& block_;
  int index_;
};

template <typename T, int kWarps>
class PerWarp {
 public:
  T& operator[](const Warp& warp) { return values_[warp.index()]; }

 private:
  std::array<T, kWarps> values_;
};
template <typename T, int kWarps>
class PerThread {
 public:
  T& operator[](const Thread& thread) { return values_[thread.index()]; }

 private:
  std::array<T, kWarps * kWarpSize> values_;
};

class Block {
 public:
  // `cluster`: null where there are none.
  Block(Emulator& emulator, std::array<int, 3> index, int warps, int shared_bytes, bool waited,
        Cluster* cluster = nullptr);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  int x() const { return index_[0]; }
  int y() const { return index_[1]; }
  int z() const { return index_[2]; }

  template <typename F>
  void Phase(F f) {
    Part(f);
    ++phase_;
  }
  template <typename F>
  void Part(F f) {
    for (int warp = 0; warp < warps_; ++warp) f(Warp(*this, warp));
  }

 private:
  friend class Emulator;
  friend class Thread;
  friend class Warp;

  // Who last touched two bytes of shared memory: phase * kThreads + thread. Accesses within a phase must agree in the
  // thread, unless all are loads.
  struct Access {
    uint64_t stored, loaded;
  };
  static constexpr uint64_t kThreads = 2048;  // More than a block has.
  static constexpr uint64_t kSeveral = kThreads - 1;
  static constexpr uint64_t kNever = 0, kInFlight = 1;  // Phase 0 has no accesses.

  struct Copy {
    uint32_t offset, bytes;
    std::array<uint8_t, 16> data;
    int group;
  };
  struct Copies {
    std::vector<Copy> pending;
    int group = 0;  // That the next copy belongs to.
  };

  // An mbarrier: what is on its way, of the bytes that are expected since the last completion.
  struct Barrier {
    int thread;  // That made it: it alone starts copies.
    int completed = 0;
    int64_t expected = 0, bytes = 0;
    std::vector<std::pair<uint32_t, std::vector<uint8_t>>> copies;  // To an offset.
  };

  // Of shared memory, by a lane of the warp that ForThreads runs.
  struct Use {
    int line, lane;
    uint32_t offset, bytes;
  };

  // A ticket that a thread took, and what those who took it before had behind a fence.
  struct Ticket {
    int thread;
    uint64_t phase;
    Emulator::Fences known;
  };

  uint64_t Stamp(uint64_t thread) const { return phase_ * kThreads + thread; }
  bool InShared(uint32_t offset, uint32_t bytes, const char* what);
  void CountConflicts();
  void LoadShared(int thread, uint32_t offset, uint32_t bytes, void* to);
  void StoreShared(int thread, uint32_t offset, uint32_t bytes, const void* from);
  void CopyAsync(int thread, uint32_t offset, uint32_t bytes, const void* from);
  void CopyBulk(int thread, uint32_t offset, std::vector<uint8_t> data, uint32_t barrier);
  Barrier* FindBarrier(int thread, uint32_t barrier);
  void StoreInCluster(int warp, int z, uint32_t offset, std::vector<uint8_t> data, uint32_t barrier);
  void WaitForCluster(int warp);
  void WaitForBytes(uint32_t barrier, int parity);
  bool CheckStore(int thread, uint32_t offset, uint32_t bytes);
  // Has the thread's warp waited for earlier launches? `what` it does is a mistake otherwise.
  bool Waited(int thread, const char* what);
  bool LoadGlobal(int thread, const void* from, uint32_t bytes, void* to, bool as_constant = false);
  void StoreGlobal(int thread, void* to, uint32_t bytes, const void* from);
  void Fence(int thread);
  uint32_t TakeTicket(int thread, uint32_t* ticket, uint32_t count);
  // May the thread load what that one stored?
  bool Sees(int thread, const Emulator::Writer& writer) const;

  Emulator& emulator_;
  const std::array<int, 3> index_;
  const uint32_t number_;  // In this launch, from 1 on.
  const int warps_;
  Cluster* const cluster_;
  uint64_t arrived_in_ = 0;        // The phase in which the last warp arrived in the cluster.
  std::vector<bool> has_cluster_;  // Has a warp waited for it?
  uint64_t phase_ = 1;
  std::vector<uint8_t> shared_;
  std::vector<Access> accesses_;
  std::vector<bool> waited_;  // Has a warp, for earlier launches?
  std::map<uint32_t, Barrier> barriers_;
  std::vector<uint64_t> shared_since_;  // The phase in which a thread last shared with copies what it had stored.
  std::vector<Use> uses_;
  std::vector<Copies> copies_;                 // One for each thread.
  std::vector<std::vector<uint64_t>> fences_;  // The same: the phases of its fences,
  std::vector<size_t> seen_;                   // and how many tickets came before the last of them.
  std::vector<Ticket> tickets_;
};

template <typename T>
T Thread::Load(const T* pointer) const {
  T value;
  if (!block_.LoadGlobal(index_, pointer, sizeof(T), &value)) std::memset(&value, 0, sizeof(T));
  return value;
}
template <typename T>
T Thread::LoadConstant(const T* pointer) const {
  T value;
  if (!block_.LoadGlobal(index_, pointer, sizeof(T), &value, /*as_constant=*/true)) std::memset(&value, 0, sizeof(T));
  return value;
}
template <typename T>
void Thread::Store(T* pointer, const T& value) const {
  block_.StoreGlobal(index_, pointer, sizeof(T), &value);
}
inline void Thread::Fence() const { block_.Fence(index_); }
inline uint32_t Thread::TakeTicket(uint32_t* ticket, uint32_t count) const {
  return block_.TakeTicket(index_, ticket, count);
}
template <typename F>
void Warp::ForThreads(F f) const {
  for (int lane = 0; lane < kWarpSize; ++lane) f(Thread(block_, index_ * kWarpSize + lane));
  block_.CountConflicts();
}
template <typename T>
T Thread::LoadShared(uint32_t offset, int line) const {
  T value;
  block_.uses_.push_back({line, lane(), offset, sizeof(T)});
  block_.LoadShared(index_, offset, sizeof(T), &value);
  return value;
}
template <typename T>
void Thread::StoreShared(uint32_t offset, const T& value, int line) const {
  block_.uses_.push_back({line, lane(), offset, sizeof(T)});
  block_.StoreShared(index_, offset, sizeof(T), &value);
}
template <int kBytes>
void Thread::CopyAsync(uint32_t offset, const void* from, int line) const {
  static_assert(kBytes == 8 || kBytes == 16);
  block_.uses_.push_back({line, lane(), offset, kBytes});
  block_.CopyAsync(index_, offset, kBytes, from);
}

template <typename Kernel>
void Emulator::Launch(std::array<int, 3> grid, int shared_bytes, const typename Kernel::Params& params, bool clusters) {
  if (clusters && grid[2] > kMostOfCluster) Fail("more blocks than a cluster has");
  BeginLaunch();
  const int blocks = clusters ? grid[2] : 1;
  for (const std::array<int, 3>& index : Shuffled({grid[0], grid[1], grid[2] / blocks})) {
    if (!error_.empty()) return;
    Cluster cluster(blocks, Kernel::kWarps);
    cluster.Run([&](int rank) {
      Block block(*this, {index[0], index[1], index[2] + rank}, Kernel::kWarps, shared_bytes, !kWaitsOf<Kernel>,
                  clusters ? &cluster : nullptr);
      Kernel::Run(block, params);
    });
  }
  EndLaunch();
}

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_EMULATED_BLOCK_H_
