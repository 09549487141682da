// Requests from outside to several streams at once, as a server has them.
#ifndef FUSELAGE_HARNESS_SERVING_REQUESTS_H_
#define FUSELAGE_HARNESS_SERVING_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/serving/cores.h"

namespace fuselage::harness::serving {

// What a stream does for a request.
using Serve = std::function<absl::Status()>;

// Requests a second where each stream (`serve` has an entry for each) finds another request at the end of one, for
// about `seconds`.
absl::StatusOr<double> Saturate(const std::vector<StreamCores>& streams, const std::vector<Serve>& serve,
                                double seconds);

// When requests of a Poisson process arrive: seconds from the start, ascending. The same on every machine for a seed.
std::vector<double> PoissonArrivals(double per_second, int64_t count, uint64_t seed);

// Seconds from the arrival of each request to its answer, where the first stream that is free takes the next request
// (first in, first out). The clock of a request runs from its arrival, whether or not a stream was free for it: a
// server that stalls does not stop the requests (Tene, "How NOT to measure latency": coordinated omission).
absl::StatusOr<std::vector<double>> OpenLoop(const std::vector<StreamCores>& streams, const std::vector<Serve>& serve,
                                             const std::vector<double>& arrivals);

// What OpenLoop would give if each request took exactly `service` seconds: the queue's share of the latencies, which no
// server with so many streams and that mean can undercut.
std::vector<double> QueueOf(const std::vector<double>& arrivals, int streams, double service);

}  // namespace fuselage::harness::serving

#endif  // FUSELAGE_HARNESS_SERVING_REQUESTS_H_
