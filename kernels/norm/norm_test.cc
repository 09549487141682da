#include "kernels/norm/norm.h"

#include <cmath>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/testing/reference.h"

namespace fuselage::norm {
namespace {

using kernels::Floats;
using Ints = std::vector<int64_t>;

struct Case {
  const char* op;
  Shape shape;
  Shape parameters;
  AttributeMap attributes;
};

std::vector<Case> Cases() {
  return {{"layer_norm", {7, 33}, {33}, {{"normalized_shape", Ints{33}}, {"eps", 1e-5}}},
          {"layer_norm", {2, 3, 4, 5}, {4, 5}, {{"normalized_shape", Ints{4, 5}}, {"eps", 0.1}}},
          {"rms_norm", {2, 5, 64}, {64}, {{"normalized_shape", Ints{64}}, {"eps", 1e-6}}},
          {"rms_norm", {1}, {1}, {{"normalized_shape", Ints{1}}, {"eps", 1.0}}},
          {"group_norm", {2, 6, 5, 3}, {6}, {{"num_groups", 3}, {"eps", 1e-5}}},
          {"group_norm", {3, 8}, {8}, {{"num_groups", 4}, {"eps", 1e-5}}},
          {"group_norm", {2, 4, 1, 1}, {4}, {{"num_groups", 1}, {"eps", 1e-5}}},
          {"instance_norm", {2, 5, 3, 4}, {5}, {{"eps", 1e-5}}},
          {"instance_norm", {1, 3, 4001}, {3}, {{"eps", 1e-5}}}};
}

// To one unit in the last place (the reference divides before it adds), and the same on every number of threads.
TEST(Norm, FollowsTheReference) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(::testing::Message() << c.op << ToString(c.shape));
    const Tensor x = SeededTensor(Floats(c.shape), 1), weight = SeededTensor(Floats(c.parameters), 2);
    const Tensor bias = SeededTensor(Floats(c.parameters), 3);
    for (const bool with_parameters : {true, false}) {
      kernels::OpCall call{c.op, {x, std::nullopt, std::nullopt}, c.attributes};
      if (with_parameters) call.operands = {x, weight, bias};
      if (kernels::Ops().FindOrNull(c.op)->operands.size() == 2) call.operands.pop_back();
      std::vector<std::vector<Tensor>> values;
      for (const auto& operand : call.operands) {
        values.emplace_back();
        if (operand) values.back().push_back(*operand);
      }
      std::vector<const std::vector<Tensor>*> pointers;
      for (const auto& value : values) pointers.push_back(value.empty() ? nullptr : &value);
      const auto wanted = ir::Evaluate(*kernels::Ops().FindOrNull(c.op), call.attributes, pointers, ir::Type(x.type()));
      ASSERT_TRUE(wanted.ok()) << wanted.status();
      kernels::KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
      std::vector<Tensor> found;
      for (const int threads : {1, 3}) {
        desc.threads = threads;
        const auto kernel = Create(desc);
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        kernels::TestThreads parallel(threads);
        auto result = kernels::RunKernel(**kernel, {&x}, &parallel);
        ASSERT_TRUE(result.ok()) << result.status();
        found.push_back(*std::move(result));
      }
      EXPECT_TRUE(found[0].SameBytes(found[1]));
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        const double a = found[0].At(i), b = (*wanted)[0].At(i);
        ASSERT_NEAR(a, b, 1.2e-7 * std::fabs(b)) << i;
      }
    }
  }
}

TEST(Norm, Declines) {
  const kernels::OpCall call{"instance_norm", {Tensor(DType::kF64, {1, 2, 3}), std::nullopt, std::nullopt}, {}};
  EXPECT_EQ(Create(DescOf(call, Layout::kRowMajor, Layout::kRowMajor)).status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::norm
