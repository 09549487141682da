// The exported examples, normalized, on the FP32 kernels.
#include "frontend/fx/testing.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/register_all.h"
#include "passes/normalize/normalize.h"
#include "runtime/executable.h"

namespace fuselage::fx {
namespace {

class ExamplesKernelsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ExamplesKernelsTest, ComputeWhatPyTorchComputed) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  kernels::KernelRegistry kernels;
  kernels::RegisterAll(kernels);
  ASSERT_OK_AND_ASSIGN(const Example example, LoadExample(GetParam(), ops));
  passes::Remarks remarks;
  ASSERT_OK(normalize::Normalize({}).Run(*example.graph, remarks));
  runtime::ThreadPool pool(2);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<runtime::Executable> executable,
                       runtime::Executable::Create(*example.graph, kernels, &pool));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, runtime::RunOnce(*executable, example.inputs));
  EXPECT_OK(CompareOutputs(outputs, example.outputs));
}

INSTANTIATE_TEST_SUITE_P(All, ExamplesKernelsTest, ::testing::ValuesIn(ExampleNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fuselage::fx
