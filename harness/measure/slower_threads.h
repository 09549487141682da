// Where more threads took longer than fewer.
#ifndef FUSELAGE_HARNESS_MEASURE_SLOWER_THREADS_H_
#define FUSELAGE_HARNESS_MEASURE_SLOWER_THREADS_H_

#include <string>
#include <vector>

#include "harness/results.pb.h"

namespace fuselage::harness {

// Sets slower_than_threads of each measurement whose median lies a tenth above that of fewer threads at the same batch,
// and above the 90th percentile of their runs. Returns a warning for each. Where other programs kept cores busy nothing
// is said: they take them from more threads first.
std::vector<std::string> MarkSlowerThreads(Results::Variant* variant);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_SLOWER_THREADS_H_
