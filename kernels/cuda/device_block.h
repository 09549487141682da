// block.h on the device. Only block.h includes this.
#ifndef FUSELAGE_KERNELS_CUDA_DEVICE_BLOCK_H_
#define FUSELAGE_KERNELS_CUDA_DEVICE_BLOCK_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#define FUSELAGE_DEVICE __device__ __forceinline__
// Before a loop: what it indexes stays in registers.
#define FUSELAGE_UNROLL _Pragma("unroll")
// Before a loop whose registers are dear.
#define FUSELAGE_NO_UNROLL _Pragma("unroll 1")
// Before a loop whose loads should not wait for each other.
#define FUSELAGE_UNROLL_BY_4 _Pragma("unroll 4")

namespace fuselage::cuda {

#if __CUDA_ARCH__ >= 900
constexpr bool kHasClusters = true;
#else
constexpr bool kHasClusters = false;
#endif

FUSELAGE_DEVICE int Recomputed(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

class Thread;
class Warp;

FUSELAGE_DEVICE uint8_t* SharedMemory() {
  extern __shared__ __align__(1024) uint8_t fuselage_shared_memory[];
  return fuselage_shared_memory;
}
FUSELAGE_DEVICE uint32_t SharedAddress(uint32_t offset) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(SharedMemory())) + offset;
}

// Each thread keeps its own.
template <typename T>
struct Lanes {
  FUSELAGE_DEVICE T& operator[](const Thread&) { return value; }
  FUSELAGE_DEVICE const T& operator[](const Thread&) const { return value; }
  T value;
};
template <typename T, int kWarps>
struct PerWarp {
  FUSELAGE_DEVICE T& operator[](const Warp&) { return value; }
  T value;
};
template <typename T, int kWarps>
struct PerThread {
  FUSELAGE_DEVICE T& operator[](const Thread&) { return value; }
  T value;
};

class Thread {
 public:
  FUSELAGE_DEVICE int index() const { return static_cast<int>(threadIdx.x); }
  FUSELAGE_DEVICE int lane() const { return static_cast<int>(threadIdx.x) % kWarpSize; }

  template <typename T>
  FUSELAGE_DEVICE T Load(const T* pointer) const {
    return As<T>(*reinterpret_cast<const WordOf<T>*>(pointer));
  }
  template <typename T>
  FUSELAGE_DEVICE T LoadConstant(const T* pointer) const {
    return As<T>(__ldg(reinterpret_cast<const WordOf<T>*>(pointer)));
  }
  template <typename T>
  FUSELAGE_DEVICE void Store(T* pointer, const T& value) const {
    *pointer = value;
  }
  FUSELAGE_DEVICE void Fence() const { __threadfence(); }
  FUSELAGE_DEVICE uint32_t TakeTicket(uint32_t* ticket, uint32_t count) const { return atomicInc(ticket, count - 1); }
  template <typename T>
  FUSELAGE_DEVICE T LoadShared(uint32_t offset) const {
    return *reinterpret_cast<const T*>(SharedMemory() + offset);
  }
  template <typename T>
  FUSELAGE_DEVICE void StoreShared(uint32_t offset, const T& value) const {
    *reinterpret_cast<T*>(SharedMemory() + offset) = value;
  }
  template <int kBytes>
  FUSELAGE_DEVICE void CopyAsync(uint32_t offset, const void* from) const {
    static_assert(kBytes == 8 || kBytes == 16);
    if constexpr (kBytes == 16) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(SharedAddress(offset)), "l"(from) : "memory");
    } else {
      asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(SharedAddress(offset)), "l"(from) : "memory");
    }
  }
#if __CUDA_ARCH__ >= 900
  FUSELAGE_DEVICE void InitBarriers(uint32_t offset, int count) const {
    FUSELAGE_UNROLL
    for (int i = 0; i < count; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SharedAddress(offset) + 8 * i) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  FUSELAGE_DEVICE void ExpectBytes(uint32_t barrier, int bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)), "r"(bytes)
                 : "memory");
  }
  FUSELAGE_DEVICE void StoreInCluster(int z, uint32_t offset, const Vector<int32_t, 4>& value, uint32_t barrier) const {
    const int32_t* v = value.values;
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                     AddressInCluster(z, offset)),
                 "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(AddressInCluster(z, barrier))
                 : "memory");
  }
