#include "harness/recorder.h"

#include "harness/environment.h"
#include "harness/report/json.h"
#include "harness/report/tables.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

constexpr char kResults[] = "results.json", kReport[] = "report.txt";

}  // namespace

Recorder::Recorder(std::string folder) : folder_(std::move(folder)) { results_.set_status("INCOMPLETE"); }

void Recorder::Update(const std::function<void(Results&)>& change) {
  std::lock_guard<std::mutex> lock(mutex_);
  change(results_);
}

Results Recorder::Snapshot() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return results_;
}

absl::Status Recorder::MayWriteReports() const {
  std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(folder_.MayWrite(kResults));
  return folder_.MayWrite(kReport);
}

absl::StatusOr<std::string> Recorder::Claim(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  return folder_.Claim(name);
}

void Recorder::RemoveEarlierFiles() {
  std::lock_guard<std::mutex> lock(mutex_);
  folder_.RemoveListed({kResults, kReport});
}

void Recorder::WriteFile(const std::string& name, const std::string& contents) {
  std::lock_guard<std::mutex> lock(mutex_);
  write_status_.Update(folder_.Write(name, contents));
}

absl::Status Recorder::write_status() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return write_status_;
}

std::string Recorder::Finish(const absl::Status& error, int slowest_layers) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (finished_) return "";
  finished_ = true;
  results_.set_status(error.ok() ? "complete" : "INCOMPLETE");
  results_.set_error(std::string(error.message()));
  if (const auto peak = PeakRssBytes()) results_.mutable_environment()->set_process_peak_rss_bytes(*peak);
  const std::string report = report::Report(results_, slowest_layers);
  write_status_.Update(folder_.Write(kResults, report::ToJson(results_)));
  write_status_.Update(folder_.Write(kReport, report));
  return report;
}

}  // namespace fuselage::harness
