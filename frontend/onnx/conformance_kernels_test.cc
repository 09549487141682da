// The official ONNX test models once more, through the runtime and its kernels where there are any: the models that the
// interpreter passes give the same results, or the runtime says which node has no kernel.
#include <iostream>
#include <map>
#include <set>
#include <string>

#include "frontend/onnx/conformance.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"
#include "runtime/executable.h"
#include "runtime/thread_pool.h"

namespace fuselage::onnx::conformance {
namespace {

// Runs graphs on kernels, and counts which kernels ran.
class KernelRunner {
 public:
  KernelRunner() : pool_(1) { kernels::RegisterAll(registry_); }

  absl::StatusOr<std::vector<Tensor>> Run(const ir::Graph& graph, absl::Span<const Tensor> inputs) {
    ASSIGN_OR_RETURN(const auto executable, runtime::Executable::Create(graph, registry_, &pool_));
    executable->EnableProfile(true);
    ASSIGN_OR_RETURN(std::vector<Tensor> outputs, runtime::RunOnce(*executable, inputs));
    std::set<std::string> on_kernels, by_reference;
    for (const runtime::StepProfile& step : executable->profile()) {
      if (!step.node.empty()) (step.variant == "reference" ? by_reference : on_kernels).insert(step.op);
    }
    for (const std::string& op : on_kernels) ++models_[op];
    for (const std::string& op : by_reference) ++without_kernel_[op];
    return outputs;
  }

  // Op -> the models in which a kernel ran it.
  const std::map<std::string, int>& models() const { return models_; }
  // Op -> the models in which its reference evaluation ran.
  const std::map<std::string, int>& without_kernel() const { return without_kernel_; }

 private:
  kernels::KernelRegistry registry_;
  runtime::ThreadPool pool_;
  std::map<std::string, int> models_, without_kernel_;
};

TEST(KernelConformance, WhereAKernelExistsItAgrees) {
  KernelRunner runner;
  int passed = 0, declined = 0;
  for (const auto& model : AllModels()) {
    const Result result = RunModel(
        model, Weights::kConstants,
        [&runner](const ir::Graph& graph, absl::Span<const Tensor> inputs) { return runner.Run(graph, inputs); });
    EXPECT_NE(result.outcome, Outcome::kFailed) << model << ": " << result.message;
    ++(result.outcome == Outcome::kPassed ? passed : declined);
  }
  EXPECT_GE(passed, 963);  // As many as the interpreter passes.
  std::cout << "passed " << passed << ", declined " << declined << "; models by kernel:";
  for (const auto& [op, count] : runner.models()) std::cout << " " << op << " " << count;
  std::cout << "; by reference:";
  for (const auto& [op, count] : runner.without_kernel()) std::cout << " " << op << " " << count;
  std::cout << "\n";
  for (const char* op :
       {"conv2d", "max_pool2d", "avg_pool2d", "global_avg_pool", "linear", "add", "relu", "quantize", "dequantize",
        "dynamic_quantize_asymmetric", "conv_integer2d", "matmul_integer", "mean", "pad"}) {
    EXPECT_GT(runner.models().count(op), 0) << op;
  }
  for (const char* op : {"abs", "amax", "argmax", "eq", "exp", "instance_norm", "layer_norm", "log_softmax",
                         "logical_and", "maximum", "pow", "sqrt", "sum", "where"}) {
    EXPECT_GT(runner.models().count(op), 0) << op;
  }
}

}  // namespace
}  // namespace fuselage::onnx::conformance
