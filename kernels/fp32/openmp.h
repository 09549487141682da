// The part of GNU's OpenMP runtime that oneDNN calls (libgomp's ABI), on kernels::Parallel: oneDNN's parallel regions
// run on the threads that every other kernel runs on. Two sets of threads would spin beside each other, on the same
// cores, wherever steps of both kinds alternate.
//
// A program that links this target defines these symbols itself, so that libdnnl.so finds them here and not in
// libgomp.so. A shared library must not do that to the programs that load it: there libgomp's threads stay, as many as
// a scope has.
#ifndef FUSELAGE_KERNELS_FP32_OPENMP_H_
#define FUSELAGE_KERNELS_FP32_OPENMP_H_

#include "kernels/core/parallel.h"

namespace fuselage::fp32 {

// While it lives, parallel regions that this thread opens have `threads` threads of `parallel`, and
// omp_get_max_threads() says so. Outside every scope a region has one thread, the caller. Scopes nest.
class OpenMpScope {
 public:
  OpenMpScope(kernels::Parallel& parallel, int threads);
  ~OpenMpScope();
  OpenMpScope(const OpenMpScope&) = delete;
  OpenMpScope& operator=(const OpenMpScope&) = delete;

 private:
  kernels::Parallel* const outer_parallel_;
  const int outer_threads_, outer_libgomp_threads_;
};

}  // namespace fuselage::fp32

// libgomp's ABI (GCC, libgomp/libgomp_g.h and omp.h): all that libdnnl.so imports from it.
extern "C" {
// Runs body(data) once on each thread of a new team of `threads` (0: as many as omp_get_max_threads()). A region within
// a region has one thread.
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
// Returns once all threads of the team are here. Aborts where they do not run at the same time: a team that is larger
// than its scope's `parallel`.
void GOMP_barrier();
int omp_get_max_threads();
int omp_get_num_threads();  // The team's; 1 outside.
int omp_get_thread_num();
int omp_in_parallel();
}

#endif  // FUSELAGE_KERNELS_FP32_OPENMP_H_
