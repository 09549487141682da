#include "kernels/norm/norm.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
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
  std::vector<Case> cases = {{"layer_norm", {2, 3, 4, 5}, {4, 5}, {{"normalized_shape", Ints{4, 5}}, {"eps", 0.1}}},
                             {"rms_norm", {2, 5, 64}, {64}, {{"normalized_shape", Ints{64}}, {"eps", 1e-6}}},
                             {"rms_norm", {1}, {1}, {{"normalized_shape", Ints{1}}, {"eps", 1.0}}},
                             {"group_norm", {2, 6, 5, 3}, {6}, {{"num_groups", 3}, {"eps", 1e-5}}},
                             {"group_norm", {3, 8}, {8}, {{"num_groups", 4}, {"eps", 1e-5}}},
                             {"group_norm", {2, 4, 1, 1}, {4}, {{"num_groups", 1}, {"eps", 1e-5}}},
                             {"instance_norm", {2, 5, 3, 4}, {5}, {{"eps", 1e-5}}},
                             {"instance_norm", {1, 3, 4001}, {3}, {{"eps", 1e-5}}}};
  for (const int64_t n : {1, 15, 16, 17, 31, 32, 33, 768}) {
    cases.push_back({"layer_norm", {7, n}, {n}, {{"normalized_shape", Ints{n}}, {"eps", 1e-5}}});
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

TEST_P(VariantTest, HasTheBitsOfScalar) {
  for (const auto& [n, inner] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {7, 1}, {15, 1}, {16, 1}, {17, 1}, {31, 1}, {33, 1}, {64, 1}, {200, 1}, {36, 12}, {35, 35}}) {
    for (const bool centered : {true, false}) {
      for (const float value : {1.0f, 0.0f, -1e30f, 1e-40f, std::numeric_limits<float>::infinity()}) {
        GuardedMemory x(4 * n, 4), weight(4 * n, 4), bias(4 * n, 4), wanted(4 * n, 4), found(4 * n, 4);
        uint64_t seed = 0;
        for (GuardedMemory* memory : {&x, &weight, &bias}) {
          const Tensor values = SeededTensor(Floats({n}), ++seed);
          std::copy_n(values.data<float>(), n, memory->as<float>());
        }
        x.as<float>()[n / 2] = value;
        Row row = {x.as<float>(), wanted.as<float>(), weight.as<float>(), bias.as<float>(), n, inner, centered, 1e-5};
        scalar::Normalize(row);
        row.y = found.as<float>();
        GetParam().run(row);
        EXPECT_TRUE(found.guards_intact());
        for (int64_t i = 0; i < n; ++i) {
          const float a = wanted.as<float>()[i], b = found.as<float>()[i];
          EXPECT_TRUE(std::memcmp(&a, &b, sizeof(a)) == 0 || (a != a && b != b))
              << n << " " << i << ": " << a << " " << b;
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
