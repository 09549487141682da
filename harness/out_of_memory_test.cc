// A whole run with one allocation after another failing: each ends with exit code 5 and a report, or goes on well.
//
// The run goes once. Before each allocation it forks: in the child that allocation fails, and the child goes its way to
// the end of the program; exit code and report are looked at before the run goes on. N allocations cost N forks, and
// none is left out but those of kExcluded.
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <new>
#include <ostream>
#include <streambuf>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "frontend/onnx/model_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/cli.h"
#include "harness/testing/testing.h"

namespace {

// Asked before each allocation, where it is set: does this one fail?
bool (*fails)() = nullptr;

void* Allocate(std::size_t bytes, std::size_t alignment) {
  if (fails != nullptr && fails()) throw std::bad_alloc();
  if (void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)) return data;
  throw std::bad_alloc();
}

}  // namespace

// The forms for arrays, and those that return null, call these two.
void* operator new(std::size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { std::free(data); }

// Not the disk is tested.
extern "C" int fsync(int) { return 0; }

namespace fuselage::harness {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kLongestSeconds = 60;  // A child that takes longer hangs.

// Libraries that end the process where one of their own allocations fails: theirs do not.
//   libabsl_str_format_internal  its sink appends what is left in its destructor
constexpr const char* kExcluded[] = {"libabsl_str_format_internal.so"};
// oneDNN ends it where the allocation after the failed one, which tells of the failure, fails too: of its allocations
// one alone fails. It may then choose another implementation, whose float sums are rounded differently.
constexpr const char* kOnednn[] = {"libdnnl.so"};

// Takes text without allocating, so that none is lost.
class FixedBuffer : public std::streambuf {
 public:
  void Clear() { setp(text_, text_ + sizeof text_); }
  std::string text() const { return {pbase(), pptr()}; }

 private:
  int_type overflow(int_type c) override { return traits_type::not_eof(c); }  // Dropped.
  char text_[1 << 16];
};

struct Outcome {
  int code;
  std::string err;
};

Outcome RunArgs(const std::vector<std::string>& args) {
  static FixedBuffer out_buffer, err_buffer;  // Large for a stack.
  out_buffer.Clear();
  err_buffer.Clear();
  std::ostream out(&out_buffer), err(&err_buffer);
  const int code = RunCommand(args, {out, err, false});
  fails = nullptr;
  return {code, err_buffer.text()};
}

struct Workplace {
  std::string folder, config, out;
  std::string results() const { return ReadFile(out + "/results.json").value_or("none"); }
};

Tensor Seeded(Shape shape, uint64_t seed) {
  return SeededTensor({DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

// Few allocations, each part of a run: an ONNX model with something to fold, calibration, all passes, both variants.
Workplace MakeWorkplace(const std::string& name) {
  testing::UseFixedPeaks();
  const std::string folder = absl::StrCat(::testing::TempDir(), "/", name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  const Workplace place{folder, folder + "/tiny.textproto", folder + "/out"};
  onnx::ModelBuilder model;
  model.Input("x", {"N", 2, 4, 4})
      .Initializer("w", Seeded({4, 2, 3, 3}, 1))
      .Initializer("v", Seeded({3, 4}, 2))
      .Initializer("half", Tensor::Of<float>({1}, {0.5f}))
      .Node("Mul", {"v", "half"}, {"scaled"}, "fold");
  model.Node("Conv", {"x", "w"}, {"c"}, "conv").Ints("pads", {1, 1, 1, 1});
  model.Node("Relu", {"c"}, {"r"}, "relu");
  model.Node("GlobalAveragePool", {"r"}, {"g"}, "gap");
  model.Node("Flatten", {"g"}, {"f"}, "flatten");
  model.Node("Gemm", {"f", "scaled"}, {"y"}, "fc").Int("transB", 1);
  model.Output("y");
  std::ofstream(folder + "/tiny.onnx", std::ios::binary) << model.Bytes();
  std::ofstream(place.config) << "model { path: \"" << folder << R"(/tiny.onnx" }
random_inputs { count: 1 }
pipeline {
  steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.FusionOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.QuantizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.QuantLiftOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.LowerOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.Int8FusionOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.CleanupOptions] {} } }
}
numeric_check { samples: 1 }
variants { name: "fp32" after: "fusion" }
variants { name: "int8" }
benchmark { batches: 1 threads: 1 repetitions: 1 min_time_ms: 0.001 }
slowest_layers: 3
)";
  return place;
}

std::vector<std::string> Args(const Workplace& place, const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = {"--config=" + place.config, "--out=" + place.out};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// What the run computed, as results.json has it: the differences between graphs and between variants.
std::string NumbersIn(absl::string_view json) {
  std::string found;
  for (absl::string_view line : absl::StrSplit(json, '\n')) {
    if (absl::StrContains(line, "max_abs_error") || absl::StrContains(line, "snr_db")) absl::StrAppend(&found, line);
  }
  return found;
}

struct AddressRange {
  uintptr_t begin, end;
};

std::vector<AddressRange> RangesOf(absl::Span<const char* const> libraries) {
  std::pair<absl::Span<const char* const>, std::vector<AddressRange>> found(libraries, {});
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        auto& [libraries, ranges] = *static_cast<decltype(found)*>(argument);
        for (const char* library : libraries) {
          for (int i = 0; absl::StrContains(info->dlpi_name, library) && i < info->dlpi_phnum; ++i) {
            const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            if (info->dlpi_phdr[i].p_type == PT_LOAD) ranges.push_back({begin, begin + info->dlpi_phdr[i].p_memsz});
          }
        }
        return 0;
      },
      &found);
  return found.second;
}

