#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/base/machine_load.h"
#include "harness/base/output_folder.h"
#include "harness/base/statistics.h"
#include "ir/base/sha256.h"
#include "ir/base/suggest.h"

namespace fuselage::harness {
namespace {

using ::testing::HasSubstr;

std::string Sha256Of(absl::string_view text) {
  Sha256 sha;
  sha.Update(text);
  return sha.Finish();
}

// Vectors of FIPS 180-4's examples and of NIST's CAVS (the million a's).
TEST(Sha256, NistVectors) {
  EXPECT_EQ(Sha256Of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Sha256 sha;
  for (int i = 0; i < 1000; ++i) sha.Update(std::string(1000, 'a'));
  EXPECT_EQ(sha.Finish(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(CacheFolder, FollowsTheXdgSpecification) {
  setenv("HOME", "/home/me", 1);
  setenv("XDG_CACHE_HOME", "/elsewhere", 1);
  EXPECT_EQ(CacheFolder(), "/elsewhere/fuselage");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(CacheFolder(), "/home/me/.cache/fuselage") << "relative paths are to be ignored";
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(CacheFolder(), "/home/me/.cache/fuselage");
  unsetenv("HOME");
  EXPECT_EQ(CacheFolder(), "");
}

TEST(SharedData, FollowsTheXdgSpecification) {
  const std::string folder = ::testing::TempDir() + "/shared";
  ASSERT_TRUE(MakeWritableFolder(folder + "/second/data").ok());
  setenv("XDG_DATA_DIRS", absl::StrCat(folder, "/first:", folder, "/second:", folder, "/third").c_str(), 1);
  EXPECT_EQ(SharedData("data"), folder + "/second/data");
  EXPECT_EQ(SharedData("other"), folder + "/third/other");
  unsetenv("XDG_DATA_DIRS");
  EXPECT_EQ(SharedData("fuselage-has-none"), "/usr/share/fuselage-has-none");
}

TEST(ExitCode, OfEachKindOfError) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(GateError("top-1")), 1);
  EXPECT_EQ(ExitCodeOf(UsageError("--bacth")), 2);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("model")), 3);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("pass")), 3);
  EXPECT_EQ(ExitCodeOf(absl::UnimplementedError("op")), 4);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("memory")), 5);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("file")), 6);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("file")), 6);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("disk")), 6);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError("signal")), 130);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("verifier")), 70);
  EXPECT_EQ(ExitCodeOf(absl::UnknownError("?")), 70);
}

TEST(Suggest, FindsTheNearestName) {
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(Nearest("modle", {"dataset", "model", "mode_line"}), "model");
  EXPECT_EQ(Nearest("xyzzy", {"dataset", "model"}), "");
  EXPECT_EQ(DidYouMean("bacth", {"batch"}), "; did you mean \"batch\"?");
}

TEST(Statistics, Percentiles) {
  const Summary summary = Summarize({5, 1, 2, 4, 3});
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.median, 3);
  EXPECT_EQ(summary.mean, 3);
  EXPECT_DOUBLE_EQ(summary.p90, 4.6);
  EXPECT_DOUBLE_EQ(summary.p99, 4.96);
  EXPECT_EQ(Summarize({7}).p99, 7);
  EXPECT_EQ(Summarize({}).median, 0);
}

TEST(Statistics, ThinsManySamples) {
  EXPECT_EQ(Thinned({3, 1, 2}), std::vector<double>({3, 1, 2}));
  EXPECT_TRUE(Thinned({}).empty());
  std::vector<double> many(1500);
  std::iota(many.begin(), many.end(), 0);
  const std::vector<double> kept = Thinned(many);
  ASSERT_EQ(kept.size(), 500);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i], 3.0 * static_cast<double>(i));
}

TEST(Statistics, IntervalsHoldTheRatioAndTheDifference) {
  const std::vector<double> before = {9, 9.5, 10, 10.5, 11}, now = {18, 19, 20, 21, 22};
  const Interval ratio = RatioOfMedians(before, now);
  EXPECT_LT(ratio.low, 2);
  EXPECT_GT(ratio.low, 1.5);
  EXPECT_GT(ratio.high, 2);
  EXPECT_LT(ratio.high, 2.5);
  const Interval difference = DifferenceOfMedians(before, now);
  EXPECT_LT(difference.low, 10);
  EXPECT_GE(difference.low, 7);
  EXPECT_GT(difference.high, 10);
  EXPECT_LE(difference.high, 13);
  EXPECT_EQ(RatioOfMedians({4}, {5}).low, 1.25);
  EXPECT_EQ(RatioOfMedians({4}, {5}).high, 1.25);
  EXPECT_EQ(DifferenceOfMedians({4}, {5}).low, 1);
  EXPECT_EQ(DifferenceOfMedians({4}, {5}).high, 1);
}

TEST(MachineLoad, CountsWhatIsNotIdle) {
  EXPECT_EQ(BusySeconds("cpu  100 20 30 9999 9999 4 5 41 7 8\ncpu0 1 2 3 4 5 6 7 8 9 10\n", 100), 2.0);
  EXPECT_FALSE(BusySeconds("", 100).has_value());
  EXPECT_FALSE(BusySeconds("cpu 1 2 3", 100).has_value());
  EXPECT_FALSE(BusySeconds("cpu a b c d e f g h i", 100).has_value());
}

