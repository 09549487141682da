#include "harness/environment.h"

#include <sched.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/core/isa.h"
#include "oneapi/dnnl/dnnl.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {
namespace {

// The rest of the first line that begins with `prefix`; "" where there is none.
std::string LineAfter(const std::string& path, absl::string_view prefix) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return "";
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (absl::ConsumePrefix(&line, prefix)) return std::string(absl::StripAsciiWhitespace(line));
  }
  return "";
}

std::string OsName() {
  std::string name = LineAfter("/etc/os-release", "PRETTY_NAME=");
  name.erase(std::remove(name.begin(), name.end(), '"'), name.end());
  utsname kernel;
  if (uname(&kernel) == 0) absl::StrAppend(&name, name.empty() ? "" : ", ", kernel.sysname, " ", kernel.release);
  return name;
}

// The first GPU that NVIDIA's driver lists; "none" where there is no driver.
std::string GpuName() {
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/driver/nvidia/gpus", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = LineAfter(it->path().string() + "/information", "Model:");
    if (!name.empty()) return name;
  }
  return "none";
}

bool IsCommit(absl::string_view text) {
  return text.size() >= 40 &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isxdigit(static_cast<uint8_t>(c)); });
}

std::string FirstLine(const std::string& path) { return LineAfter(path, ""); }

}  // namespace

Results::Environment DescribeEnvironment(const SearchPath& search) {
  Results::Environment environment;
  environment.set_cpu(kernels::CpuName());
  environment.set_isa(std::string(kernels::IsaName(kernels::BestIsa())));
  environment.set_cores(AvailableCores());
  environment.set_gpu(GpuName());
  environment.set_compiler(absl::StrCat("gcc ", __VERSION__));
  environment.set_git_commit(GitCommit(search.workspace));
  environment.set_os(OsName());
  const dnnl_version_t* onednn = dnnl_version();
  environment.set_onednn(absl::StrCat(onednn->major, ".", onednn->minor, ".", onednn->patch));
  environment.set_started(UtcNow());
  environment.set_memory_bytes(int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE));
  return environment;
}

int AvailableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return std::clamp(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), 1, runtime::ThreadPool::kMaxThreads);
}

std::string GitCommit(const std::string& workspace) {
  if (workspace.empty()) return "unknown";
  std::string git = workspace + "/.git";
  // In a worktree .git is a file: "gitdir: <path>"; refs lie in the common directory that it names.
  std::string linked = LineAfter(git, "gitdir: ");
  if (!linked.empty()) git = absl::StartsWith(linked, "/") ? linked : absl::StrCat(workspace, "/", linked);
  std::string common = FirstLine(git + "/commondir");
  common = common.empty() ? git : absl::StartsWith(common, "/") ? common : absl::StrCat(git, "/", common);

  const std::string head = FirstLine(git + "/HEAD");
  if (IsCommit(head)) return head;
  absl::string_view ref = head;
  if (!absl::ConsumePrefix(&ref, "ref: ")) return "unknown";
  const std::string loose = FirstLine(absl::StrCat(common, "/", ref));
  if (IsCommit(loose)) return loose;
  const absl::StatusOr<std::string> packed = ReadFile(common + "/packed-refs");
  if (packed.ok()) {
    for (absl::string_view line : absl::StrSplit(*packed, '\n')) {
      const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ');
      if (parts.size() == 2 && parts[1] == ref && IsCommit(parts[0])) return std::string(parts[0]);
    }
  }
  return "unknown";
}

std::string UtcNow() {
  const time_t now = time(nullptr);
  tm parts;
  char text[32] = "";
  if (gmtime_r(&now, &parts) != nullptr) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::optional<int64_t> PeakRssBytes() {
  const std::string text = LineAfter("/proc/self/status", "VmHWM:");
  int64_t kilobytes = 0;
  if (!absl::SimpleAtoi(absl::StripSuffix(text, " kB"), &kilobytes)) return std::nullopt;
  return kilobytes * 1024;
}

}  // namespace fuselage::harness
