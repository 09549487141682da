// Plain loops over lines, which each instruction set's source compiles into vectors of its own. Lines beside one
// another are the lanes; one line of neighbouring elements has kLanes of them, its element k in lane k % kLanes.
#ifndef FUSELAGE_KERNELS_ALONG_AXIS_LOOPS_H_
#define FUSELAGE_KERNELS_ALONG_AXIS_LOOPS_H_

#include <cstdint>

#include "ir/base/wide_math.h"
#include "kernels/along_axis/along_axis.h"

namespace fuselage::along_axis {
namespace {

// Does b come before a among the largest (or the smallest)? A NaN comes first. Of equal ones the last, where `last`.
template <bool largest, bool last, typename T>
inline bool Precedes(T b, T a) {
  const bool a_is_nan = a != a, b_is_nan = b != b;
  const bool is_beyond = largest ? b > a : b < a;
  const bool is_equal = b == a || (a_is_nan && b_is_nan);
  return (b_is_nan && !a_is_nan) | (!a_is_nan && is_beyond) | (last && is_equal);
}

template <bool largest, bool last, typename T>
inline void ArgmaxOfLines(const Lines& p, const T* x, int64_t* y) {
  T best[kMostLines];
  int32_t index[kMostLines];
  for (int64_t j = 0; j < p.count; ++j) {
    best[j] = x[j];
    index[j] = 0;
  }
  for (int64_t k = 1; k < p.length; ++k) {
    const T* row = x + k * p.stride;
    for (int64_t j = 0; j < p.count; ++j) {
      const bool precedes = Precedes<largest, last>(row[j], best[j]);
      best[j] = precedes ? row[j] : best[j];
      index[j] = precedes ? static_cast<int32_t>(k) : index[j];
    }
  }
  for (int64_t j = 0; j < p.count; ++j) y[j] = index[j];
}

// Of one line: each lane's best, and of these the best. Of equal ones the lowest index, or the highest.
template <bool largest, bool last, typename T>
inline void ArgmaxOfLine(const Lines& p, const T* x, int64_t* y) {
  int64_t best = 0;
  const auto try_one = [&](int64_t at) {
    const bool is_equal = x[at] == x[best] || (x[at] != x[at] && x[best] != x[best]);
    if (is_equal ? (last ? at > best : at < best) : Precedes<largest, last>(x[at], x[best])) best = at;
  };
  const int64_t rows = p.length / kLanes;
  if (rows > 0) {
    int64_t found[kLanes] = {};
    ArgmaxOfLines<largest, last>({rows, kLanes, kLanes}, x, found);
    for (int64_t j = 0; j < kLanes; ++j) try_one(found[j] * kLanes + j);
  }
  for (int64_t at = rows * kLanes; at < p.length; ++at) try_one(at);
  *y = best;
}

template <bool largest, bool last, typename T>
inline void ArgmaxOf(const Lines& p, const void* x, void* y) {
  const T* from = static_cast<const T*>(x);
  int64_t* to = static_cast<int64_t*>(y);
  p.stride == 1 ? ArgmaxOfLine<largest, last>(p, from, to) : ArgmaxOfLines<largest, last>(p, from, to);
}

template <bool largest, typename T>
void Argmax(const Lines& p, const void* x, void* y) {
  p.last ? ArgmaxOf<largest, true, T>(p, x, y) : ArgmaxOf<largest, false, T>(p, x, y);
}

// Sum: double, or uint64_t, which wraps. Of one line the sum stays in a register.
template <typename T, typename Sum>
void Cumsum(const Lines& p, const void* x, void* y) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  const auto add = [&](int64_t at, Sum & sum) __attribute__((always_inline)) {
    const Sum next = sum + static_cast<Sum>(from[at]);
    to[at] = static_cast<T>(p.exclusive ? sum : next);
    sum = next;
  };
  const auto row_at = [&](int64_t k) { return (p.reverse ? p.length - 1 - k : k) * p.stride; };
  if (p.stride == 1) {
    Sum sum = 0;
    for (int64_t k = 0; k < p.length; ++k) add(row_at(k), sum);
    return;
  }
  Sum sums[kMostLines];
  for (int64_t j = 0; j < p.count; ++j) sums[j] = 0;
  for (int64_t k = 0; k < p.length; ++k) {
    const int64_t row = row_at(k);
    for (int64_t j = 0; j < p.count; ++j) add(row + j, sums[j]);
  }
}

// The larger one; NaN where there is one.
inline float Larger(float a, float b) { return a >= b || a != a ? a : b; }

inline double PowerBelow(float largest, float x) { return wide::Exp(static_cast<double>(x) - largest); }

// The largest element of each line, and the sum of e^(x - largest), NaN where that is infinite.
inline void SumsOfPowers(const Lines& p, const float* x, float* largest, double* sums) {
  for (int64_t j = 0; j < p.count; ++j) {
    largest[j] = x[j];
    sums[j] = 0;
  }
  for (int64_t k = 1; k < p.length; ++k) {
    const float* row = x + k * p.stride;
    for (int64_t j = 0; j < p.count; ++j) largest[j] = Larger(largest[j], row[j]);
  }
  for (int64_t k = 0; k < p.length; ++k) {
    const float* row = x + k * p.stride;
    for (int64_t j = 0; j < p.count; ++j) sums[j] += PowerBelow(largest[j], row[j]);
  }
}

// The same of one line, whose lanes are added up one after another.
inline void SumOfPowers(const Lines& p, const float* x, float* largest, double* sum) {
  float lane_largest[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) lane_largest[j] = x[0];
  const int64_t whole = p.length / kLanes * kLanes;
  for (int64_t k = 0; k < whole; k += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) lane_largest[j] = Larger(lane_largest[j], x[k + j]);
  }
  float m = lane_largest[0];
  for (int64_t j = 1; j < kLanes; ++j) m = Larger(m, lane_largest[j]);
  for (int64_t k = whole; k < p.length; ++k) m = Larger(m, x[k]);
  double sums[kLanes] = {};
  for (int64_t k = 0; k < whole; k += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) sums[j] += PowerBelow(m, x[k + j]);
  }
  for (int64_t k = whole; k < p.length; ++k) sums[k - whole] += PowerBelow(m, x[k]);
  *largest = m;
  *sum = sums[0];
  for (int64_t j = 1; j < kLanes; ++j) *sum += sums[j];
}