// Another process that spins beside us is seen.
TEST(MachineLoad, SeesOtherProcesses) {
  const pid_t spinner = fork();
  if (spinner == 0) {
    for (volatile int i = 0;; i = i + 1) {
    }
  }
  const MachineLoad load;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end) {
  }
  const std::optional<double> others = load.OtherCores();
  kill(spinner, SIGKILL);
  waitpid(spinner, nullptr, 0);
  ASSERT_TRUE(others.has_value());
  EXPECT_GT(*others, 0.2);
}

std::string Temporary(const std::string& name) { return ::testing::TempDir() + "/" + name; }

TEST(Files, WriteReplacesAtOnce) {
  const std::string path = Temporary("written.txt");
  ASSERT_TRUE(WriteFileAtomic(path, "old").ok());
  ASSERT_TRUE(WriteFileAtomic(path, "new").ok());
  EXPECT_EQ(*ReadFile(path), "new");
  EXPECT_EQ(DigestFiles({path})->bytes, 3);
  EXPECT_EQ(DigestFiles({path})->sha256, Sha256Of("new"));
  EXPECT_EQ(DigestFiles({path, path})->bytes, 6);
  EXPECT_EQ(DigestFiles({path, path})->sha256, Sha256Of("newnew"));
}

TEST(Files, OnlyRegularFilesAreReadAndReplaced) {
  const std::string fifo = Temporary("fifo");
  unlink(fifo.c_str());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(std::string(ReadFile(fifo).status().message()), HasSubstr("it is a FIFO, wanted a regular file"));
  EXPECT_THAT(std::string(WriteFileAtomic(fifo, "x").message()), HasSubstr("it is a FIFO, wanted a regular file"));
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  EXPECT_TRUE(absl::IsUnavailable(DigestFiles({Temporary("")}).status())) << "a directory";
  EXPECT_TRUE(absl::IsUnavailable(ReadFile("/dev/zero").status())) << "which never ends";
}

TEST(OutputFolder, WritesAndRemovesOnlyWhatItLists) {
  const std::string path = Temporary("output_folder");
  std::filesystem::remove_all(path);
  ASSERT_TRUE(MakeWritableFolder(path).ok());
  ASSERT_TRUE(WriteFileAtomic(path + "/mine", "mine").ok());
  OutputFolder first(path);
  EXPECT_TRUE(first.Write("a", "1").ok());
  EXPECT_TRUE(first.Write("b", "1").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(first.Write("mine", "1")));
  EXPECT_EQ(*ReadFile(path + "/mine"), "mine");

  OutputFolder second(path);
  second.ReadList();
  EXPECT_TRUE(second.Write("a", "2").ok()) << "of an earlier run";
  EXPECT_EQ(*ReadFile(path + "/a"), "2");
  second.RemoveListed({"a"});
  EXPECT_TRUE(FileExists(path + "/a"));
  EXPECT_TRUE(FileExists(path + "/mine"));
  EXPECT_FALSE(FileExists(path + "/b"));

  // What somebody wrote into the list is no way out of the folder.
  const std::string outside = Temporary("outside");
  ASSERT_TRUE(WriteFileAtomic(outside, "mine").ok());
  ASSERT_TRUE(WriteFileAtomic(path + "/.fuselage", "../outside\n").ok());
  OutputFolder later(path);
  later.ReadList();
  later.RemoveListed({});
  EXPECT_TRUE(FileExists(outside));
}

TEST(Files, FullDiskKeepsTheOldFile) {
  const std::string folder = Temporary("full");
  ASSERT_TRUE(MakeWritableFolder(folder).ok());
  const std::string path = folder + "/results.json";
  ASSERT_TRUE(WriteFileAtomic(path, "old").ok());

  signal(SIGXFSZ, SIG_IGN);  // A file-size limit stands for a full disk: write() fails in the middle.
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {4096, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteFileAtomic(path, std::string(100000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);

  EXPECT_EQ(ExitCodeOf(status), kIo) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  EXPECT_EQ(*ReadFile(path), "old");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files += entry.is_regular_file();
  EXPECT_EQ(files, 1) << "the temporary file must be gone";
}

TEST(Files, UnwritableFolderIsNamed) {
  const std::string file = Temporary("a_file");
  ASSERT_TRUE(WriteFileAtomic(file, "").ok());
  const absl::Status status = MakeWritableFolder(file + "/out");
  EXPECT_EQ(ExitCodeOf(status), kIo);
  EXPECT_THAT(std::string(status.message()), HasSubstr(file + "/out"));
  EXPECT_EQ(ReadFile(file + "/none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadFile(::testing::TempDir()).ok());
}

TEST(Files, RelativePathsMeanTheCaller) {
  SearchPath search;
  search.caller = Temporary("caller");
  search.workspace = Temporary("workspace");
  std::filesystem::create_directories(search.caller);
  std::filesystem::create_directories(search.workspace + "/models");
  ASSERT_TRUE(WriteFileAtomic(search.workspace + "/models/a.onnx", "").ok());
  EXPECT_EQ(search.Find("models/a.onnx"), search.workspace + "/models/a.onnx");
  EXPECT_EQ(search.Find("models/b.onnx"), search.caller + "/models/b.onnx");
  EXPECT_EQ(search.Find("/abs"), "/abs");
  EXPECT_EQ(search.InCaller("out"), search.caller + "/out");
  EXPECT_EQ(Stem("x/resnet18.textproto"), "resnet18");
}

}  // namespace
}  // namespace fuselage::harness
