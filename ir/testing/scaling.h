// For tests: how the cost of a rewrite grows with the graph, without a bound in seconds.
//
//   EXPECT_LT(testing::GrowthOverCopying(1000, Build, Run), testing::kMostIfLinear);
#ifndef FUSELAGE_IR_TESTING_SCALING_H_
#define FUSELAGE_IR_TESTING_SCALING_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "ir/graph.h"

namespace fuselage::testing {

// The factor by which the cost of `run` on build(10 * n), in copies of that graph, exceeds its cost on build(n): about
// 1 where it is linear, as copying is, and up to 10 where it is quadratic. In CPU time of the calling thread; copies go on
// for as long as the run took, so a busy machine, a small cache or a build with sanitizers slows both alike. Each cost is
// the middle one of three tries. Take n such that build(n) has at least a thousand nodes.
double GrowthOverCopying(int64_t n, const std::function<std::unique_ptr<ir::Graph>(int64_t size)>& build,
                         const std::function<void(ir::Graph& graph)>& run);

constexpr double kMostIfLinear = 3;

}  // namespace fuselage::testing

#endif  // FUSELAGE_IR_TESTING_SCALING_H_
