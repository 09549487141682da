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
  DegenerateShapesTest() { kernels::RegisterAll(kernels_); }

  // Did a kernel run?
  bool Check(const ir::Graph& graph) {
    const std::vector<Tensor> inputs = SeededInputs(graph);
    const absl::StatusOr<std::vector<Tensor>> wanted = interpreter::Run(graph, inputs);
    const absl::StatusOr<std::unique_ptr<Executable>> executable = Executable::Create(graph, kernels_, &pool_);
    if (!executable.ok()) {
      EXPECT_TRUE(absl::IsUnimplemented(executable.status())) << executable.status();
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

  kernels::KernelRegistry kernels_;
  ThreadPool pool_{1};
};

TEST_P(DegenerateShapesTest, AsInTheInterpreter) {
  int graphs = 0, kernels = 0;
  testing::ForEachDegenerateCall(Ops(), *Ops().FindOrNull(GetParam()), [&](std::unique_ptr<ir::Graph> graph) {
    if (HasFailure()) return;
    ++graphs;
    kernels += Check(*graph);
    if (HasFailure()) ADD_FAILURE() << ir::Print(*graph);
  });
  EXPECT_GT(graphs, 0);
  if (kernels_.FindOrNull(GetParam()) != nullptr) EXPECT_GT(kernels, 0);
  std::printf("%s: %d graphs, %d by a kernel\n", GetParam().c_str(), graphs, kernels);
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
