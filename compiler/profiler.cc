#include "compiler/profiler.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/timings.pb.h"
#include "ir/base/status.h"
#include "ir/text.h"
#include "passes/core/kept_message.h"
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

Timings::Key KeyOf(const ir::Graph& graph, const ProfilerOptions& options) {
  Timings::Key key;
  key.set_graph(passes::TextFingerprint(ir::Print(graph)));
  key.set_machine(absl::StrCat(kernels::CpuName(), ", ", kernels::IsaName(options.executable.isa)));
  struct stat program = {};
  if (stat("/proc/self/exe", &program) == 0) {
    key.set_program(absl::StrCat(program.st_size, " bytes, ", program.st_mtim.tv_sec, ".", program.st_mtim.tv_nsec));
  }
  return key;
}

// None where the file is of something else, or is no such file.
std::optional<std::vector<Profiler::Call>> Kept(const std::string& path, const Timings::Key& key) {
  Timings timings;
  if (!passes::ReadKeptMessage(path, &timings).ok()) return std::nullopt;
  if (passes::TextOf(timings.key()) != passes::TextOf(key)) return std::nullopt;
  std::vector<Profiler::Call> calls;
  for (const Timings::Call& call : timings.calls()) {
    calls.push_back({call.op(), {call.sources().begin(), call.sources().end()}, call.bytes(), call.seconds()});
  }
  return calls;
}

void Keep(const std::string& path, const Timings::Key& key, const std::vector<Profiler::Call>& calls) {
  Timings timings;
  *timings.mutable_key() = key;
  for (const Profiler::Call& call : calls) {
    Timings::Call* kept = timings.add_calls();
    kept->set_op(call.op);
    for (const std::string& source : call.sources) kept->add_sources(source);
    kept->set_bytes(call.bytes);
    kept->set_seconds(call.seconds);
  }
  passes::KeepMessage(path, &timings).IgnoreError();
}

}  // namespace

absl::StatusOr<std::vector<Profiler::Call>> Profiler::Profile(const ir::Graph& graph) {
  if (options_.cache_folder.empty()) return Measure(graph);
  const Timings::Key key = KeyOf(graph, options_);
  const std::string path =
      absl::StrCat(options_.cache_folder, "/timings-", passes::TextFingerprint(passes::TextOf(key)), ".textproto");
  if (std::optional<std::vector<Call>> kept = Kept(path, key); kept.has_value()) return *std::move(kept);
  ASSIGN_OR_RETURN(std::vector<Call> calls, Measure(graph));
  Keep(path, key, calls);
  return calls;
}

absl::StatusOr<std::vector<Profiler::Call>> Profiler::Measure(const ir::Graph& graph) const {
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
