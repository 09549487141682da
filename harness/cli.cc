#include "harness/cli.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/base/interrupt.h"
#include "harness/explain/graph_diff.h"
#include "harness/flags.h"
#include "harness/html/redraw.h"
#include "harness/load_config.h"
#include "harness/measure/peaks.h"
#include "harness/recorder.h"
#include "harness/report/compare.h"
#include "harness/report/json.h"
#include "harness/report/merge.h"
#include "harness/report/progress.h"
#include "harness/report/table.h"
#include "harness/run.h"
#include "harness/sweep/plan.h"
#include "harness/sweep/sweep.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

constexpr char kOutOfMemory[] = "out of memory";

// Straight to the descriptor: the thread that owns the stream may be in the middle of a line.
void WriteTo(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(count);
  }
}

void PrintError(const absl::Status& status, std::ostream& err) {
  const char* prefix = "error: ";
  for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    err << prefix << report::Escaped(line) << "\n";
    prefix = "  ";
  }
  if (ExitCodeOf(status) == kInternalError) {
    err << "  this is a bug in Fuselage; please report it with this message, the config and the model\n";
  }
  err << std::flush;
}

// What the run throws, as an error of the run.
absl::Status RunGuarded(const RunRequest& request, report::Progress& progress, Recorder& recorder) {
  try {
    return RunHarness(request, progress, recorder);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(kOutOfMemory);
  } catch (const std::length_error&) {  // A container longer than any memory.
    return absl::ResourceExhaustedError(kOutOfMemory);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a thread could not be started: ", error.what(), "; --threads=N asks for fewer"));
  }
}

// Runs and reports. Throws std::bad_alloc where there is not even memory to report.
absl::Status RunAndReport(const RunRequest& request, const Terminal& terminal, Recorder& recorder) {
  report::Progress progress(terminal.err, terminal.err_is_terminal);
  const int slowest_layers = request.config.slowest_layers();
  const std::string folder = report::Escaped(recorder.folder());
  absl::Status status;
  bool complete = false;
  {
    InterruptScope scope([&](int signal) {
      try {
        const std::string report =
            recorder.Finish(absl::CancelledError(absl::StrCat("interrupted by signal ", signal)), slowest_layers);
        WriteTo(STDERR_FILENO, absl::StrCat("\ninterrupted: a partial report is in ", folder, "\n"));
        WriteTo(STDOUT_FILENO, report);
      } catch (const std::bad_alloc&) {
        recorder.FinishWithoutMemory();
      }
    });
    status = RunGuarded(request, progress, recorder);
    progress.End();
    // A mistake in flags or config is no run: an older report stays.
    if (ExitCodeOf(status) == kUsage) return status;
    bool has_tables = false;
    recorder.Update([&](Results& results) { has_tables = results.passes_size() > 0 || results.graphs_size() > 0; });
    // A missed gate does not make the results incomplete.
    complete = status.ok() || ExitCodeOf(status) == kGateFailed;
    const std::string report = recorder.Finish(complete ? absl::OkStatus() : status, slowest_layers);
    if (has_tables) terminal.out << report << std::flush;
  }
  const absl::Status written = recorder.write_status();
  if (written.ok()) {
    terminal.out << "\nresults: " << folder << (request.explain ? "/report.txt" : "/results.json") << "\n"
                 << "to look at: " << folder << "/report.html\n"
                 << std::flush;
  }
  const auto print = [&](absl::string_view what, const std::string& file) {
    terminal.out << what << ": " << report::Escaped(request.search.InCaller(file)) << "\n" << std::flush;
  };
  if (complete && !request.config.save_onnx().empty()) print("quantized network", request.config.save_onnx());
  if (complete && !request.config.save_fuse().empty()) print("compiled network", request.config.save_fuse());
  if (complete && !request.config.save_outputs().empty() && !request.explain) {
    print("outputs", request.config.save_outputs());
  }
  if (!written.ok() && !status.ok()) PrintError(written, terminal.err);
  return status.ok() ? written : status;
}

