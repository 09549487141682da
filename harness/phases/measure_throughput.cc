#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/engine.h"
#include "harness/base/machine_load.h"
#include "harness/base/statistics.h"
#include "harness/phases/phases.h"
#include "harness/recorder.h"
#include "harness/serving/cores.h"
#include "harness/serving/requests.h"
#include "ir/base/status.h"
#include "runtime/executable.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness::phases {
namespace {

constexpr double kDefaultLoads[] = {10, 50, 70, 90};
constexpr double kDefaultSeconds = 5;
constexpr int kTurns = 5;
constexpr uint64_t kSeed = 1;

struct Settings {
  std::vector<int> streams;
  int threads = 1;
  int64_t batch = 1;
  std::vector<double> loads;
  double seconds = kDefaultSeconds;
};

Settings SettingsOf(const HarnessConfig::Throughput& config) {
  Settings settings;
  settings.threads = std::max(1, config.threads());
  settings.batch = std::max(1, config.batch());
  std::vector<int> wanted(config.streams().begin(), config.streams().end());
  if (wanted.empty()) wanted = {1, 0};
  for (int streams : wanted) {
    if (streams == 0) streams = std::max(1, static_cast<int>(serving::AllowedCores().size()) / settings.threads);
    const auto& known = settings.streams;
    if (std::find(known.begin(), known.end(), streams) == known.end()) settings.streams.push_back(streams);
  }
  settings.loads.assign(config.load_percent().begin(), config.load_percent().end());
  if (settings.loads.empty()) settings.loads.assign(std::begin(kDefaultLoads), std::end(kDefaultLoads));
  if (config.seconds() > 0) settings.seconds = config.seconds();
  return settings;
}

// A variant's sessions, each on cores of its own; on a GPU they share that, each with a stream of its own there.
struct Server {
  size_t variant = 0;
  std::vector<serving::StreamCores> cores;
  std::vector<std::unique_ptr<runtime::ThreadPool>> pools;
  std::vector<std::unique_ptr<compiler::Engine>> engines;
  std::vector<serving::Serve> serve;
  std::vector<double> rates;  // Requests a second, a turn each.

  double rate() const { return Summarize(rates).median; }
};

// By variant and node of memory: all sessions there share its packed weights. On a GPU each has its own, and the device
// one copy of the weights.
using Programs = std::map<std::pair<size_t, int>, std::shared_ptr<const runtime::Program>>;

// Its requests have these inputs, which may come later.
absl::StatusOr<std::unique_ptr<Server>> MakeServer(RunState& run, size_t index, int streams, const Settings& settings,
                                                   const std::vector<Tensor>& inputs, Programs* programs) {
  const Variant& variant = run.variants[index];
  auto server = std::make_unique<Server>();
  server->variant = index;
  ASSIGN_OR_RETURN(server->cores, serving::CoresOfStreams(streams, settings.threads));
  ASSIGN_OR_RETURN(const auto graph, variant.GraphAt(settings.batch));
  runtime::ExecutableOptions options;
  options.isa = variant.engine.isa;
  options.max_memory_bytes = variant.engine.max_memory_bytes;
  options.cache_bytes = variant.engine.cache_bytes;
  server->pools.resize(streams);
  server->engines.resize(streams);
  for (int stream = 0; stream < streams; ++stream) {
    // The stream's own thread touches the memory first, which puts it on its node.
    RETURN_IF_ERROR(serving::OnCores({server->cores[stream]}, [&](int) -> absl::Status {
      server->pools[stream] = std::make_unique<runtime::ThreadPool>(settings.threads);
      runtime::ThreadPool* const pool = server->pools[stream].get();
      if (variant.engine.backend == "cuda") {
        ASSIGN_OR_RETURN(server->engines[stream],
                         compiler::MakeEngine(*graph, settings.batch, run.library.kernels, pool, variant.engine));
        return absl::OkStatus();
      }
      auto& program = (*programs)[{index, server->cores[stream].node}];
      if (program == nullptr) {
        ASSIGN_OR_RETURN(program, runtime::MakeProgram(*graph, run.library.kernels, settings.threads, options));
      }
      ASSIGN_OR_RETURN(server->engines[stream], compiler::MakeEngine(program, pool));
      return absl::OkStatus();
    }));
    server->serve.push_back([engine = server->engines[stream].get(), &inputs] { return engine->Run(inputs).status(); });
  }
  return server;
}

absl::StatusOr<Results::Throughput::Load> Offer(const Server& server, double percent, double seconds) {
  const double rate = server.rate() * percent / 100;
  const auto count = static_cast<int64_t>(std::ceil(rate * seconds));
  const std::vector<double> arrivals = serving::PoissonArrivals(rate, count, kSeed);
  ASSIGN_OR_RETURN(std::vector<double> ms, serving::OpenLoop(server.cores, server.serve, arrivals));
  const int streams = static_cast<int>(server.cores.size());
  std::vector<double> queue = serving::QueueOf(arrivals, streams, streams / server.rate());
  for (std::vector<double>* list : {&ms, &queue}) {
    for (double& latency : *list) latency *= 1e3;
  }
  Results::Throughput::Load load;
  load.set_percent(percent);
  load.set_requests(count);
  load.set_requests_per_second(static_cast<double>(count) / arrivals.back());
  load.set_max_ms(*std::max_element(ms.begin(), ms.end()));
  *load.mutable_latency_ms() = LatencyOf(Summarize(std::move(ms)));
  *load.mutable_queue_ms() = LatencyOf(Summarize(std::move(queue)));
  return load;
}

}  // namespace

