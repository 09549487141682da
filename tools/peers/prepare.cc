// Writes what the contestants read: prepare FOLDER SAMPLES --config=CONFIG [flags of //harness].
#include <unistd.h>

#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/library.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/flags.h"
#include "harness/load_config.h"
#include "ir/base/status.h"
#include "tools/peers/bundle.h"

namespace fuselage::peers {
namespace {

absl::Status Prepare(int argc, char** argv) {
  int samples = 0;
  if (argc < 4 || !absl::SimpleAtoi(argv[2], &samples) || samples < 1) {
    return UsageError("usage: prepare FOLDER SAMPLES --config=CONFIG [flags of //harness]");
  }
  ASSIGN_OR_RETURN(const harness::Flags flags, harness::ParseFlags({argv + 3, argv + argc}));
  harness::RunRequest request;
  request.search = harness::SearchPath::FromEnvironment();
  ASSIGN_OR_RETURN(harness::LoadedConfig loaded,
                   harness::LoadConfig(flags.config, request.search, compiler::BuiltIn().passes.OptionTypes(), flags));
  request.config = std::move(loaded.config);
  request.name = flags.model.empty() ? loaded.name : harness::Stem(flags.model);
  request.cache_folder = harness::CacheFolder();
  const std::string folder = request.search.InCaller(argv[1]);
  RETURN_IF_ERROR(harness::MakeWritableFolder(folder));
  harness::Recorder recorder(folder);
  RETURN_IF_ERROR(recorder.ClaimReports());
  report::Progress progress(std::cerr, isatty(STDERR_FILENO) == 1);
  const absl::Status status = WriteBundle(request, samples, progress, recorder);
  progress.End();
  recorder.Finish(status, /*slowest_layers=*/0);
  return status.ok() ? recorder.write_status() : status;
}

}  // namespace
}  // namespace fuselage::peers

int main(int argc, char** argv) {
  const absl::Status status = fuselage::peers::Prepare(argc, argv);
  if (!status.ok()) std::cerr << "error: " << status.message() << std::endl;
  return fuselage::harness::ExitCodeOf(status);
}