// What the config saves goes into no file that it reads, nor two things into one.
absl::Status CheckFiles(const RunRequest& request) {
  const HarnessConfig& config = request.config;
  std::map<std::filesystem::path, std::string> taken;
  const auto take = [&](absl::string_view field, const std::string& path) {
    std::error_code error;
    const auto [it, inserted] = taken.emplace(std::filesystem::weakly_canonical(path, error), field);
    return error || inserted
               ? absl::OkStatus()
               : UsageError(absl::StrCat(field, " is ", path, ", as ", it->second, " is, want a file of its own"));
  };
  RETURN_IF_ERROR(take("model", request.search.Find(config.model().path())));
  if (!config.inputs().empty()) RETURN_IF_ERROR(take("inputs", request.search.Find(config.inputs())));
  for (const auto& [field, path] : {std::pair("save_onnx", config.save_onnx()),
                                    {"save_fuse", config.save_fuse()},
                                    {"save_outputs", config.save_outputs()}}) {
    if (!path.empty()) RETURN_IF_ERROR(take(field, request.search.InCaller(path)));
  }
  return absl::OkStatus();
}

// One config, with the flags applied, into `folder`.
absl::Status Run(LoadedConfig loaded, const std::string& folder, const Flags& flags, const SearchPath& search,
                 const compiler::Library& library, const Terminal& terminal) {
  RunRequest request;
  request.library = &library;
  request.search = search;
  request.config = std::move(loaded.config);
  request.name = loaded.name;
  request.max_memory_bytes = flags.max_memory_bytes;
  request.allow_nonfinite = flags.allow_nonfinite;
  request.explain = flags.explain;
  request.accuracy_only = flags.accuracy_only;
  if (!flags.no_cache) request.cache_folder = CacheFolder();
  if (!flags.replay.empty()) request.profiling.replay_folder = search.InCaller(flags.replay);
  if (flags.tune_ms) request.profiling.seconds = *flags.tune_ms * 1e-3;

  RETURN_IF_ERROR(CheckFiles(request));
  Recorder recorder(folder);
  try {
    RETURN_IF_ERROR(MakeWritableFolder(folder));
    RETURN_IF_ERROR(recorder.ClaimReports());
    return RunAndReport(request, terminal, recorder);
  } catch (const std::bad_alloc&) {
    recorder.FinishWithoutMemory();
    throw;
  }
}

// Every config of a sequence, whatever became of those before it. The worst exit code is the largest.
int RunSequence(std::vector<LoadedConfig> members, const std::string& folder, const Flags& flags,
                const SearchPath& search, const compiler::Library& library, const Terminal& terminal) {
  int worst = kOk;
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string name = members[i].name;
    const std::string heading = absl::StrCat("[", i + 1, "/", members.size(), "] ", report::Escaped(name));
    terminal.out << "\n" << heading << "\n" << std::string(heading.size(), '=') << "\n" << std::flush;
    const absl::Status status =
        Run(std::move(members[i]), absl::StrCat(folder, "/", name), flags, search, library, terminal);
    if (!status.ok()) PrintError(status, terminal.err);
    worst = std::max<int>(worst, ExitCodeOf(status));
  }
  return worst;
}

absl::StatusOr<int> RunConfig(const Flags& flags, const compiler::Library& library, const Terminal& terminal) {
  const SearchPath search = SearchPath::FromEnvironment();
  // Once, however many configs follow: the first that wants peaks finds none.
  const std::string cache = flags.no_cache ? "" : CacheFolder();
  if (flags.remeasure_peaks && !cache.empty()) unlink(PeaksFile(cache).c_str());
  const std::vector<std::string> passes = library.passes.OptionTypes();
  ASSIGN_OR_RETURN(LoadedConfig loaded,
                   LoadConfig(flags.config.empty() ? kDefaultConfig : flags.config, search, passes, flags));
  if (flags.config.empty()) loaded.name = Stem(flags.model);
  std::string folder = flags.out.empty() ? absl::StrCat("fuselage-out/", loaded.name) : flags.out;
  // Beside the results of a whole run, not in their place.
  if (flags.explain && flags.out.empty()) folder += "-explain";
  folder = search.InCaller(folder);
  if (loaded.config.sequence().empty()) {
    RETURN_IF_ERROR(Run(std::move(loaded), folder, flags, search, library, terminal));
    return kOk;
  }
  if (!flags.save_outputs.empty() || !flags.save_onnx.empty() || !flags.save_fuse.empty()) {
    return UsageError(
        absl::StrCat(loaded.path, ": --save_outputs, --save_onnx and --save_fuse want one network, not a sequence"));
  }
  ASSIGN_OR_RETURN(std::vector<LoadedConfig> members, LoadSequence(loaded, search, passes, flags));
  return RunSequence(std::move(members), folder, flags, search, library, terminal);
}

