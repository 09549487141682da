#include "kernels/core/testing/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace fuselage::kernels {
namespace {

double Measure(PeakLoop* loop) {
  using Clock = std::chrono::steady_clock;
  constexpr double kSeconds = 0.002;
  double best = 0;
  int64_t repetitions = 64;
  // The first ones warm up the vector units; the best one is the least disturbed.
  for (int attempts = 0; attempts < 10;) {
    const Clock::time_point start = Clock::now();
    const int64_t macs = loop(repetitions);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds < kSeconds) {
      repetitions *= 2;
      continue;
    }
    best = std::max(best, static_cast<double>(macs) / seconds);
    ++attempts;
  }
  return best;
}

struct Peak {
  Isa isa;
  PeakLoop* loop;
};
constexpr Peak kPeaks[] = {{Isa::kAvx2, avx2::MultiplyAtPeak},
                           {Isa::kAvxVnni, avx_vnni::MultiplyAtPeak},
                           {Isa::kAvx512Vnni, avx512_vnni::MultiplyAtPeak},
                           {Isa::kAmx, amx::MultiplyAtPeak}};

}  // namespace

double PeakMacsPerSecond(Isa isa) {
  static const std::vector<double> measured = [] {
    std::vector<double> peaks;
    for (const Peak& peak : kPeaks) peaks.push_back(CpuSupports(peak.isa) ? Measure(peak.loop) : 0);
    return peaks;
  }();
  double best = 0;
  for (size_t i = 0; i < measured.size(); ++i) {
    if (isa.Includes(kPeaks[i].isa)) best = std::max(best, measured[i]);
  }
  return best;
}

}  // namespace fuselage::kernels