absl::Status MeasureThroughput(RunState& run) {
  if (!run.config.has_throughput() || run.variants.empty()) return absl::OkStatus();
  run.progress.Begin("throughput");
  const Settings settings = SettingsOf(run.config.throughput());
  std::vector<Tensor> inputs;
  Programs programs;
  std::vector<std::unique_ptr<Server>> servers;
  for (size_t i = 0; i < run.variants.size(); ++i) {
    const Variant& variant = run.variants[i];
    if (!variant.runs()) continue;
    if (variant.engine.backend == "reference") {
      run.Warn(absl::StrCat("throughput of ", variant.name(), " is not measured: it runs on ", variant.engine.backend));
      continue;
    }
    for (int streams : settings.streams) {
      auto server = MakeServer(run, i, streams, settings, inputs, &programs);
      if (!server.ok()) return Annotate(server.status(), absl::StrCat("variant ", variant.name()));
      servers.push_back(*std::move(server));
    }
  }
  if (servers.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(inputs, run.inputs->Batch(0, servers[0]->engines[0]->input_types()));

  const MachineLoad machine;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (const auto& server : servers) {
      ASSIGN_OR_RETURN(const double rate, serving::Saturate(server->cores, server->serve, settings.seconds / kTurns));
      server->rates.push_back(rate);
    }
  }
  std::map<size_t, double> of_one_stream;
  for (const auto& server : servers) {
    if (server->cores.size() == 1) of_one_stream[server->variant] = server->rate();
  }
  for (const auto& server : servers) {
    const Variant& variant = run.variants[server->variant];
    Results::Throughput found;
    found.set_streams(static_cast<int>(server->cores.size()));
    found.set_threads(settings.threads);
    found.set_batch(static_cast<int>(settings.batch));
    found.set_images_per_second(server->rate() * static_cast<double>(settings.batch));
    const auto one = of_one_stream.find(server->variant);
    if (one != of_one_stream.end()) found.set_scaling(server->rate() / one->second);
    for (double percent : settings.loads) {
      run.progress.Detail(absl::StrFormat("%s, %d streams, load %.0f %%", variant.name(), found.streams(), percent));
      ASSIGN_OR_RETURN(*found.add_loads(), Offer(*server, percent, settings.seconds));
    }
    if (const auto others = machine.OtherCores()) found.set_other_cores_busy(*others);
    run.recorder.Update([&](Results& results) {
      *results.mutable_variants(static_cast<int>(server->variant))->add_throughput() = found;
    });
  }
  if (const double others = machine.OtherCores().value_or(0); others > kQuietCores) {
    run.Warn(absl::StrFormat("throughput: other programs kept %.1f cores busy; it is not to be trusted", others));
  }
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases
