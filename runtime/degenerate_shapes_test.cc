// Rank 0 and dimensions of 0 and 1: a model's file may ask for them of any op. The executable computes what the
// interpreter does, or declines with a Status.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/degenerate_graphs.h"
#include "ir/text.h"
#include "kernels/register_all.h"
#include "kernels/register_all_reproducible.h"
#include "runtime/executable.h"
#include "runtime/testing.h"

namespace fuselage::runtime {
namespace {

constexpr double kTolerance = 1e-5;

const ir::OpRegistry& Ops() {
  static const ir::OpRegistry& ops = [] {
    auto* all = new ir::OpRegistry();
    ops::RegisterAll(*all);
    return std::cref(*all);
  }();
  return ops;
}

class DegenerateShapesTest : public ::testing::TestWithParam<std::string> {
 protected:
  DegenerateShapesTest() {
    kernels::RegisterAll(kernels_);
    kernels::RegisterAllReproducible(reproducible_);
  }

  // Did a kernel run?
  bool Check(const ir::Graph& graph, const kernels::KernelRegistry& kernels) {
    const std::vector<Tensor> inputs = SeededInputs(graph);
    const absl::StatusOr<std::vector<Tensor>> wanted = interpreter::Run(graph, inputs);
    const absl::StatusOr<std::unique_ptr<Executable>> executable = Executable::Create(graph, kernels, &pool_);
    if (!executable.ok()) {
      // Some of the reproducible kernels forbid the reference evaluation.
      const bool forbidden = &kernels == &reproducible_ && absl::IsFailedPrecondition(executable.status());
      EXPECT_TRUE(absl::IsUnimplemented(executable.status()) || forbidden) << executable.status();
      return false;
    }
    const absl::StatusOr<std::vector<Tensor>> found = RunOnce(**executable, inputs);
    EXPECT_EQ(found.status().code(), wanted.status().code()) << found.status() << wanted.status();
    if (!found.ok() || !wanted.ok()) return false;
    EXPECT_EQ(found->size(), wanted->size());
    for (size_t i = 0; i < std::min(found->size(), wanted->size()); ++i) {
      EXPECT_LE(RelativeError((*found)[i], (*wanted)[i]), kTolerance) << "output " << i;
    }
    const std::string variant = VariantOf(**executable, "y");
    return !variant.empty() && variant != "reference";
  }

  kernels::KernelRegistry kernels_, reproducible_;
  ThreadPool pool_{1};
};

TEST_P(DegenerateShapesTest, AsInTheInterpreter) {
  int graphs = 0, kernels = 0, reproducible = 0;
  testing::ForEachDegenerateCall(Ops(), *Ops().FindOrNull(GetParam()), [&](std::unique_ptr<ir::Graph> graph) {
    if (HasFailure()) return;
    ++graphs;
    kernels += Check(*graph, kernels_);
    reproducible += Check(*graph, reproducible_);
    if (HasFailure()) ADD_FAILURE() << ir::Print(*graph);
  });
  EXPECT_GT(graphs, 0);
  EXPECT_EQ(kernels > 0, kernels_.FindOrNull(GetParam()) != nullptr);
  EXPECT_EQ(reproducible > 0, reproducible_.FindOrNull(GetParam()) != nullptr);
  std::printf("%s: %d graphs, %d by a kernel, %d by a reproducible one\n", GetParam().c_str(), graphs, kernels,
              reproducible);
}

std::vector<std::string> OpNames() {
  std::vector<std::string> names;
  for (const ir::OpSchema* op : Ops().SortedByName()) {
    if (!op->takes_tuple) names.push_back(op->name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, DegenerateShapesTest, ::testing::ValuesIn(OpNames()),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace fuselage::runtime