// The calls that lead to an allocation. Allocates nothing.
struct Stack {
  Stack() : size(backtrace(frames, 64)) {}

  bool IsExcluded() const {
    static const auto& ranges = *new std::vector<AddressRange>(RangesOf(kExcluded));
    return PassesThrough(ranges);
  }

  bool IsOnednn() const {
    static const auto& ranges = *new std::vector<AddressRange>(RangesOf(kOnednn));
    return PassesThrough(ranges);
  }

  bool PassesThrough(const std::vector<AddressRange>& ranges) const {
    for (int i = 0; i < size; ++i) {
      const uintptr_t address = reinterpret_cast<uintptr_t>(frames[i]);
      for (const AddressRange& range : ranges) {
        if (range.begin <= address && address < range.end) return true;
      }
    }
    return false;
  }

  void* frames[64];
  int size;
};

// --- The run that forks before its allocations.
// One of every `stride` allocations: the one with the index `first`.
struct Share {
  int first, stride;
};

std::ostream& operator<<(std::ostream& out, const Share& share) { return out << share.first << " of " << share.stride; }

class Injector {
 public:
  Injector(const Workplace& place, const Share& share, std::string numbers)
      : place_(place), share_(share), numbers_(std::move(numbers)) {}

  // Before an allocation.
  bool Fails() {
    if (is_child_) {
      const Stack stack;
      return all_fail_ && !stack.IsExcluded() && !stack.IsOnednn();
    }
    const int64_t number = allocations_++;
    if (number % share_.stride != share_.first || complaints_.size() > 400) return false;
    fails = nullptr;  // What follows allocates too.
    const Stack stack;
    bool result = false;
    if (stack.IsExcluded()) {
      ++foreign_;
    } else {
      result = Try(number, /*all=*/false, stack) || (!stack.IsOnednn() && Try(number, /*all=*/true, stack));
    }
    fails = [] { return the->Fails(); };
    return result;
  }

  bool is_child() const { return is_child_; }
  int64_t allocations() const { return allocations_; }
  int64_t failed() const { return failed_; }
  int64_t recovered() const { return recovered_; }
  int64_t foreign() const { return foreign_; }
  const std::vector<std::string>& complaints() const { return complaints_; }

  static Injector* the;

 private:
  // True in the child. `all`: the allocations after this one fail too.
  bool Try(int64_t number, bool all, const Stack& stack) {
    // The child gets an output folder of its own, under the same name.
    const bool has_folder = fs::exists(place_.out);
    const std::string aside = place_.out + ".aside";
    if (has_folder) {
      fs::rename(place_.out, aside);
      fs::create_directory(place_.out);
    }
    const pid_t child = fork();
    if (child == 0) {
      is_child_ = true;
      all_fail_ = all;
      alarm(kLongestSeconds);
      return true;
    }
    int status = 0;
    waitpid(child, &status, 0);
    const std::string problem = Judge(status, has_folder, stack.IsOnednn());
    if (!problem.empty()) {
      complaints_.push_back(absl::StrCat("allocation ", number, all ? " and all after it: " : ": ", problem));
      for (int i = 3; i < std::min(stack.size, 30); ++i) {
        absl::StrAppend(&complaints_.back(), " ", absl::Hex(reinterpret_cast<uintptr_t>(stack.frames[i])));
      }
    }
    fs::remove_all(place_.out);
    if (has_folder) fs::rename(aside, place_.out);
    return false;
  }