#else
  // Elsewhere nothing calls them.
  __device__ void InitBarriers(uint32_t offset, int count) const;
  __device__ void ExpectBytes(uint32_t barrier, int bytes) const;
  __device__ void StoreInCluster(int z, uint32_t offset, const Vector<int32_t, 4>& value, uint32_t barrier) const;
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  FUSELAGE_DEVICE void CopyBulk(uint32_t offset, const void* from, int bytes, uint32_t barrier) const {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     SharedAddress(offset)),
                 "l"(from), "r"(bytes), "r"(SharedAddress(barrier))
                 : "memory");
  }
  FUSELAGE_DEVICE void CopyTile(uint32_t offset, const TileMap& map, int column, int row, uint32_t barrier) const {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(SharedAddress(offset)),
        "l"(map.encoded), "r"(column), "r"(row), "r"(SharedAddress(barrier))
        : "memory");
  }
  FUSELAGE_DEVICE void Prefetch(const void* from, int bytes) const {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
  }
  FUSELAGE_DEVICE void ShareWithCopies() const { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#else
  __device__ void CopyBulk(uint32_t offset, const void* from, int bytes, uint32_t barrier) const;
  __device__ void CopyTile(uint32_t offset, const TileMap& map, int column, int row, uint32_t barrier) const;
  __device__ void Prefetch(const void* from, int bytes) const;
  __device__ void ShareWithCopies() const;
#endif

 private:
#if __CUDA_ARCH__ >= 900
  FUSELAGE_DEVICE static uint32_t AddressInCluster(int z, uint32_t offset) {
    uint32_t address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(SharedAddress(offset)), "r"(z));
    return address;
  }
#endif

  // What one instruction loads.
  template <typename T>
  using WordOf =
      std::conditional_t<sizeof(T) == 1, uint8_t,
                         std::conditional_t<sizeof(T) == 2, uint16_t,
                                            std::conditional_t<sizeof(T) == 4, uint32_t,
                                                               std::conditional_t<sizeof(T) == 8, uint2, uint4>>>>;
  // By value: a copy from memory straight to T would be one of bytes.
  template <typename T>
  FUSELAGE_DEVICE static T As(WordOf<T> word) {
    static_assert(sizeof(T) == sizeof(word));
    T value;
    memcpy(&value, &word, sizeof(T));
    return value;
  }
};

