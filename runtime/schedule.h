// Schedule: a graph as a list of steps on buffers, before any memory exists.
//
// Values of rank 4 lie in NHWC or row-major, as the kernels that make and take them want (kernels::LayoutRule); where
// the two differ a reorder is inserted, once per value. placements.h says more of where codes lie, regrouping.h
// what needs no reorder. Views whose bytes stay the same share their operand's buffer. What lies in a cat's result is
// written there; a cat copies the rest.
#ifndef FUSELAGE_RUNTIME_SCHEDULE_H_
#define FUSELAGE_RUNTIME_SCHEDULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "kernels/core/registry.h"
#include "runtime/memory_plan.h"

namespace fuselage::runtime {

struct BufferSpec {
  enum class Home { kArena, kInput, kOutput, kConstant };

  Home home = Home::kArena;
  int64_t bytes = 0;
  int index = -1;                          // The executable's input or output with this index.
  std::shared_ptr<const Tensor> constant;  // Its bytes, in whichever layout the buffer has.
  int first = -1, last = -1;               // The steps from the one that writes it to the last that reads it.
  // Where it lies inside another buffer: which, and how many bytes behind its begin.
  int whole = -1;
  int64_t offset = 0;
  std::vector<int> parts = {};  // The buffers it is written as, where no step writes it as a whole.
};

// What runs a step; a reorder or a copy is one that the runtime inserted.
enum class StepKind { kKernel, kReference, kReorder, kCopy };

struct StepSpec {
  static constexpr int kAbsent = -1;

  StepKind kind;
  std::unique_ptr<kernels::Kernel> kernel;  // Null: a reorder or a copy.
  std::string node;                         // "" where the runtime inserted it.
  std::string op;
  std::vector<int> inputs = {}, outputs = {};  // Buffers; an absent optional operand is kAbsent.
  int scratch = kAbsent;
  std::string layout = "";    // The first output's, for people: "nhwc, halo 1".
  double macs = 0;            // Multiply-accumulates of the call (ir::Cost).
  TensorType reordered = {};  // A reorder's input, which goes to the other layout.
  bool beside_next = false;   // It and the next one may run at once: neither writes what the other uses.
  // In a band: by how many bytes inputs, then outputs are further on in the next turn; 0: what all turns read, or lives
  // for one only.
  std::vector<int64_t> strides = {};
};

// Steps `first` to `last`, which run in this order `turns` times, each time on the next items (bands.h).
struct Band {
  int first = 0, last = 0;
  int64_t turns = 1;
};

struct Schedule {
  std::vector<std::string> input_names;
  std::vector<TensorType> input_types, output_types;
  std::vector<BufferSpec> buffers;
  std::vector<StepSpec> steps;
  std::vector<Band> bands;   // Of more than one turn, in order.
  int64_t weight_bytes = 0;  // Those of kernels, each packed weight once, and constants.
};

// Appends the step, and a buffer for its scratch memory.
void AddStep(StepSpec step, Schedule* schedule);

class Executor;

struct ScheduleOptions {
  kernels::Isa isa = kernels::Isa::kScalar;
  int threads = 1;
  int64_t max_memory_bytes = 0;  // 0: no limit. Creation stops once weights alone are above it.
  kernels::PackedWeights* weights = nullptr;
  int64_t cache_bytes = 0;  // See ExecutableOptions.
};

// Unimplemented lists every call that no kernel runs; but on the host the reference evaluation stands in for what is no
// int8 op.
absl::StatusOr<Schedule> MakeSchedule(const ir::Graph& graph, const kernels::KernelRegistry& kernels,
                                      const Executor& executor, const ScheduleOptions& options);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_SCHEDULE_H_
