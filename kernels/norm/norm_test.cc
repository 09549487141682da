#include "kernels/norm/norm.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/testing/reference.h"

namespace fuselage::norm {
namespace {

using kernels::Floats;
using kernels::GuardedMemory;
using Ints = std::vector<int64_t>;

const kernels::KernelRegistry& Kernels() {
  static const auto* registry = [] {
    auto* created = new kernels::KernelRegistry;
    Register(*created);
    created->Register({"layer_norm", kernels::LayoutRule::kRowMajor, Create});
    return created;
  }();
  return *registry;
}

struct Case {
  const char* op;
  Shape shape;
  Shape parameters;
  AttributeMap attributes;
};

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"layer_norm", {2, 3, 4, 5}, {4, 5}, {{"normalized_shape", Ints{4, 5}}, {"eps", 0.1}}},
      {"rms_norm", {2, 5, 64}, {64}, {{"normalized_shape", Ints{64}}, {"eps", 1e-6}}},
      {"rms_norm", {1}, {1}, {{"normalized_shape", Ints{1}}, {"eps", 1.0}}},
      {"group_norm", {2, 6, 5, 3}, {6}, {{"num_groups", 3}, {"eps", 1e-5}}},
      {"group_norm", {3, 8}, {8}, {{"num_groups", 4}, {"eps", 1e-5}}},
      {"group_norm", {2, 4, 1, 1}, {4}, {{"num_groups", 1}, {"eps", 1e-5}}},
      {"instance_norm", {2, 5, 3, 4}, {5}, {{"eps", 1e-5}}},
      {"instance_norm", {1, 3, 4001}, {3}, {{"eps", 1e-5}}},
      {"group_norm", {2, 6, 5, 3}, {6}, {{"num_groups", 2}, {"activation", "silu, clamp(min=-0.125, max=1)"}}},
      {"group_norm", {1, 4, 4, 8}, {4}, {{"num_groups", 4}, {"activation", "gelu"}}},
      {"group_norm", {2, 6, 5, 3}, {6}, {{"num_groups", 3}, {"activation", "relu"}}},
      {"instance_norm", {2, 5, 3, 4}, {5}, {{"activation", "clamp(min=-0.5, max=0.25)"}}}};
  for (const int64_t n : {1, 15, 16, 17, 31, 32, 33, 768, 5000}) {
    cases.push_back({"layer_norm", {19, n}, {n}, {{"normalized_shape", Ints{n}}, {"eps", 1e-5}}});
  }
  return cases;
}

TEST(Norm, HasTheReferencesBits) {
  for (const Case& c : Cases()) {
    const Tensor x = SeededTensor(Floats(c.shape), 1), weight = SeededTensor(Floats(c.parameters), 2);
    const Tensor bias = SeededTensor(Floats(c.parameters), 3);
    for (const bool with_parameters : {true, false}) {
      kernels::OpCall call{c.op, {x, std::nullopt, std::nullopt}, c.attributes};
      if (with_parameters) call.operands = {x, weight, bias};
      if (kernels::Ops().FindOrNull(c.op)->operands.size() == 2) call.operands.pop_back();
      EXPECT_EQ(DifferenceFromReference(Kernels(), call), "") << c.op << ToString(c.shape);
    }
  }
}

TEST(Norm, Declines) {
  const kernels::OpCall call{"instance_norm", {Tensor(DType::kF64, {1, 2, 3}), std::nullopt, std::nullopt}, {}};
  EXPECT_EQ(Create(DescOf(call, Layout::kRowMajor, Layout::kRowMajor)).status().code(),
            absl::StatusCode::kUnimplemented);
}

using VariantTest = kernels::VariantTest<Variant>;

// Floats, to the bit but for NaN.
void ExpectSame(GuardedMemory (&memory)[2], int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float a = memory[0].as<float>()[i], b = memory[1].as<float>()[i];
    EXPECT_TRUE(std::memcmp(&a, &b, sizeof(a)) == 0 || (a != a && b != b)) << n << " " << i << ": " << a << " " << b;
  }
}

struct Blocks {
  int64_t n, inner, rows;
};
constexpr Blocks kBlocks[] = {{1, 1, 1},  {1, 1, 8},  {7, 1, 3},  {15, 1, 2},  {16, 1, 5},  {17, 1, 8},  {31, 1, 1},
                              {33, 1, 4}, {64, 1, 7}, {96, 1, 8}, {200, 1, 6}, {768, 1, 3}, {36, 12, 1}, {35, 35, 1}};

TEST_P(VariantTest, HasTheBitsOfScalar) {
  for (const auto& [n, inner, rows] : kBlocks) {
    const int64_t all = n * rows;
    for (const bool centered : {true, false}) {
      for (const bool adds : {true, false}) {
        for (const float value : {1.0f, 0.0f, -1e30f, 1e-40f, std::numeric_limits<float>::infinity()}) {
          GuardedMemory x(4 * all, 4), residual(4 * all, 4), weight(4 * n, 4), bias(4 * n, 4);
          uint64_t seed = 0;
          for (GuardedMemory* memory : {&x, &residual, &weight, &bias}) {
            const Tensor values = SeededTensor(Floats({memory->size() / 4}), ++seed);
            std::copy_n(values.data<float>(), values.num_elements(), memory->as<float>());
          }
          x.as<float>()[all / 2] = value;
          Block block;
          block.x = x.as<float>();
          block.weight = weight.as<float>();
          block.bias = bias.as<float>();
          block.n = n;
          block.inner = inner;
          block.rows = rows;
          block.centered = centered;
          block.eps = 1e-5;
          GuardedMemory sum[] = {GuardedMemory(4 * all, 4), GuardedMemory(4 * all, 4)};
          GuardedMemory y[] = {GuardedMemory(4 * all, 4), GuardedMemory(4 * all, 4)};
          const auto run = [&](Function* function, int i) {
            block.y = y[i].as<float>();
            if (adds) {
              block.residual = residual.as<float>();
              block.sum = sum[i].as<float>();
            }
            function(block);
            EXPECT_TRUE(sum[i].guards_intact() && y[i].guards_intact());
          };
          run(scalar::Normalize, 0);
          run(GetParam().run, 1);
          ExpectSame(y, all);
          if (adds) {
            ExpectSame(sum, all);
            continue;
          }
          block.x = y[1].as<float>();  // In place.
          std::copy_n(x.as<float>(), all, y[1].as<float>());
          run(GetParam().run, 1);
          ExpectSame(y, all);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Normalize)),
                         kernels::VariantName());

}  // namespace
}  // namespace fuselage::norm
