#include "harness/serving/cores.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "ir/base/status.h"

namespace fuselage::harness::serving {
namespace {

constexpr int kMaxNodes = 1024;

// A list as the kernel writes it: "0-3,8". Empty where the file is not there.
std::vector<int> ReadList(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  std::vector<int> numbers;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(part, absl::MaxSplits('-', 1));
    int first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) continue;
    if (!absl::SimpleAtoi(ends.second, &last)) last = first;
    for (int number = first; number <= std::min(last, CPU_SETSIZE - 1); ++number) numbers.push_back(number);
  }
  return numbers;
}

// How many hardware threads of the same core come before this one.
int PlaceAmongSiblings(int core, const std::string& sysfs) {
  const std::vector<int> siblings =
      ReadList(absl::StrCat(sysfs, "/devices/system/cpu/cpu", core, "/topology/thread_siblings_list"));
  return static_cast<int>(std::count_if(siblings.begin(), siblings.end(), [&](int other) { return other < core; }));
}

// The cores of each node, in the order in which streams take them.
std::map<int, std::vector<int>> CoresByNode(const std::vector<int>& cores, const std::string& sysfs) {
  std::map<int, int> node_of;
  const std::string nodes = sysfs + "/devices/system/node";
  for (int node : ReadList(nodes + "/online")) {
    if (node >= kMaxNodes) break;
    for (int core : ReadList(absl::StrCat(nodes, "/node", node, "/cpulist"))) node_of[core] = node;
  }
  std::vector<std::tuple<int, int>> order;
  for (int core : cores) order.emplace_back(PlaceAmongSiblings(core, sysfs), core);
  std::sort(order.begin(), order.end());
  std::map<int, std::vector<int>> by_node;
  for (const auto& [place, core] : order) by_node[node_of[core]].push_back(core);
  return by_node;
}

}  // namespace

std::vector<int> AllowedCores() {
  cpu_set_t allowed;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

absl::StatusOr<std::vector<StreamCores>> CoresOfStreams(int streams, int threads, const std::vector<int>& cores,
                                                        const std::string& sysfs) {
  if (static_cast<size_t>(streams) * threads > cores.size()) {
    return UsageError(absl::StrCat("throughput.streams is ", streams, ", with ", threads,
                                   threads == 1 ? " thread" : " threads",
                                   " each, want no more threads than cores: ", cores.size()));
  }
  std::map<int, std::vector<int>> free = CoresByNode(cores, sysfs);
  std::vector<StreamCores> result;
  for (int stream = 0; stream < streams; ++stream) {
    const auto roomiest = std::max_element(
        free.begin(), free.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    StreamCores taken;
    taken.node = roomiest->first;
    const auto take = [&](std::vector<int>* from) {
      const size_t count = std::min(from->size(), static_cast<size_t>(threads) - taken.cores.size());
      taken.cores.insert(taken.cores.end(), from->begin(), from->begin() + count);
      from->erase(from->begin(), from->begin() + count);
    };
    take(&roomiest->second);
    for (auto& [node, list] : free) take(&list);
    result.push_back(std::move(taken));
  }
  return result;
}

absl::Status OnCores(const std::vector<StreamCores>& streams, absl::FunctionRef<absl::Status(int stream)> body) {
  std::vector<absl::Status> statuses(streams.size());
  std::vector<std::exception_ptr> thrown(streams.size());
  std::vector<std::thread> threads;
  const auto run = [&](size_t stream) {
    cpu_set_t own;
    CPU_ZERO(&own);
    for (int core : streams[stream].cores) CPU_SET(core, &own);
    sched_setaffinity(0, sizeof(own), &own);  // Where that is refused the stream runs wherever it is put.
    try {
      statuses[stream] = body(static_cast<int>(stream));
    } catch (...) {
      thrown[stream] = std::current_exception();
    }
  };
  try {
    for (size_t stream = 0; stream < streams.size(); ++stream) threads.emplace_back(run, stream);
  } catch (...) {
    for (std::thread& thread : threads) thread.join();
    throw;
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& exception : thrown) {
    if (exception != nullptr) std::rethrow_exception(exception);
  }
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace fuselage::harness::serving
