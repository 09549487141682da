// The binary under SIGINT and SIGTERM: exit code 130 within two seconds, and a report that says INCOMPLETE.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/files.h"
#include "harness/testing/testing.h"

namespace fuselage::harness {
namespace {

using ::testing::HasSubstr;
using testing::MakeWorkplace;
using testing::Workplace;

// Starts the harness with its output in <folder>/log.
pid_t Start(const Workplace& place) {
  const std::string config = "--config=" + place.config, out = "--out=" + place.out, log = place.folder + "/log";
  const pid_t child = fork();
  if (child == 0) {
    const int fd = open(log.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execl("harness/harness", "harness/harness", config.c_str(), out.c_str(), nullptr);
    _exit(127);
  }
  return child;
}

void InterruptIn(const std::string& phase, int signal) {
  SCOPED_TRACE(phase);
  // Long enough that the signal always comes first.
  const Workplace place = MakeWorkplace("interrupt", "benchmark { batches: 1 min_time_ms: 600000 }");
  const pid_t child = Start(place);
  ASSERT_GT(child, 0);
  const auto log = [&] { return ReadFile(place.folder + "/log").value_or(""); };
  for (int i = 0; i < 1200 && !absl::StrContains(log(), phase); ++i) {
    ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0) << log();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(kill(child, signal), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  ASSERT_TRUE(WIFEXITED(status)) << log();
  EXPECT_EQ(WEXITSTATUS(status), 130) << log();
  EXPECT_THAT(log(), HasSubstr("INCOMPLETE: interrupted by signal"));
  const std::string json = ReadFile(place.out + "/results.json").value_or("");
  EXPECT_THAT(json, HasSubstr("\"status\": \"INCOMPLETE\""));
  EXPECT_THAT(json, HasSubstr("\"sha256\": \""));
}

TEST(Interrupt, SigintWhileMeasuring) { InterruptIn("latency, batch 1", SIGINT); }
TEST(Interrupt, SigtermWhileMeasuring) { InterruptIn("latency, batch 1", SIGTERM); }

}  // namespace
}  // namespace fuselage::harness