FUSELAGE_DEVICE void WaitForEarlierLaunches(bool wait) {
#if __CUDA_ARCH__ >= 900
  if (wait) asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

class Warp {
 public:
  // `waits`: for earlier launches; Overlap::kBeside does not.
  explicit FUSELAGE_DEVICE Warp(bool waits) : waits_(waits) {}

  FUSELAGE_DEVICE int index() const { return static_cast<int>(threadIdx.x) / kWarpSize; }

  template <typename F>
  FUSELAGE_DEVICE void ForThreads(F f) const {
    f(Thread());
  }

  FUSELAGE_DEVICE void LoadMatrices(const Lanes<uint32_t>& offsets, Lanes<Vector<uint32_t, 4>>* fragments) const {
    uint32_t* r = fragments->value.values;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(SharedAddress(offsets.value))
                 : "memory");
  }

  FUSELAGE_DEVICE void LoadTransposed(const Lanes<uint32_t>& offsets, Lanes<Vector<uint32_t, 4>>* fragments) const {
    uint32_t* r = fragments->value.values;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(SharedAddress(offsets.value))
                 : "memory");
  }

  template <typename A, typename B = int8_t>
  FUSELAGE_DEVICE void MultiplyCodes(const Lanes<Vector<uint32_t, 4>>& a, const Lanes<uint32_t>& b0,
                                     const Lanes<uint32_t>& b1, Lanes<Vector<int32_t, 4>>* acc) const {
    const uint32_t* x = a.value.values;
    int32_t* d = acc->value.values;
    static_assert(std::is_same_v<A, int8_t> || std::is_same_v<B, int8_t>);
    if constexpr (std::is_same_v<B, uint8_t>) {
      asm volatile(
          "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(b0.value), "r"(b1.value));
    } else if constexpr (std::is_same_v<A, uint8_t>) {
      asm volatile(
          "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(b0.value), "r"(b1.value));
    } else {
      asm volatile(
          "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(b0.value), "r"(b1.value));
    }
  }

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  FUSELAGE_DEVICE void BeginProducts() const { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
  FUSELAGE_DEVICE void CommitProducts() const { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
  template <int kPending>
  FUSELAGE_DEVICE void WaitForProducts() const {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
  }
  template <typename X, int kFragments>
  FUSELAGE_DEVICE void MultiplyInGroup(const Lanes<Vector<uint32_t, 4>>& a, uint32_t b, bool adds,
                                       Lanes<Vector<int32_t, 4>> (&acc)[kFragments]) const {
    // PTX ISA, matrix descriptor: address, 512 bytes from eight rows to the next, swizzled over 64 bytes.
    const uint64_t weights = (SharedAddress(b) & 0x3ffff) >> 4 | uint64_t{512 >> 4} << 32 | uint64_t{2} << 62;
    const uint32_t* x = a.value.values;
#define FUSELAGE_SUMS_OF(i) \
  "+r"(acc[i].value.values[0]), "+r"(acc[i].value.values[1]), "+r"(acc[i].value.values[2]), "+r"(acc[i].value.values[3])
#define FUSELAGE_SUMS_OF_8(i)                                                                     \
  FUSELAGE_SUMS_OF(i), FUSELAGE_SUMS_OF(i + 1), FUSELAGE_SUMS_OF(i + 2), FUSELAGE_SUMS_OF(i + 3), \
      FUSELAGE_SUMS_OF(i + 4), FUSELAGE_SUMS_OF(i + 5), FUSELAGE_SUMS_OF(i + 6), FUSELAGE_SUMS_OF(i + 7)
#define FUSELAGE_WGMMA_64(type)                                                                         \
  asm volatile(                                                                                         \
      "{.reg .pred adds; setp.ne.b32 adds, %37, 0;\n"                                                   \
      "wgmma.mma_async.sync.aligned.m64n64k32.s32." type                                                \
      ".s8 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "                                                   \
      "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, " \
      "%29, %30, %31}, {%32, %33, %34, %35}, %36, adds;}"                                               \
      : FUSELAGE_SUMS_OF_8(0)                                                                           \
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(weights), "r"(int{adds}))
#define FUSELAGE_WGMMA_128(type)                                                                        \
  asm volatile(                                                                                         \
      "{.reg .pred adds; setp.ne.b32 adds, %69, 0;\n"                                                   \
      "wgmma.mma_async.sync.aligned.m64n128k32.s32." type                                               \
      ".s8 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "                                                   \
      "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, " \
      "%29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "               \
      "{%64, %65, %66, %67}, %68, adds;}"                                                               \
      : FUSELAGE_SUMS_OF_8(0), FUSELAGE_SUMS_OF_8(8)                                                    \
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(weights), "r"(int{adds}))
    static_assert(kFragments == 8 || kFragments == 16);
    if constexpr (kFragments == 8 && std::is_same_v<X, uint8_t>) {
      FUSELAGE_WGMMA_64("u8");
    } else if constexpr (kFragments == 8) {
      FUSELAGE_WGMMA_64("s8");
    } else if constexpr (std::is_same_v<X, uint8_t>) {
      FUSELAGE_WGMMA_128("u8");
    } else {
      FUSELAGE_WGMMA_128("s8");
    }
#undef FUSELAGE_WGMMA_128
#undef FUSELAGE_WGMMA_64
#undef FUSELAGE_SUMS_OF_8
#undef FUSELAGE_SUMS_OF
  }
#else
  // Elsewhere nothing calls them.
  __device__ void BeginProducts() const;
  __device__ void CommitProducts() const;
  template <int kPending>
  __device__ void WaitForProducts() const;
  template <typename X, int kFragments>
  __device__ void MultiplyInGroup(const Lanes<Vector<uint32_t, 4>>& a, uint32_t b, bool adds,
                                  Lanes<Vector<int32_t, 4>> (&acc)[kFragments]) const;
#endif

#if __CUDA_ARCH__ >= 900
#define FUSELAGE_WAIT_FOR(acquire)            \
  asm volatile(                               \
      "{\n"                                   \
      ".reg .pred arrived;\n"                 \
      "AGAIN:\n"                              \
      "mbarrier.try_wait.parity" acquire      \
      ".shared::cta.b64 arrived, [%0], %1;\n" \
      "@!arrived bra AGAIN;\n"                \
      "}" ::"r"(SharedAddress(barrier)),      \
      "r"(parity)                             \
      : "memory")
  FUSELAGE_DEVICE void WaitForBytes(uint32_t barrier, int parity) const { FUSELAGE_WAIT_FOR(""); }
  FUSELAGE_DEVICE void WaitForStores(uint32_t barrier, int parity) const { FUSELAGE_WAIT_FOR(".acquire.cluster"); }
#undef FUSELAGE_WAIT_FOR
  FUSELAGE_DEVICE void ArriveInCluster() const { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
  FUSELAGE_DEVICE void WaitForCluster() const { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
#else
  __device__ void WaitForBytes(uint32_t barrier, int parity) const;
  __device__ void WaitForStores(uint32_t barrier, int parity) const;
  __device__ void ArriveInCluster() const;
  __device__ void WaitForCluster() const;
#endif

  template <typename T>
  FUSELAGE_DEVICE Lanes<T> Exchange(int mask, const Lanes<T>& values) const {
    return {__shfl_xor_sync(~0u, values.value, mask)};
  }
  template <typename T>
  FUSELAGE_DEVICE T Broadcast(int lane, const Lanes<T>& values) const {
    return __shfl_sync(~0u, values.value, lane);
  }
  template <typename T>
  FUSELAGE_DEVICE Lanes<T> ShiftUp(int lanes, const Lanes<T>& values) const {
    return {__shfl_up_sync(~0u, values.value, lanes)};
  }

  template <typename F>
  FUSELAGE_DEVICE void Rarely(bool condition, F f) const {
    if (condition) {
      __syncwarp();  // Nothing that has it is executed under a predicate.
      f();
    }
  }

  // The next launch may begin behind it. Before it, launches that wait pile up on the multiprocessors, which makes each
  // of them end a microsecond later.
  FUSELAGE_DEVICE void WaitForEarlier() const {
    WaitForEarlierLaunches(waits_);
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  }
  FUSELAGE_DEVICE void CommitCopies() const { asm volatile("cp.async.commit_group;" ::: "memory"); }
  template <int kPending>
  FUSELAGE_DEVICE void WaitForCopies() const {
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
  }

 private:
  const bool waits_;
};

class Block {
 public:
  explicit FUSELAGE_DEVICE Block(bool waits) : waits_(waits) {}

  FUSELAGE_DEVICE int x() const { return static_cast<int>(blockIdx.x); }
  FUSELAGE_DEVICE int y() const { return static_cast<int>(blockIdx.y); }
  FUSELAGE_DEVICE int z() const { return static_cast<int>(blockIdx.z); }

  template <typename F>
  FUSELAGE_DEVICE void Phase(F f) const {
    f(Warp(waits_));
    __syncthreads();
  }
  template <typename F>
  FUSELAGE_DEVICE void Part(F f) const {
    f(Warp(waits_));
  }

 private:
  const bool waits_;
};

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_DEVICE_BLOCK_H_
