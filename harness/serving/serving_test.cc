#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/serving/cores.h"
#include "harness/serving/requests.h"

namespace fuselage::harness::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void Write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text << "\n";
}

// The cores of each stream on a machine where nodes and hardware threads of a core lie as these lists say.
std::vector<StreamCores> OnMachine(const std::string& name, const std::vector<std::string>& nodes,
                                   const std::vector<std::string>& siblings, int streams, int threads) {
  const std::string sysfs = ::testing::TempDir() + "/" + name;
  Write(sysfs + "/devices/system/node/online", "0-" + std::to_string(nodes.size() - 1));
  for (size_t node = 0; node < nodes.size(); ++node) {
    Write(sysfs + "/devices/system/node/node" + std::to_string(node) + "/cpulist", nodes[node]);
  }
  std::vector<int> cores;
  for (size_t core = 0; core < siblings.size(); ++core) {
    cores.push_back(static_cast<int>(core));
    Write(sysfs + "/devices/system/cpu/cpu" + std::to_string(core) + "/topology/thread_siblings_list", siblings[core]);
  }
  auto found = CoresOfStreams(streams, threads, cores, sysfs);
  EXPECT_TRUE(found.ok()) << found.status();
  return *std::move(found);
}

std::vector<std::vector<int>> Cores(const std::vector<StreamCores>& streams) {
  std::vector<std::vector<int>> cores;
  for (const StreamCores& stream : streams) cores.push_back(stream.cores);
  return cores;
}

std::vector<int> Nodes(const std::vector<StreamCores>& streams) {
  std::vector<int> nodes;
  for (const StreamCores& stream : streams) nodes.push_back(stream.node);
  return nodes;
}

const std::vector<std::string> kNoSiblings = {"0", "1", "2", "3"};