  // "" where the child ended as it should.
  std::string Judge(int status, bool has_folder, bool rounds_differently) {
    if (WIFSIGNALED(status)) return absl::StrCat("signal ", WTERMSIG(status));
    const std::string results = place_.results();
    if (WEXITSTATUS(status) == kOk) {
      ++recovered_;
      const bool complete = absl::StrContains(results, "\"status\": \"complete\"");
      return complete && (rounds_differently || NumbersIn(results) == numbers_)
                 ? ""
                 : "exit code 0 with other results: " + results;
    }
    ++failed_;
    if (WEXITSTATUS(status) != kResourceLimit) return absl::StrCat("exit code ", WEXITSTATUS(status), " ", results);
    return !has_folder || absl::StrContains(results, "\"status\": \"INCOMPLETE\"") ? "" : "no report: " + results;
  }

  const Workplace& place_;
  const Share share_;
  const std::string numbers_;
  int64_t allocations_ = 0, failed_ = 0, recovered_ = 0, foreign_ = 0;
  std::vector<std::string> complaints_;
  bool is_child_ = false, all_fail_ = false;
};
Injector* Injector::the = nullptr;

class OutOfMemory : public ::testing::TestWithParam<Share> {};

TEST_P(OutOfMemory, AtAnyAllocation) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer owns operator new";
#endif
  const Share share = GetParam();
  const Workplace place = MakeWorkplace(absl::StrCat("share", share.first, "of", share.stride));
  const std::vector<std::string> args = Args(place);
  // In a child too: what a process sets up once is part of the run.
  const pid_t child = fork();
  if (child == 0) _exit(RunArgs(args).code);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kOk) << place.results();
  const std::string numbers = NumbersIn(place.results());
  ASSERT_THAT(numbers, HasSubstr("snr_db"));
  fs::remove_all(place.out);
  testing::UseFixedPeaks();

  Injector injector(place, share, numbers);
  Injector::the = &injector;
  fails = [] { return Injector::the->Fails(); };
  const Outcome outcome = RunArgs(args);
  if (injector.is_child()) _exit(outcome.code);
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(place.results(), HasSubstr("\"status\": \"complete\""));
  for (const std::string& complaint : injector.complaints()) ADD_FAILURE() << complaint;
  std::cout << injector.allocations() << " allocations, of which in this share " << injector.foreign()
            << " are left out; exit code 5: " << injector.failed() << ", recovered: " << injector.recovered() << "\n";
  EXPECT_GT(injector.failed(), injector.allocations() / share.stride)
      << "most fail twice: once alone, once with the rest";
}

INSTANTIATE_TEST_SUITE_P(Some, OutOfMemory, ::testing::Values(Share{5, 31}));
INSTANTIATE_TEST_SUITE_P(All, OutOfMemory,
                         ::testing::Values(Share{0, 8}, Share{1, 8}, Share{2, 8}, Share{3, 8}, Share{4, 8}, Share{5, 8},
                                           Share{6, 8}, Share{7, 8}));

// --- Whole runs in a child, which `prepare` has made short of something.
struct Ending {
  int status;
  std::string err;
};

Ending RunInChild(const Workplace& place, const std::vector<std::string>& args, const std::function<void()>& prepare) {
  const std::string log = place.folder + "/log";
  const pid_t child = fork();
  if (child == 0) {
    alarm(kLongestSeconds);
    prepare();
    const Outcome outcome = RunArgs(args);
    std::ofstream(log) << outcome.err;
    _exit(outcome.code);
  }
  Ending ending{-1, ""};
  EXPECT_EQ(waitpid(child, &ending.status, 0), child);
  ending.err = ReadFile(log).value_or("");
  return ending;
}

