// The results so far, and how they reach the disk: whole, or marked INCOMPLETE when the run ends early.
#ifndef FUSELAGE_HARNESS_RECORDER_H_
#define FUSELAGE_HARNESS_RECORDER_H_

#include <functional>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "harness/results.pb.h"

namespace fuselage::harness {

// Any thread may call it: the one that watches for signals writes the partial report.
class Recorder {
 public:
  explicit Recorder(std::string folder);

  const std::string& folder() const { return folder_; }

  void Update(const std::function<void(Results& results)>& change);
  Results Snapshot() const;

  // Writes `contents` into the folder, atomically. A failure (a full disk) does not stop the run: the first is kept.
  void WriteFile(const std::string& name, const std::string& contents);
  absl::Status write_status() const;

  // Marks the results complete (`error` OK) or INCOMPLETE with the error, and writes results.json and report.txt with
  // `slowest_layers` rows. Later calls, which a signal may make while the first returns, do nothing.
  // Returns the report, to be printed.
  std::string Finish(const absl::Status& error, int slowest_layers);

 private:
  const std::string folder_;
  mutable std::mutex mutex_;  // Guards what follows.
  Results results_;
  bool finished_ = false;
  absl::Status write_status_;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_RECORDER_H_
