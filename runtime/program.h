// Program: a schedule with the plan of its memory.
#ifndef FUSELAGE_RUNTIME_PROGRAM_H_
#define FUSELAGE_RUNTIME_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/executable.h"
#include "runtime/executor.h"
#include "runtime/schedule.h"

namespace fuselage::runtime {

class Program {
 public:
  Schedule schedule;
  int threads = 1;
  // Where each buffer lies in the arena. Constants, and what the host has in place, have no offset.
  std::vector<int64_t> offsets;
  std::vector<ArenaBlock> arena;
  int64_t arena_bytes = 0;
};

// For pools of at most `threads` threads.
std::shared_ptr<const Program> PlanProgram(Schedule schedule, bool on_host, int threads);

// With its arena and its kernels' constants in the executor's memory.
absl::StatusOr<std::unique_ptr<Executable>> Bind(std::shared_ptr<const Program> program,
                                                 std::unique_ptr<Executor> executor);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_PROGRAM_H_