void ExpectResourceLimit(const Workplace& place, const Ending& ending, const std::string& message) {
  EXPECT_TRUE(WIFEXITED(ending.status)) << "signal " << WTERMSIG(ending.status);
  EXPECT_EQ(WEXITSTATUS(ending.status), kResourceLimit);
  EXPECT_THAT(place.results(), HasSubstr("\"status\": \"INCOMPLETE\""));
  EXPECT_THAT(place.results(), HasSubstr(message));
  EXPECT_THAT(ending.err, HasSubstr(message));
}

// Forking leaves a process without its other threads: here each failure is a run of its own, and there are few.
TEST(OutOfMemoryOnTwoThreads, AtSomeAllocations) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer owns operator new";
#endif
  static std::atomic<int64_t> left{0};
  static std::atomic<bool> failed{false};
  const Workplace place = MakeWorkplace("two_threads");
  Stack().IsExcluded();  // Finds the libraries now, and not within an allocation.
  int failures = 0;
  for (int64_t number = 0; number < 30000; number += 1 + number / 6) {
    const Ending ending = RunInChild(place, Args(place, {"--threads=2"}), [&] {
      left = number;
      fails = [] { return left.fetch_sub(1) <= 0 && !failed && !Stack().IsExcluded() && !failed.exchange(true); };
    });
    ASSERT_TRUE(WIFEXITED(ending.status)) << "signal " << WTERMSIG(ending.status) << " at " << number;
    const int code = WEXITSTATUS(ending.status);
    EXPECT_TRUE(code == kOk || code == kResourceLimit) << code << " at " << number;
    failures += code == kResourceLimit;
  }
  EXPECT_GT(failures, 20);
}

constexpr rlim_t kRoom = 64 << 20;  // Beyond what the process has.

void LimitAddressSpace() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * sysconf(_SC_PAGESIZE) + kRoom;
  const rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(99);
}

TEST(ShortOfMemory, ABatchThatDoesNotFit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes address space for itself";
#endif
  const Workplace place = MakeWorkplace("batch");
  const Ending ending = RunInChild(place, Args(place, {"--batch=1000000"}), LimitAddressSpace);
  ExpectResourceLimit(place, ending, "");
  // The passes have run: their part of the report is there.
  EXPECT_THAT(place.results(), HasSubstr("\"name\": \"quantize\""));
}

TEST(ShortOfMemory, ThreadsThatTheSystemRefuses) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes address space for itself";
#endif
  const Workplace place = MakeWorkplace("threads");
  const Ending ending = RunInChild(place, Args(place, {"--threads=1024"}), LimitAddressSpace);
  ExpectResourceLimit(place, ending, "a thread could not be started");
}

// The number behind `before`; 0 where there is none.
int64_t NumberBehind(absl::string_view text, absl::string_view before) {
  const size_t at = text.find(before);
  if (at == absl::string_view::npos) return 0;
  text.remove_prefix(at + before.size());
  int64_t number = 0;
  return absl::SimpleAtoi(text.substr(0, text.find_first_not_of("0123456789")), &number) ? number : 0;
}

// Every limit is just enough for the point that missed the one before.
TEST(ShortOfMemory, MaxMemoryIsMissedAtEachPoint) {
  const Workplace place = MakeWorkplace("max_memory");
  int points = 0;
  for (int64_t limit = 1;; ++points) {
    const Outcome outcome = RunArgs(Args(place, {absl::StrCat("--max_memory=", limit)}));
    if (outcome.code == kOk) break;
    ASSERT_EQ(outcome.code, kResourceLimit) << outcome.err;
    EXPECT_THAT(place.results(), HasSubstr("\"status\": \"INCOMPLETE\""));
    const std::string error = outcome.err.substr(outcome.err.find("error: "));
    const int64_t needs = NumberBehind(error, " needs ") + NumberBehind(error, " takes ");
    const int64_t has = NumberBehind(error, "wanted at most ") + NumberBehind(error, "the limit is ");
    ASSERT_GT(needs, has) << error;
    limit += needs - has;
  }
  EXPECT_GE(points, 2) << "the file and its parsed form, which take the most of so small a network";
  EXPECT_THAT(place.results(), HasSubstr("\"status\": \"complete\""));
}

}  // namespace
}  // namespace fuselage::harness
