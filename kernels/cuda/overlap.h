// When a kernel of a captured graph begins. Needs no toolkit.
#ifndef FUSELAGE_KERNELS_CUDA_OVERLAP_H_
#define FUSELAGE_KERNELS_CUDA_OVERLAP_H_

namespace fuselage::cuda {

enum class Overlap {
  // When all that came before it has ended.
  kNone,
  // When the kernel right before it, which must be one, has waited for what came before that. It waits for that
  // kernel's end, and so for all that came before, before it touches what kernels write. From sm_90 on.
  kNext,
  // So does one that needs nothing of the kernel right before it, but it waits only when it has done its work: who
  // waits for it waits for both.
  kBeside,
};

// Of this thread's next launch; one that is beside another makes those that follow it kNext.
inline Overlap& NextLaunch() {
  static thread_local Overlap overlap = Overlap::kNone;
  return overlap;
}

// A library has launched a kernel, which begins when all before it has ended: what follows needs it.
inline void LibraryHasLaunched() {
  if (NextLaunch() == Overlap::kBeside) NextLaunch() = Overlap::kNext;
}

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_OVERLAP_H_
