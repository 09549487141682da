#include "tools/peers/cudnn/trials.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/base/check.h"

namespace fuselage::peers::cudnn {
namespace {

// What a process says of an attempt. Smaller than PIPE_BUF: it is written and read whole.
struct Record {
  absl::StatusCode code = absl::StatusCode::kOk;
  double value = 0;
  char message[400] = "";
};

void AttemptAll(int first, int count, const std::function<absl::StatusOr<double>(int)>& attempt, int pipe) {
  for (int i = first; i < count; ++i) {
    const absl::StatusOr<double> result = attempt(i);
    Record record;
    record.code = result.status().code();
    if (result.ok()) record.value = *result;
    const std::string message(result.status().message());
    std::memcpy(record.message, message.data(), std::min(message.size(), sizeof record.message - 1));
    if (write(pipe, &record, sizeof record) != sizeof record || record.code == absl::StatusCode::kDataLoss) return;
  }
}

absl::StatusOr<double> ResultOf(const Record& record) {
  if (record.code == absl::StatusCode::kOk) return record.value;
  return absl::Status(record.code, record.message);
}

absl::Status EndOf(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  if (WIFSIGNALED(status)) return absl::InternalError(absl::StrCat("ended by signal ", WTERMSIG(status)));
  return absl::InternalError(absl::StrCat("ended with code ", WEXITSTATUS(status)));
}

// Results until an attempt ends the process or takes too long; that one's is the last.
void TryFrom(int count, std::chrono::milliseconds limit, const std::function<absl::StatusOr<double>(int)>& attempt,
             std::vector<absl::StatusOr<double>>* results) {
  const int first = static_cast<int>(results->size());
  int ends[2];
  FUSELAGE_CHECK(pipe(ends) == 0);
  const pid_t process = fork();
  FUSELAGE_CHECK(process >= 0);
  if (process == 0) {
    AttemptAll(first, count, attempt, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  bool ended = false;
  while (static_cast<int>(results->size()) < count && !ended) {
    pollfd readable = {ends[0], POLLIN, 0};
    Record record;
    if (poll(&readable, 1, static_cast<int>(limit.count())) == 0) {
      kill(process, SIGKILL);
      EndOf(process).IgnoreError();
      results->push_back(absl::DeadlineExceededError(absl::StrCat("took more than ", limit.count(), " ms")));
      ended = true;
    } else if (read(ends[0], &record, sizeof record) == sizeof record) {
      results->push_back(ResultOf(record));
      if (record.code == absl::StatusCode::kDataLoss) break;
    } else {
      results->push_back(EndOf(process));
      ended = true;
    }
  }
  close(ends[0]);
  if (!ended) EndOf(process).IgnoreError();
}

}  // namespace

std::vector<absl::StatusOr<double>> TryEach(int count, std::chrono::milliseconds limit,
                                            const std::function<absl::StatusOr<double>(int)>& attempt) {
  std::vector<absl::StatusOr<double>> results;
  while (static_cast<int>(results.size()) < count) TryFrom(count, limit, attempt, &results);
  return results;
}

}  // namespace fuselage::peers::cudnn