TEST(CoresTest, TooManyAreAnError) {
  const auto streams = CoresOfStreams(3, 2, {0, 1, 2, 3});
  EXPECT_EQ(streams.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(streams.status().message(),
            "throughput.streams is 3, with 2 threads each, want no more threads than cores: 4");
}

TEST(CoresTest, StreamsSpreadOverNodes) {
  const auto one_each = OnMachine("spread", {"0-1", "2-3"}, kNoSiblings, 4, 1);
  EXPECT_THAT(Cores(one_each), ElementsAre(ElementsAre(0), ElementsAre(2), ElementsAre(1), ElementsAre(3)));
  EXPECT_THAT(Nodes(one_each), ElementsAre(0, 1, 0, 1));
  const auto two_each = OnMachine("spread", {"0-1", "2-3"}, kNoSiblings, 2, 2);
  EXPECT_THAT(Cores(two_each), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(CoresTest, AStreamMayNeedTwoNodes) {
  EXPECT_THAT(Cores(OnMachine("across", {"0-1", "2-3"}, kNoSiblings, 1, 3)), ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(CoresTest, SecondHardwareThreadsComeLast) {
  const auto streams = OnMachine("siblings", {"0-3"}, {"0-1", "0-1", "2-3", "2-3"}, 4, 1);
  EXPECT_THAT(Cores(streams), ElementsAre(ElementsAre(0), ElementsAre(2), ElementsAre(1), ElementsAre(3)));
}

TEST(CoresTest, WithoutSysfsAllAreAlike) {
  const auto streams = CoresOfStreams(2, 1, {4, 7}, ::testing::TempDir() + "/nothing");
  ASSERT_TRUE(streams.ok());
  EXPECT_THAT(Cores(*streams), ElementsAre(ElementsAre(4), ElementsAre(7)));
}

TEST(CoresTest, RunsThere) {
  const auto streams = CoresOfStreams(static_cast<int>(AllowedCores().size()), 1);
  ASSERT_TRUE(streams.ok());
  std::vector<int> ran(streams->size(), -1), inherited(streams->size(), -1);
  ASSERT_TRUE(OnCores(*streams, [&](int stream) {
                ran[stream] = sched_getcpu();
                std::thread([&, stream] { inherited[stream] = sched_getcpu(); }).join();
                return absl::OkStatus();
              }).ok());
  for (size_t i = 0; i < ran.size(); ++i) {
    EXPECT_EQ(ran[i], (*streams)[i].cores[0]);
    EXPECT_EQ(inherited[i], (*streams)[i].cores[0]);
  }
}

TEST(CoresTest, GivesErrorsAndExceptions) {
  const std::vector<StreamCores> streams(2, StreamCores{0, {AllowedCores()[0]}});
  EXPECT_EQ(OnCores(streams, [](int stream) { return stream == 1 ? absl::InternalError("second") : absl::OkStatus(); })
                .message(),
            "second");
  EXPECT_THROW((void)OnCores(streams, [](int) -> absl::Status { throw std::runtime_error("thrown"); }),
               std::runtime_error);
}

TEST(RequestsTest, PoissonArrivals) {
  const auto arrivals = PoissonArrivals(50, 20000, 7);
  EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end()));
  EXPECT_EQ(arrivals, PoissonArrivals(50, 20000, 7));
  EXPECT_NE(arrivals, PoissonArrivals(50, 20000, 8));
  // Gaps of an exponential distribution: mean and deviation are both 1 / rate.
  double mean = arrivals.back() / arrivals.size(), square = 0;
  for (size_t i = 1; i < arrivals.size(); ++i) square += std::pow(arrivals[i] - arrivals[i - 1] - mean, 2);
  EXPECT_NEAR(mean, 0.02, 0.0005);
  EXPECT_NEAR(std::sqrt(square / arrivals.size()), 0.02, 0.0005);
}

TEST(RequestsTest, AQueueByHand) {
  // One stream that takes 2: the second request waits for 1, the third finds it free again.
  EXPECT_THAT(QueueOf({0, 1, 5}, 1, 2), ElementsAre(2, 3, 2));
  EXPECT_THAT(QueueOf({0, 1, 1.5}, 2, 2), ElementsAre(2, 2, 2.5));
  // The mean wait of a queue M/D/1 is load / (2 (1 - load)) services (Pollaczek and Khinchine).
  double mean = 0;
  const auto latencies = QueueOf(PoissonArrivals(0.7, 200000, 3), 1, 1);
  for (double latency : latencies) mean += latency / latencies.size();
  EXPECT_NEAR(mean, 1 + 0.7 / 0.6, 0.05);
}

TEST(RequestsTest, LatenciesCountFromArrival) {
  const std::vector<StreamCores> one(1, StreamCores{0, {AllowedCores()[0]}});
  const Serve serve = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return absl::OkStatus();
  };
  // Ten at once, one after another: the last waits for the nine before it.
  const auto latencies = OpenLoop(one, {serve}, std::vector<double>(10, 0.0));
  ASSERT_TRUE(latencies.ok());
  for (size_t i = 0; i < latencies->size(); ++i) EXPECT_GE((*latencies)[i], 0.005 * (i + 1));
}

TEST(RequestsTest, EachRequestIsServedOnce) {
  std::atomic<int> served{0};
  const Serve serve = [&] {
    ++served;
    return absl::OkStatus();
  };
  const std::vector<StreamCores> three(3, StreamCores{0, {AllowedCores()[0]}});
  const auto latencies = OpenLoop(three, {serve, serve, serve}, PoissonArrivals(1e6, 1000, 1));
  ASSERT_TRUE(latencies.ok());
  EXPECT_EQ(served, 1000);
  EXPECT_EQ(latencies->size(), 1000u);
  for (double latency : *latencies) EXPECT_GE(latency, 0);
}

TEST(RequestsTest, SaturationCountsAllStreams) {
  std::atomic<int> served{0};
  const Serve serve = [&] {
    ++served;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::OkStatus();
  };
  const std::vector<StreamCores> two(2, StreamCores{0, {AllowedCores()[0]}});
  const auto rate = Saturate(two, {serve, serve}, 0.05);
  ASSERT_TRUE(rate.ok());
  EXPECT_GT(*rate, 0);
  EXPECT_LE(*rate, 2000);
  EXPECT_GE(served, 2);
  const auto failed = Saturate(two, {serve, [] { return absl::InternalError("no"); }}, 0.01);
  EXPECT_EQ(failed.status().message(), "no");
}

}  // namespace
}  // namespace fuselage::harness::serving
