#include "kernels/core/testing/peak.h"

#include <algorithm>
#include <chrono>

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

}  // namespace

double PeakMacsPerSecond(Isa isa) {
  if (!CpuSupports(isa)) return 0;
  switch (isa) {
    case Isa::kScalar: return 0;
    case Isa::kAvx2: {
      static const double peak = Measure(avx2::MultiplyAtPeak);
      return peak;
    }
    case Isa::kAvx512Vnni: {
      static const double peak = Measure(avx512_vnni::MultiplyAtPeak);
      return peak;
    }
    case Isa::kAmx: {
      static const double peak = Measure(amx::MultiplyAtPeak);
      return peak;
    }
  }
  return 0;
}

}  // namespace fuselage::kernels
