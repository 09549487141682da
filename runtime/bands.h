// Bands: chains of steps that take a few items of the batch at a time, so that what one of them writes is still in the
// cache when the next one reads it.
//
// A step that computes each item along axis 0 from the same items of its operands (ir::OpSchema::itemwise) may as well
// compute a few of them. A band is a run of such steps: each turn, every one takes the next few items. What passes
// between two steps of a band needs memory for those items alone; weights are read again in each turn, from the cache
// if they stay there. Bits are the same, for items do not depend on each other, but for oneDNN's products of floats: with
// AVX2 their sums follow another order where there are fewer rows.
//
// Where bands begin and end, and how many items each takes, is a shortest path over the steps, whose lengths are the
// bytes that a core moves to and from beyond its cache. A value, or a weight, is in the cache as long as what was
// touched since fits there.
#ifndef FUSELAGE_RUNTIME_BANDS_H_
#define FUSELAGE_RUNTIME_BANDS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "kernels/core/registry.h"
#include "runtime/schedule.h"

namespace fuselage::runtime {

// This machine's second-level cache of a core; 1 MiB where the system does not say.
int64_t CoreCacheBytes();

// What a step computes one by one along axis 0.
struct Items {
  int64_t count = 0;  // 0: it does not.
  // How far apart they lie in each of the step's operands, in bytes; 0: all items read the whole of it.
  std::vector<int64_t> input_strides = {}, output_strides = {};
  // What a kernel for fewer is made of; null: a reorder.
  const kernels::KernelEntry* entry = nullptr;
  std::function<kernels::KernelDesc(int64_t count)> describe = nullptr;
};

// Fills `schedule->bands` with those of more than one turn, and makes the kernels, strides and buffers of their steps
// anew. `items`: of each step.
void MakeBands(absl::Span<const Items> items, const ScheduleOptions& options, Schedule* schedule);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_BANDS_H_