// All units, or what of them other processes leave to this one.
absl::Status RunSweep(Flags flags, const compiler::Library& library, const Terminal& terminal) {
  const SearchPath search = SearchPath::FromEnvironment();
  ASSIGN_OR_RETURN(sweep::Plan plan, sweep::LoadPlan(flags, search, library.passes.OptionTypes()));
  if (flags.unit.has_value()) {
    if (*flags.unit >= static_cast<int>(plan.units.size())) {
      return UsageError(absl::StrCat("--unit=", *flags.unit, ": want less than the sweep's ", plan.units.size()));
    }
    plan.units = {plan.units[*flags.unit]};
  }
  flags.accuracy_only = !plan.sweep.latency();
  const sweep::Rank process = sweep::RankOfProcess();
  sweep::SweepOptions options;
  options.folder = search.InCaller(flags.out.empty() ? absl::StrCat("fuselage-out/", plan.name) : flags.out);
  if (plan.sweep.attempts() > 0) options.attempts = plan.sweep.attempts();
  options.first = static_cast<int>(int64_t{process.rank} * plan.units.size() / process.ranks);
  options.merge = process.rank == 0 && !flags.unit.has_value();
  options.progress = [&](const std::string& line) { terminal.err << report::Escaped(line) << "\n" << std::flush; };
  const auto run_unit = [&](const sweep::Unit& unit, const std::string& folder) {
    std::ostringstream quiet;
    const absl::Status status =
        Run({unit.config, plan.name, unit.name}, folder, flags, search, library, {quiet, quiet});
    return ExitCodeOf(status) == kGateFailed ? absl::OkStatus() : status;
  };
  ASSIGN_OR_RETURN(const SweepResults results, sweep::RunUnits(plan.units, options, run_unit));
  if (options.merge) {
    terminal.out << sweep::ToText(results) << "\nresults: " << report::Escaped(options.folder) << "/sweep.json\n"
                 << std::flush;
  }
  if (results.failures().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("units that failed: ", results.failures_size(), "; ", options.folder, "/units/*.failures say why"));
}

struct ResultFiles {
  std::string path;  // Of `now`.
  Results now;
  std::optional<Results> before;
};

// "report [BEFORE.json] RESULTS.json" and "compare BEFORE.json RESULTS.json": `args` without the command.
absl::StatusOr<ResultFiles> ReadResultFiles(absl::Span<const std::string> args) {
  const SearchPath search = SearchPath::FromEnvironment();
  ResultFiles files;
  files.path = search.InCaller(args.back());
  ASSIGN_OR_RETURN(files.now, html::ReadResults(files.path));
  if (args.size() == 2) {
    ASSIGN_OR_RETURN(files.before, html::ReadResults(search.InCaller(args[0])));
    for (const Results& results : {*files.before, files.now}) {
      if (results.runs().empty()) continue;
      return absl::InvalidArgumentError("found several runs in one results.json, wanted two runs to compare");
    }
  }
  return files;
}

absl::Status DrawReport(const ResultFiles& files, const Terminal& terminal) {
  const Results* before = files.before.has_value() ? &*files.before : nullptr;
  ASSIGN_OR_RETURN(const std::string page, html::Redraw(files.path, files.now, before));
  terminal.out << "to look at: " << report::Escaped(page) << "\n" << std::flush;
  return absl::OkStatus();
}

absl::Status RunReport(absl::Span<const std::string> args, const Terminal& terminal) {
  if (args.empty() || args.size() > 2) return UsageError("want report [BEFORE.json] RESULTS.json");
  ASSIGN_OR_RETURN(const ResultFiles files, ReadResultFiles(args));
  return DrawReport(files, terminal);
}

absl::Status RunCompare(absl::Span<const std::string> args, const Terminal& terminal) {
  constexpr char kUsage[] = "want compare BEFORE.json RESULTS.json [--tolerance=PERCENT]";
  double tolerance = 0;
  if (args.size() == 3) {
    absl::string_view flag = args[2];
    if (!absl::ConsumePrefix(&flag, "--tolerance=") || !absl::SimpleAtod(flag, &tolerance) || !(tolerance >= 0)) {
      return UsageError(kUsage);
    }
    args.remove_suffix(1);
  }
  if (args.size() != 2) return UsageError(kUsage);
  ASSIGN_OR_RETURN(const ResultFiles files, ReadResultFiles(args));
  if (files.before->variants().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(args[0], ": found no variants, wanted figures to compare with"));
  }
  const report::Comparison comparison = report::Compare(*files.before, files.now, tolerance);
  terminal.out << comparison.text << std::flush;
  RETURN_IF_ERROR(DrawReport(files, terminal));
  return comparison.worse == 0 ? absl::OkStatus()
                               : GateError(absl::StrCat("figures that got worse: ", comparison.worse));
}

