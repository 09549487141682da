#include "harness/measure/memory_counter.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

constexpr int64_t kCacheLine = 64;
// Fresh pages of this size miss every cache; a counter that sees nothing of them counts nothing.
constexpr int64_t kProbeBytes = int64_t{16} << 20;

}  // namespace

std::string CounterReason(int error) {
  switch (error) {
    case EACCES:
    case EPERM: return "perf_event_open is not permitted: see /proc/sys/kernel/perf_event_paranoid";
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP: return "this machine, or its hypervisor, has no counter of cache misses";
    case ENOSYS: return "the kernel has no perf_event_open";
    default: return absl::StrCat("perf_event_open: ", strerror(error));
  }
}

absl::StatusOr<std::unique_ptr<MemoryCounter>> MemoryCounter::Open() {
  perf_event_attr event;
  memset(&event, 0, sizeof event);
  event.size = sizeof event;
  event.type = PERF_TYPE_HARDWARE;
  event.config = PERF_COUNT_HW_CACHE_MISSES;
  event.disabled = 1;
  event.exclude_kernel = 1;
  event.exclude_hv = 1;
  event.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  const int descriptor =
      static_cast<int>(syscall(SYS_perf_event_open, &event, /*pid=*/0, /*cpu=*/-1, /*group=*/-1, PERF_FLAG_FD_CLOEXEC));
  if (descriptor < 0) return absl::UnavailableError(CounterReason(errno));
  auto counter = std::unique_ptr<MemoryCounter>(new MemoryCounter(descriptor));
  counter->Start();
  std::vector<char> probe(kProbeBytes);
  volatile char* bytes = probe.data();
  for (int64_t i = 0; i < kProbeBytes; i += kCacheLine) bytes[i] = 1;
  ASSIGN_OR_RETURN(const int64_t seen, counter->Stop());
  if (seen == 0) return absl::UnavailableError("the counter of cache misses stands still");
  return counter;
}

MemoryCounter::~MemoryCounter() { close(descriptor_); }

void MemoryCounter::Start() {
  ioctl(descriptor_, PERF_EVENT_IOC_RESET, 0);
  ioctl(descriptor_, PERF_EVENT_IOC_ENABLE, 0);
}

absl::StatusOr<int64_t> MemoryCounter::Stop() {
  ioctl(descriptor_, PERF_EVENT_IOC_DISABLE, 0);
  struct {
    uint64_t misses, enabled, running;  // Nanoseconds; other events may have had the counter meanwhile.
  } value;
  if (read(descriptor_, &value, sizeof value) != static_cast<ssize_t>(sizeof value)) {
    return absl::UnavailableError("the counter of cache misses cannot be read");
  }
  if (value.running == 0) return 0;
  const double share = static_cast<double>(value.enabled) / static_cast<double>(value.running);
  return static_cast<int64_t>(static_cast<double>(value.misses) * share) * kCacheLine;
}

}  // namespace fuselage::harness
