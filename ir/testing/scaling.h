// For tests: how cost grows with size, without a bound in seconds.
//
//   EXPECT_LT(CostRatio(10'000, [&](int64_t n) {
//               auto graph = std::make_shared<...>(Build(n));    Not measured.
//               return [graph] { Run(*graph); };                 Measured, once.
//             }), kMostIfLinear);
#ifndef FUSELAGE_IR_TESTING_SCALING_H_
#define FUSELAGE_IR_TESTING_SCALING_H_

#include <cstdint>
#include <functional>

namespace fuselage::testing {

// Linear cost gives a ratio of about 10, some more where the larger input leaves the caches; quadratic cost about 100.
constexpr double kMostIfLinear = 40;

// The CPU time of prepare(10 * n)() over that of prepare(n)(), and the least of a few tries where it is above
// kMostIfLinear. Only the calling thread counts: that other processes have the machine as well slows both alike. Take n
// such that a run takes milliseconds at least.
double CostRatio(int64_t n, const std::function<std::function<void()>(int64_t size)>& prepare);

}  // namespace fuselage::testing

#endif  // FUSELAGE_IR_TESTING_SCALING_H_
