#include "kernels/fp32/openmp.h"

#include <dlfcn.h>

#include <atomic>
#include <thread>

#include "ir/base/check.h"

namespace fuselage::fp32 {
namespace {

struct Team {
  const int threads;
  const bool concurrent;  // Does every member have a thread of its own?
  std::atomic<int> arrived{0};
  std::atomic<int> barriers{0};  // That all have passed.
};

// What OpenMP keeps for each thread.
struct ThreadState {
  kernels::Parallel* parallel = nullptr;
  int max_threads = 1;
  Team* team = nullptr;
  int number = 0;
};

thread_local ThreadState state;

void RunMember(void (*body)(void*), void* data, const ThreadState& member) {
  const ThreadState outer = state;
  state = member;
  body(data);
  state = outer;
}

// In a shared library that hides these symbols oneDNN calls libgomp's, and the number of threads is all that can be
// said to it. Returns the number before; 0 where the symbols are ours.
int SetLibgompThreads(int threads) {
  static const auto get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  static const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (get == nullptr || get == omp_get_max_threads || set == nullptr) return 0;
  const int outer = get();
  set(threads);
  return outer;
}

}  // namespace

OpenMpScope::OpenMpScope(kernels::Parallel& parallel, int threads)
    : outer_parallel_(state.parallel),
      outer_threads_(state.max_threads),
      outer_libgomp_threads_(SetLibgompThreads(threads)) {
  state.parallel = &parallel;
  state.max_threads = threads;
}

OpenMpScope::~OpenMpScope() {
  state.parallel = outer_parallel_;
  state.max_threads = outer_threads_;
  if (outer_libgomp_threads_ > 0) SetLibgompThreads(outer_libgomp_threads_);
}

}  // namespace fuselage::fp32

using fuselage::fp32::RunMember;
using fuselage::fp32::state;
using fuselage::fp32::Team;

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned /*flags*/) {
  const int wanted = threads > 0 ? static_cast<int>(threads) : state.max_threads;
  if (state.team != nullptr || state.parallel == nullptr || wanted == 1) {
    Team team{1, true};
    return RunMember(body, data, {state.parallel, state.max_threads, &team, 0});
  }
  Team team{wanted, wanted <= state.parallel->threads()};
  const int max_threads = state.max_threads;
  state.parallel->For(wanted, [&](int member, int /*thread*/) {
    RunMember(body, data, {nullptr, max_threads, &team, member});
  });
}

void GOMP_barrier() {
  Team* const team = state.team;
  if (team == nullptr || team->threads == 1) return;
  FUSELAGE_CHECK(team->concurrent);
  const int passed = team->barriers.load();
  if (team->arrived.fetch_add(1) + 1 == team->threads) {
    team->arrived.store(0);
    team->barriers.store(passed + 1);
    return;
  }
  while (team->barriers.load() == passed) std::this_thread::yield();
}

int omp_get_max_threads() { return state.max_threads; }
int omp_get_num_threads() { return state.team == nullptr ? 1 : state.team->threads; }
int omp_get_thread_num() { return state.team == nullptr ? 0 : state.number; }
int omp_in_parallel() { return state.team != nullptr && state.team->threads > 1; }
