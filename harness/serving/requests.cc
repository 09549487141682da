#include "harness/serving/requests.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "ir/base/status.h"

namespace fuselage::harness::serving {
namespace {

using Clock = std::chrono::steady_clock;

// A sleeper may wake so much later than asked; the rest is waited for awake, on a core that is the stream's own.
constexpr auto kAwake = std::chrono::microseconds(200);

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void WaitUntil(Clock::time_point time) {
  std::this_thread::sleep_until(time - kAwake);
  while (Clock::now() < time) {
  }
}

}  // namespace

absl::StatusOr<double> Saturate(const std::vector<StreamCores>& streams, const std::vector<Serve>& serve,
                                double seconds) {
  std::vector<double> rates(streams.size());
  RETURN_IF_ERROR(OnCores(streams, [&](int stream) -> absl::Status {
    const auto start = Clock::now();
    int64_t served = 0;
    double took = 0;
    do {
      RETURN_IF_ERROR(serve[stream]());
      ++served;
      took = SecondsSince(start);
    } while (took < seconds);
    rates[stream] = static_cast<double>(served) / took;
    return absl::OkStatus();
  }));
  double total = 0;
  for (double rate : rates) total += rate;
  return total;
}

std::vector<double> PoissonArrivals(double per_second, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> arrivals;
  double now = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;  // In [0, 1).
    now -= std::log1p(-uniform) / per_second;
    arrivals.push_back(now);
  }
  return arrivals;
}

absl::StatusOr<std::vector<double>> OpenLoop(const std::vector<StreamCores>& streams, const std::vector<Serve>& serve,
                                             const std::vector<double>& arrivals) {
  std::vector<double> latencies(arrivals.size());
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  const auto start = Clock::now() + std::chrono::milliseconds(10);  // All streams wait for the first by then.
  RETURN_IF_ERROR(OnCores(streams, [&](int stream) -> absl::Status {
    // A stream that takes the next request before it has arrived waits for it: as good as a queue, and nobody has to
    // fill that on a core that streams need.
    for (size_t i = next++; i < arrivals.size() && !failed; i = next++) {
      const auto arrival =
          start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(arrivals[i]));
      WaitUntil(arrival);
      const absl::Status status = serve[stream]();
      if (!status.ok()) failed = true;
      RETURN_IF_ERROR(status);
      latencies[i] = SecondsSince(arrival);
    }
    return absl::OkStatus();
  }));
  return latencies;
}

std::vector<double> QueueOf(const std::vector<double>& arrivals, int streams, double service) {
  std::vector<double> free_at(streams, 0), latencies;
  for (double arrival : arrivals) {
    const auto first = std::min_element(free_at.begin(), free_at.end());
    *first = std::max(*first, arrival) + service;
    latencies.push_back(*first - arrival);
  }
  return latencies;
}

}  // namespace fuselage::harness::serving