inline void PowersOf(const Lines& p, const float* x, float* largest, double* sums) {
  p.stride == 1 ? SumOfPowers(p, x, largest, sums) : SumsOfPowers(p, x, largest, sums);
}

void LogSoftmax(const Lines& p, const void* x, void* y) {
  const float* from = static_cast<const float*>(x);
  float* to = static_cast<float*>(y);
  float largest[kMostLines];
  double logs[kMostLines];
  PowersOf(p, from, largest, logs);
  for (int64_t j = 0; j < p.count; ++j) logs[j] = static_cast<double>(largest[j]) + wide::Log(logs[j]);
  if (p.stride == 1) {
    for (int64_t k = 0; k < p.length; ++k) to[k] = static_cast<float>(from[k] - logs[0]);
    return;
  }
  for (int64_t k = 0; k < p.length; ++k) {
    const int64_t at = k * p.stride;
    for (int64_t j = 0; j < p.count; ++j) to[at + j] = static_cast<float>(from[at + j] - logs[j]);
  }
}

void Logsumexp(const Lines& p, const void* x, void* y) {
  float* to = static_cast<float*>(y);
  float largest[kMostLines];
  double sums[kMostLines];
  PowersOf(p, static_cast<const float*>(x), largest, sums);
  for (int64_t j = 0; j < p.count; ++j) {
    const bool is_finite = largest[j] - largest[j] == 0;
    to[j] = static_cast<float>(is_finite ? static_cast<double>(largest[j]) + wide::Log(sums[j]) : largest[j]);
  }
}

void Hardmax(const Lines& p, const void* x, void* y) {
  const float* from = static_cast<const float*>(x);
  float* to = static_cast<float*>(y);
  for (int64_t j = 0; j < p.count; ++j) {
    int64_t best = 0;
    for (int64_t k = 1; k < p.length; ++k) {
      if (from[k * p.stride + j] > from[best * p.stride + j]) best = k;
    }
    for (int64_t k = 0; k < p.length; ++k) to[k * p.stride + j] = k == best ? 1.0f : 0.0f;
  }
}

constexpr Row kRows[] = {
    {"argmax", true, Argmax<true, float>, Argmax<true, int32_t>, Argmax<true, int64_t>},
    {"argmin", true, Argmax<false, float>, Argmax<false, int32_t>, Argmax<false, int64_t>},
    {"cumsum", false, Cumsum<float, double>, Cumsum<int32_t, uint64_t>, Cumsum<int64_t, uint64_t>},
    {"hardmax", false, Hardmax, nullptr, nullptr},
    {"log_softmax", false, LogSoftmax, nullptr, nullptr},
    {"logsumexp", true, Logsumexp, nullptr, nullptr},
};

inline const Row* FindRowOrNull(absl::string_view op) {
  for (const Row& row : kRows) {
    if (op == row.op) return &row;
  }
  return nullptr;
}

}  // namespace
}  // namespace fuselage::along_axis

#endif  // FUSELAGE_KERNELS_ALONG_AXIS_LOOPS_H_
