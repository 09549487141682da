#include "compiler/profiler.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/timings.pb.h"
#include "ir/base/status.h"
#include "ir/text.h"
#include "passes/core/kept_message.h"
#include "runtime/thread_pool.h"

namespace fuselage::compiler {
namespace {

using Clock = std::chrono::steady_clock;
using Runs = std::vector<std::vector<Profiler::Call>>;

Tensor SmallNumbers(const TensorType& type) {
  Tensor tensor(type);
  if (type.dtype != DType::kF32) return tensor;
  float* values = tensor.data<float>();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
  return tensor;
}

// What else runs on the machine makes calls slower, never faster: more than half of them may be.
double LowerQuartile(std::vector<double> values) {
  const auto quarter = values.begin() + static_cast<int64_t>(values.size() / 4);
  std::nth_element(values.begin(), quarter, values.end());
  return *quarter;
}

Timings::Key KeyOf(absl::Span<const ir::Graph* const> graphs, const ProfilerOptions& options) {
  Timings::Key key;
  for (const ir::Graph* graph : graphs) key.add_graphs(passes::TextFingerprint(ir::Print(*graph)));
  key.set_machine(absl::StrCat(kernels::CpuName(), ", ", kernels::IsaName(options.executable.isa)));
  struct stat program = {};
  if (stat("/proc/self/exe", &program) == 0) {
    key.set_program(absl::StrCat(program.st_size, " bytes, ", program.st_mtim.tv_sec, ".", program.st_mtim.tv_nsec));
  }
  return key;
}

// The graphs alone.
std::string GraphsOf(const Timings::Key& key) {
  Timings::Key graphs;
  *graphs.mutable_graphs() = key.graphs();
  return passes::TextOf(graphs);
}

// What the names of files about these graphs begin with.
std::string PrefixOf(const Timings::Key& key) {
  return absl::StrCat("timings-", passes::TextFingerprint(GraphsOf(key)), "-");
}

Runs RunsOf(const Timings& timings) {
  Runs runs;
  for (const Timings::Run& run : timings.runs()) {
    std::vector<Profiler::Call>& calls = runs.emplace_back();
    for (const Timings::Call& call : run.calls()) {
      calls.push_back({call.op(), {call.sources().begin(), call.sources().end()}, call.bytes(), call.seconds()});
    }
  }
  return runs;
}

// None where the file is of something else, or is no such file.
std::optional<Runs> Kept(const std::string& path, const Timings::Key& key) {
  Timings timings;
  if (!passes::ReadKeptMessage(path, &timings).ok()) return std::nullopt;
  if (passes::TextOf(timings.key()) != passes::TextOf(key)) return std::nullopt;
  return RunsOf(timings);
}

absl::StatusOr<Runs> Replayed(const std::string& folder, const Timings::Key& key) {
  const std::string prefix = PrefixOf(key), wanted = absl::StrCat(folder, "/", prefix, "*.textproto");
  std::vector<std::string> found;
  std::error_code ignored;  // A folder that cannot be read has no such files.
  for (const auto& file : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = file.path().filename();
    if (absl::StartsWith(name, prefix) && absl::EndsWith(name, ".textproto")) found.push_back(file.path());
  }
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat("replay: found no timings of ", key.graphs_size(), " graphs, wanted a file ", wanted));
  }
  if (found.size() > 1) {
    return absl::FailedPreconditionError(absl::StrCat("replay: found ", found.size(), " files ", wanted,
                                                      ", of several machines or programs, wanted one"));
  }
  Timings timings;
  RETURN_IF_ERROR(Annotate(passes::ReadKeptMessage(found[0], &timings), absl::StrCat("replay: ", found[0])));
  if (GraphsOf(timings.key()) != GraphsOf(key) || timings.runs_size() != key.graphs_size()) {
    return absl::DataLossError(absl::StrCat("replay: ", found[0], " is about other graphs"));
  }
  return RunsOf(timings);
}

void Keep(const std::string& path, const Timings::Key& key, const Runs& runs) {
  Timings timings;
  *timings.mutable_key() = key;
  for (const std::vector<Profiler::Call>& calls : runs) {
    Timings::Run* run = timings.add_runs();
    for (const Profiler::Call& call : calls) {
      Timings::Call* kept = run->add_calls();
      kept->set_op(call.op);
      for (const std::string& source : call.sources) kept->add_sources(source);
      kept->set_bytes(call.bytes);
      kept->set_seconds(call.seconds);
    }
  }
  passes::KeepMessage(path, &timings).IgnoreError();
}

struct Contestant {
  std::unique_ptr<runtime::Executable> executable;
  std::vector<Tensor> inputs;

  // For so long, and at least once. A run before it, which is not timed, brings the weights into the caches.
  absl::Status TakeTurn(double seconds) {
    RETURN_IF_ERROR(runtime::RunOnce(*executable, inputs).status());
    executable->EnableProfile(true);
    const Clock::time_point end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    do {
      RETURN_IF_ERROR(runtime::RunOnce(*executable, inputs).status());
    } while (Clock::now() < end);
    executable->EnableProfile(false);
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<Runs> Profiler::Profile(absl::Span<const ir::Graph* const> graphs) {
  if (options_.cache_folder.empty() && options_.replay_folder.empty()) return Measure(graphs);
  const Timings::Key key = KeyOf(graphs, options_);
  if (!options_.replay_folder.empty()) return Replayed(options_.replay_folder, key);
  const std::string path = absl::StrCat(options_.cache_folder, "/", PrefixOf(key),
                                        passes::TextFingerprint(passes::TextOf(key)), ".textproto");
  if (std::optional<Runs> kept = Kept(path, key); kept.has_value()) return *std::move(kept);
  ASSIGN_OR_RETURN(Runs runs, Measure(graphs));
  Keep(path, key, runs);
  return runs;
}

absl::StatusOr<Runs> Profiler::Measure(absl::Span<const ir::Graph* const> graphs) const {
  runtime::ThreadPool pool(1);
  std::vector<Contestant> contestants;
  for (const ir::Graph* graph : graphs) {
    Contestant& contestant = contestants.emplace_back();
    ASSIGN_OR_RETURN(contestant.executable, runtime::Executable::Create(*graph, kernels_, &pool, options_.executable));
    for (const TensorType& type : contestant.executable->input_types()) contestant.inputs.push_back(SmallNumbers(type));
  }
  for (int turn = 0; turn < options_.repetitions; ++turn) {
    for (Contestant& contestant : contestants) {
      RETURN_IF_ERROR(contestant.TakeTurn(options_.seconds / options_.repetitions));
    }
  }
  Runs runs;
  for (size_t i = 0; i < graphs.size(); ++i) {
    std::vector<Call>& calls = runs.emplace_back();
    for (const runtime::StepProfile& step : contestants[i].executable->profile()) {
      const ir::Node* node = graphs[i]->FindNodeOrNull(step.node);
      calls.push_back({step.op, node == nullptr ? std::vector<std::string>() : node->SourcesOrSelf(), step.bytes,
                       LowerQuartile(step.seconds)});
    }
  }
  return runs;
}

}  // namespace fuselage::compiler
