#include "kernels/reduce/reduce.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/testing/reference.h"

namespace fuselage::reduce {
namespace {

using kernels::GuardedMemory;
using Ints = std::vector<int64_t>;

const kernels::KernelRegistry& Kernels() {
  static const auto* registry = [] {
    auto* created = new kernels::KernelRegistry;
    Register(*created);
    return created;
  }();
  return *registry;
}

// Values of magnitudes so different that another order of sums is another sum.
Tensor Values(Shape shape) {
  Tensor x = SeededTensor(kernels::Floats(std::move(shape)), 5);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    x.data<float>()[i] = std::ldexp(x.data<float>()[i], static_cast<int>(i * 7 % 90) - 30);
  }
  return x;
}

constexpr const char* kOps[] = {"amax", "amin", "mean", "prod", "sum"};

TEST(Reduce, HasTheReferencesBits) {
  const std::pair<Shape, Ints> cases[] = {{{}, {}},
                                          {{1}, {}},
                                          {{0}, {0}},
                                          {{5, 0}, {1}},
                                          {{0, 5}, {1}},
                                          {{1000}, {}},
                                          {{3, 67}, {1}},
                                          {{67, 3}, {0}},
                                          {{9, 33}, {-1}},
                                          {{2, 17, 5, 3}, {2, 3}},
                                          {{2, 17, 5, 3}, {1}},
                                          {{2, 17, 5, 3}, {0, 2}},
                                          {{2, 65, 4, 4}, {1, 3}},
                                          {{2, 17, 5, 3}, {}},
                                          {{1, 3, 1, 7}, {3}},
                                          {{2, 3, 4, 5, 6}, {1, 3}},
                                          {{40, 700}, {1}},
                                          {{2, 3, 2, 3, 2, 3}, {0, 2, 4}}};
  for (const auto& [shape, dims] : cases) {
    for (const std::string op : kOps) {
      if (op[0] == 'a' && Values(shape).num_elements() == 0) continue;  // Empty sets have no extremum.
      for (const bool keepdim : {false, true}) {
        EXPECT_EQ(DifferenceFromReference(Kernels(), {op, {Values(shape)}, {{"dims", dims}, {"keepdim", keepdim}}}), "")
            << op << ToString(shape) << ToString(dims);
      }
    }
  }
}

TEST(Reduce, KeepsInfinitiesAndNan) {
  Tensor x = Values({4, 40});
  x.data<float>()[3] = INFINITY;
  x.data<float>()[45] = NAN;
  x.data<float>()[85] = INFINITY;
  x.data<float>()[86] = -INFINITY;
  for (const int64_t dim : {0, 1}) {
    for (const char* op : kOps) {
      EXPECT_EQ(DifferenceFromReference(Kernels(), {op, {x}, {{"dims", Ints{dim}}}}), "") << op;
    }
  }
}

TEST(AdaptiveAveragePool, HasTheReferencesBits) {
  const std::pair<Shape, Ints> cases[] = {
      {{2, 3, 10}, {4}},      {{1, 17, 7, 5}, {3, 2}},      {{2, 33, 5, 6}, {1, 1}},   {{1, 3, 4, 4}, {7, 6}},
      {{0, 3, 4, 4}, {2, 3}}, {{1, 2, 5, 4, 3}, {2, 3, 2}}, {{3, 300, 13, 13}, {6, 6}}};
  for (const auto& [shape, size] : cases) {
    const std::string op = absl::StrCat("adaptive_avg_pool", size.size(), "d");
    EXPECT_EQ(DifferenceFromReference(Kernels(), {op, {Values(shape)}, {{"output_size", size}}}), "")
        << ToString(shape);
  }
}

TEST(Create, DeclinesOtherTypes) {
  const Tensor x(DType::kF64, {2, 3, 4, 4});
  for (const kernels::OpCall& call :
       {kernels::OpCall{"mean", {x}, {}}, kernels::OpCall{"adaptive_avg_pool2d", {x}, {{"output_size", Ints{2, 2}}}}}) {
    const auto kernel = Kernels().FindOrNull(call.op)->create(DescOf(call, Layout::kNhwc, Layout::kNhwc));
    EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented);
  }
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, HasTheBitsOfScalar) {
  for (const int64_t results : {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 64}) {
    for (const int64_t count : {1, 2, 7, 8, 50}) {
      for (const bool unit : {true, false}) {
        Params params;
        params.fold = static_cast<Fold>(count % 5);
        params.loops[0] = {2, 3 * count * results};
        params.loops[1] = {count, unit ? results : 1};
        params.num_loops = 2;
        params.count = 2 * count;
        params.result_stride = unit ? 1 : count;
        const Tensor values = Values({1 + 4 * count * results});
        const float* x = values.data<float>() + 1;  // Misaligned.
        GuardedMemory wanted(4 * results), found(4 * results, 4);
        scalar::Run(params, x, wanted.as<float>(), results);
        GetParam().run(params, x, found.as<float>(), results);
        ASSERT_TRUE(results == 0 || std::memcmp(wanted.data(), found.data(), wanted.size()) == 0) << results;
        ASSERT_TRUE(found.guards_intact());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run)),
                         kernels::VariantName());

}  // namespace
}  // namespace fuselage::reduce
