// Attempts that may crash or hang: each costs only itself.
#ifndef FUSELAGE_TOOLS_PEERS_CUDNN_TRIALS_H_
#define FUSELAGE_TOOLS_PEERS_CUDNN_TRIALS_H_

#include <chrono>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace fuselage::peers::cudnn {

// attempt(0), attempt(1), ..., attempt(count - 1) in a process of their own, and in a new one from the attempt on after
// one that ended it (Internal: "ended by signal 11") or that took longer than `limit` (DeadlineExceeded), or returned
// DataLoss: a device that is lost to a process. What attempts leave behind in memory later ones find, until their
// process ends; the caller never does. Forks: the caller has one thread, and nothing that does not survive a fork, such
// as a CUDA context.
std::vector<absl::StatusOr<double>> TryEach(int count, std::chrono::milliseconds limit,
                                            const std::function<absl::StatusOr<double>(int)>& attempt);

}  // namespace fuselage::peers::cudnn

#endif  // FUSELAGE_TOOLS_PEERS_CUDNN_TRIALS_H_
