// How CUDA kernels are written here, so that one source runs on a GPU and, in tests, on the host:
//
//   struct Scale {
//     static constexpr int kWarps = 4;
//     struct Params {...};                                         // plain data and pointers to global memory
//     FUSELAGE_DEVICE static void Run(Block& block, const Params& params) {
//       PerThread<int, kWarps> sums;                               // registers that outlive a phase
//       block.Phase([&](Warp warp) {                               // a phase ends at a barrier
//         warp.ForThreads([&](Thread thread) {...});               // plain SIMT code; loads and stores by `thread`
//         warp.MultiplyCodes(...);                                 // what all threads of a warp do together
//       });
//     }
//   };
//
// Under nvcc (device_block.h) all of this vanishes: Phase is its body and __syncthreads(), ForThreads its body.
// Otherwise (emulated_block.h) it loops over warps and threads, and every access to memory is checked: bounds,
// alignment, use before initialization, cp.async data used before it has been waited for, races between barriers, and
// what a block loads of another's stores without fence, ticket and fence between.
//
//   Block    x(), y(), z(): blockIdx; Phase(f); Part(f), which goes on without a barrier. Launched as clusters, the
//            blocks of one x and y run together, z being a block's rank
//   Warp     index(): in the block; ForThreads(f)
//            LoadMatrices(offsets, &fragments)   ldmatrix.m8n8.x4.b16: offsets, 16-byte aligned, one per thread
//            LoadTransposed(offsets, &fragments) the same with .trans: of two of a matrix's rows the same two bytes
//            MultiplyCodes<A>(a, b0, b1, &acc)   mma.m16n8k32: A (uint8_t or int8_t) times int8_t, into int32;
//                                                MultiplyCodes<int8_t, uint8_t> the other way round
//            MultiplyInGroup<X>(a, b, adds, acc) a warp's part of wgmma.m64nNk32, which the four warps of a group call
//                                                together, each with 16 rows: int32 sums in acc[N / 8] as of
//                                                MultiplyCodes, which begin with it unless it adds. b: offset of N rows
//                                                of 64 bytes, of which it takes 32, or 32 more; those of row r are
//                                                permuted: address bits 4 and 5 are xored with r / 2. sm_90a alone
//            BeginProducts(), CommitProducts(),  wgmma.fence, .commit_group and .wait_group n: around those calls;
//            WaitForProducts<n>()                acc and a of all groups but the last n may be touched again
//            WaitForBytes(barrier, parity)       mbarrier.try_wait.parity: for what the copies of the n-th ExpectBytes
//                                                of a barrier bring, of parity n % 2, n from 0
//            WaitForStores(barrier, parity)      the same of what other blocks' StoreInCluster bring
//            ArriveInCluster(), WaitForCluster() barrier.cluster: behind the latter, in a later phase or part, all
//                                                blocks have arrived, and so begun
//            CommitCopies(), WaitForCopies<n>()  cp.async.commit_group, cp.async.wait_group n
//            Exchange(mask, values)              shfl.sync.bfly: of each lane, the value of lane ^ mask
//            Broadcast(lane, values)             shfl.sync.idx: that lane's value
//            ShiftUp(lanes, values)              shfl.sync.up: of each lane, the value of the one so many below it; its
//                                                own where there is none
//            Rarely(condition, f)                f() where the condition holds, in all threads of the warp or in none:
//                                                by a branch, where compilers would rather select each result
//            WaitForEarlier()                    griddepcontrol.wait, in each warp of a kernel with kWaits = true:
//                                                before it only constants are loaded, and nothing is stored
//   Thread   index(): in the block; lane(): in the warp
//            Load(pointer), Store(pointer, value)             global memory
//            LoadConstant(pointer)                            what no kernel of the network writes: ld.global.nc
//            Fence()                                          __threadfence: before it, and after
//            TakeTicket(ticket, count)                        atomicInc: how many of a launch took one before, of
//                                                             `count` in all; the last leaves 0 for the next launch
//            LoadShared<T>(offset), StoreShared(offset, value)
//            CopyAsync<8 or 16>(offset, pointer)              cp.async: bytes from global to shared memory
//            InitBarriers(offset, count)                      mbarrier.init, each of one arrival and 8 bytes: by the
//                                                             thread that starts their copies, once
//            ExpectBytes(barrier, bytes)                      mbarrier.arrive.expect_tx: of the copies that follow,
//                                                             when all bytes of the ExpectBytes before have arrived
//            CopyBulk(offset, pointer, bytes, barrier)        cp.async.bulk: multiples of 16 bytes
//            CopyTile(offset, tile_map, column, row, barrier) cp.async.bulk.tensor.2d: a box, to a multiple of 512.
//            Prefetch(pointer, bytes)                         cp.async.bulk.prefetch.L2: to the L2 cache, as CopyBulk
//            ShareWithCopies()                                fence.proxy.async: before a barrier behind which
//                                                             CopyBulk or CopyTile overwrites what the thread stored in
//                                                             shared memory. These six are for sm_90a
//   Lanes<T>, PerWarp<T, kWarps>, PerThread<T, kWarps>: a T of each thread of a warp, each warp, each thread of a
//   block, indexed with the Thread or Warp itself.
//
//   Recomputed(x): x, in a loop: what it computes from that is not kept in registers, where they are dear, from one
//   turn to the next.
//
// Shared memory is one dynamic array, addressed by byte offsets from its 1024-byte aligned start.
#ifndef FUSELAGE_KERNELS_CUDA_BLOCK_H_
#define FUSELAGE_KERNELS_CUDA_BLOCK_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/tile_map.h"

namespace fuselage::cuda {

constexpr int kWarpSize = 32;
constexpr int kMostOfCluster = 8;  // Blocks, on every device that has clusters.

// N values that are loaded and stored at once.
template <typename T, int N>
struct alignas(sizeof(T) * N) Vector {
  T values[N];
};

// Kernel::kWaits: its warps call WaitForEarlier. All others have waited before they run.
template <typename Kernel, typename = void>
constexpr bool kWaitsOf = false;
template <typename Kernel>
constexpr bool kWaitsOf<Kernel, std::void_t<decltype(Kernel::kWaits)>> = Kernel::kWaits;

}  // namespace fuselage::cuda

#if defined(__CUDACC__)
#include "kernels/cuda/device_block.h"  // IWYU pragma: export
#else
#include "kernels/cuda/emulated_block.h"  // IWYU pragma: export
#endif

#endif  // FUSELAGE_KERNELS_CUDA_BLOCK_H_
