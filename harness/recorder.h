// The results so far, and how they reach the disk: whole, or marked INCOMPLETE when the run ends early.
#ifndef FUSELAGE_HARNESS_RECORDER_H_
#define FUSELAGE_HARNESS_RECORDER_H_

#include <functional>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/base/output_folder.h"
#include "harness/base/statistics.h"
#include "harness/results.pb.h"

namespace fuselage::harness {

Results::Latency LatencyOf(const Summary& summary);

// Any thread may call it: the one that watches for signals writes the partial report.
class Recorder {
 public:
  explicit Recorder(std::string folder);

  const std::string& folder() const { return folder_.path(); }

  // The folder is there: claims results.json, report.txt and report.html; AlreadyExists where the folder holds one that
  // no run wrote.
  absl::Status ClaimReports();
  // The path of a file in the folder that the caller is about to write (OutputFolder::Claim).
  absl::StatusOr<std::string> Claim(const std::string& name);
  // Removes what earlier runs wrote, which may have had more passes; but the reports stay until there are new ones.
  void RemoveEarlierFiles();

  void Update(const std::function<void(Results& results)>& change);
  Results Snapshot() const;

  // Writes `contents` into the folder, atomically. A failure (a full disk) does not stop the run: the first is kept.
  void WriteFile(const std::string& name, const std::string& contents);
  absl::Status write_status() const;

  // Marks the results complete (`error` OK) or INCOMPLETE with the error, and writes results.json, report.html, and
  // report.txt with `slowest_layers` rows. Later calls, which a signal may make while the first returns, do nothing.
  // Returns the report, to be printed.
  std::string Finish(const absl::Status& error, int slowest_layers);

  // In place of a Finish that threw std::bad_alloc: the least that the files can say, without any allocation.
  void FinishWithoutMemory();

 private:
  mutable std::mutex mutex_;  // Guards what follows, but for the folder's path.
  OutputFolder folder_;
  const std::string json_path_, report_path_, html_path_;
  std::string temporary_json_, temporary_report_, temporary_html_;  // ReplaceFile's.
  Results results_;
  bool claimed_ = false, finished_ = false;
  absl::Status write_status_;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_RECORDER_H_