// What tells a run's file from others: their name, or the folder's where all files are called as the harness calls
// them.
std::string RunName(const std::filesystem::path& path) {
  return (path.filename() == "results.json" ? path.parent_path().filename() : path.stem()).string();
}

// "merge FOLDER RESULTS.json...": `args` without the command.
absl::Status RunMerge(absl::Span<const std::string> args, const Terminal& terminal) {
  if (args.size() < 2) return UsageError("want merge FOLDER RESULTS.json...");
  const SearchPath search = SearchPath::FromEnvironment();
  std::vector<Results::Run> runs;
  for (const std::string& arg : args.subspan(1)) {
    const std::string path = search.InCaller(arg);
    runs.emplace_back().set_name(RunName(path));
    ASSIGN_OR_RETURN(*runs.back().mutable_results(), html::ReadResults(path));
  }
  ASSIGN_OR_RETURN(const Results merged, report::Merge(runs));
  OutputFolder folder(search.InCaller(args[0]));
  RETURN_IF_ERROR(MakeWritableFolder(folder.path()));
  folder.ReadList();
  RETURN_IF_ERROR(folder.Write("results.json", report::ToJson(merged)));
  return DrawReport({folder.path() + "/results.json", merged, std::nullopt}, terminal);
}

// Exit codes as diff has them: 0 equal, 1 different, 2 trouble.
int RunDiff(absl::Span<const std::string> args, const Terminal& terminal) {
  constexpr int kEqual = 0, kDifferent = 1, kTrouble = 2;
  const auto difference = [&]() -> absl::StatusOr<GraphDifference> {
    if (args.size() != 2) return UsageError("want diff A.ir B.ir");
    const SearchPath search = SearchPath::FromEnvironment();
    ASSIGN_OR_RETURN(const std::string before, ReadFile(search.InCaller(args[0])));
    ASSIGN_OR_RETURN(const std::string after, ReadFile(search.InCaller(args[1])));
    return DiffGraphs({args[0], before}, {args[1], after});
  }();
  if (!difference.ok()) {
    PrintError(difference.status(), terminal.err);
    return kTrouble;
  }
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(difference->text, "\n"), '\n')) {
    terminal.out << report::Escaped(line) << "\n";
  }
  terminal.out << std::flush;
  return difference->equal() ? kEqual : kDifferent;
}

int RunArgs(const std::vector<std::string>& args, const Terminal& terminal, const compiler::Library& library) {
  if (!args.empty() && args[0] == kDiffCommand) return RunDiff(absl::MakeConstSpan(args).subspan(1), terminal);
  for (const auto& [command, run] :
       {std::pair(kReportCommand, RunReport), {kCompareCommand, RunCompare}, {kMergeCommand, RunMerge}}) {
    if (args.empty() || args[0] != command) continue;
    const absl::Status status = run(absl::MakeConstSpan(args).subspan(1), terminal);
    if (!status.ok()) PrintError(status, terminal.err);
    return ExitCodeOf(status);
  }
  const absl::StatusOr<Flags> flags = ParseFlags(args);
  if (flags.ok() && flags->help) {
    terminal.out << FlagsHelp() << std::flush;
    return kOk;
  }
  if (flags.ok() && flags->sweep) {
    const absl::Status status = RunSweep(*flags, library, terminal);
    if (!status.ok()) PrintError(status, terminal.err);
    return ExitCodeOf(status);
  }
  const absl::StatusOr<int> code = flags.ok() ? RunConfig(*flags, library, terminal) : flags.status();
  if (code.ok()) return *code;
  PrintError(code.status(), terminal.err);
  return ExitCodeOf(code.status());
}

}  // namespace

int RunCommand(const std::vector<std::string>& args, const Terminal& terminal, Extend extend) {
  try {
    compiler::Library library;
    if (extend != nullptr) extend(library);
    const int code = RunArgs(args, terminal, library);
    if (terminal.out.flush() || code != kOk) return code;
    terminal.err << "error: cannot write all of the output\n" << std::flush;
    return kIo;
  } catch (const std::bad_alloc&) {
    terminal.err << "error: " << kOutOfMemory << "\n" << std::flush;
    return kResourceLimit;
  }
}

int Main(int argc, char** argv, Extend extend) {
  WatchInterrupts();
  // A closed pipe or a full disk is an error of write(), which says so, not the end.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  return RunCommand({argv + 1, argv + argc}, {std::cout, std::cerr, isatty(STDERR_FILENO) == 1}, extend);
}

}  // namespace fuselage::harness
