#include <utility>

#include "runtime/schedule.h"

namespace fuselage::runtime {

void AddStep(StepSpec step, Schedule* schedule) {
  const int index = static_cast<int>(schedule->steps.size());
  if (step.kernel != nullptr && step.kernel->scratch_bytes() > 0) {
    step.scratch = static_cast<int>(schedule->buffers.size());
    BufferSpec scratch;
    scratch.bytes = step.kernel->scratch_bytes();
    scratch.first = scratch.last = index;
    schedule->buffers.push_back(std::move(scratch));
  }
  for (int input : step.inputs) {
    if (input == StepSpec::kAbsent) continue;
    BufferSpec& buffer = schedule->buffers[input];
    if (buffer.home == BufferSpec::Home::kConstant && buffer.last < 0) schedule->weight_bytes += buffer.bytes;
    buffer.last = index;
  }
  for (int output : step.outputs) schedule->buffers[output].first = schedule->buffers[output].last = index;
  schedule->steps.push_back(std::move(step));
}

}  // namespace fuselage::runtime
