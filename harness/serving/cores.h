// Which cores each stream of requests runs on.
#ifndef FUSELAGE_HARNESS_SERVING_CORES_H_
#define FUSELAGE_HARNESS_SERVING_CORES_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fuselage::harness::serving {

struct StreamCores {
  int node = 0;  // Of memory (NUMA): the one that its cores belong to, or the first of them.
  std::vector<int> cores;
};

// Those that this process may use, as the system numbers them.
std::vector<int> AllowedCores();

// `threads` of the `cores` for each of `streams`. Streams spread over the nodes of memory,
// each on one where one has cores enough; a core's second hardware thread comes after the first ones of all others.
// A usage error where there are not so many cores. `sysfs` tells how cores share (sysfs-devices-system-cpu,
// sysfs-devices-node); without it all are alike.
absl::StatusOr<std::vector<StreamCores>> CoresOfStreams(int streams, int threads,
                                                        const std::vector<int>& cores = AllowedCores(),
                                                        const std::string& sysfs = "/sys");

// Calls `body` for each stream, on a thread of its own that runs on the stream's cores only, and so do threads that it
// starts. Returns when all have; the first stream's error. What a body throws, this throws.
absl::Status OnCores(const std::vector<StreamCores>& streams, absl::FunctionRef<absl::Status(int stream)> body);

}  // namespace fuselage::harness::serving

#endif  // FUSELAGE_HARNESS_SERVING_CORES_H_
