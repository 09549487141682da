#include "harness/cli.h"

#include <unistd.h>

#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/base/interrupt.h"
#include "harness/flags.h"
#include "harness/load_config.h"
#include "harness/recorder.h"
#include "harness/report/progress.h"
#include "harness/report/table.h"
#include "harness/run.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

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
  err << std::flush;
}

absl::Status RunGuarded(const RunRequest& request, report::Progress& progress, Recorder& recorder) {
  try {
    return RunHarness(request, progress, recorder);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  }
}

absl::Status Run(const Flags& flags, const Terminal& terminal) {
  RunRequest request;
  request.search = SearchPath::FromEnvironment();
  ASSIGN_OR_RETURN(LoadedConfig loaded, LoadConfig(flags.config, request.search, PassOptionTypes()));
  request.config = std::move(loaded.config);
  request.name = loaded.name;
  request.max_memory_bytes = flags.max_memory_bytes;
  request.allow_nonfinite = flags.allow_nonfinite;
  ApplyFlags(flags, &request.config);

  const std::string folder =
      request.search.InCaller(flags.out.empty() ? absl::StrCat("fuselage-out/", request.name) : flags.out);
  RETURN_IF_ERROR(MakeWritableFolder(folder));
  Recorder recorder(folder);
  report::Progress progress(terminal.err, terminal.err_is_terminal);
  const int slowest_layers = request.config.slowest_layers();
  absl::Status status;
  {
    InterruptScope scope([&](int signal) {
      const std::string report =
          recorder.Finish(absl::CancelledError(absl::StrCat("interrupted by signal ", signal)), slowest_layers);
      WriteTo(STDERR_FILENO, absl::StrCat("\ninterrupted: a partial report is in ", report::Escaped(folder), "\n"));
      WriteTo(STDOUT_FILENO, report);
    });
    status = RunGuarded(request, progress, recorder);
    progress.End();
    // A mistake in flags or config is no run: an older report stays.
    if (ExitCodeOf(status) == kUsage) return status;
    // A missed gate does not make the results incomplete.
    const bool complete = status.ok() || ExitCodeOf(status) == kGateFailed;
    const std::string report = recorder.Finish(complete ? absl::OkStatus() : status, slowest_layers);
    if (recorder.Snapshot().passes_size() > 0) terminal.out << report << std::flush;
  }
  const absl::Status written = recorder.write_status();
  if (written.ok()) terminal.out << "\nresults: " << report::Escaped(folder) << "/results.json\n" << std::flush;
  if (!written.ok() && !status.ok()) PrintError(written, terminal.err);
  return status.ok() ? written : status;
}

}  // namespace

int RunCommand(const std::vector<std::string>& args, const Terminal& terminal) {
  const absl::StatusOr<Flags> flags = ParseFlags(args);
  if (flags.ok() && flags->help) {
    terminal.out << FlagsHelp() << std::flush;
    return kOk;
  }
  const absl::Status status = flags.ok() ? Run(*flags, terminal) : flags.status();
  if (!status.ok()) PrintError(status, terminal.err);
  return ExitCodeOf(status);
}

}  // namespace fuselage::harness
