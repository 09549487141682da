#include "compiler/profiler.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "ir/base/status.h"
#include "runtime/thread_pool.h"

namespace fuselage::compiler {
namespace {

using Clock = std::chrono::steady_clock;

Tensor SmallNumbers(const TensorType& type) {
  Tensor tensor(type);
  if (type.dtype != DType::kF32) return tensor;
  float* values = tensor.data<float>();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
  return tensor;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

absl::StatusOr<std::vector<Profiler::Call>> Profiler::Profile(const ir::Graph& graph) {
  runtime::ThreadPool pool(1);
  ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Executable> executable,
                   runtime::Executable::Create(graph, kernels_, &pool, options_.executable));
  std::vector<Tensor> inputs;
  for (const TensorType& type : executable->input_types()) inputs.push_back(SmallNumbers(type));
  RETURN_IF_ERROR(runtime::RunOnce(*executable, inputs).status());
  executable->EnableProfile(true);
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.seconds));
  for (int i = 0; i < options_.repetitions || Clock::now() < end; ++i) {
    RETURN_IF_ERROR(runtime::RunOnce(*executable, inputs).status());
  }
  std::vector<Call> calls;
  for (const runtime::StepProfile& step : executable->profile()) {
    const ir::Node* node = graph.FindNodeOrNull(step.node);
    calls.push_back({step.op, node == nullptr ? std::vector<std::string>() : node->SourcesOrSelf(), step.bytes,
                     Median(step.seconds)});
  }
  return calls;
}

}  // namespace fuselage::compiler
