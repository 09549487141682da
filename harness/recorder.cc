#include "harness/recorder.h"

#include <unistd.h>

#include "harness/environment.h"
#include "harness/html/html.h"
#include "harness/report/json.h"
#include "harness/report/report.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

constexpr char kResults[] = "results.json", kReport[] = "report.txt", kHtml[] = "report.html";

}  // namespace

Results::Latency LatencyOf(const Summary& summary) {
  Results::Latency latency;
  latency.set_min(summary.min);
  latency.set_median(summary.median);
  latency.set_mean(summary.mean);
  latency.set_p90(summary.p90);
  latency.set_p99(summary.p99);
  return latency;
}

Recorder::Recorder(std::string folder)
    : folder_(std::move(folder)),
      json_path_(folder_.path() + "/" + kResults),
      report_path_(folder_.path() + "/" + kReport),
      html_path_(folder_.path() + "/" + kHtml),
      temporary_json_(json_path_ + ".XXXXXX"),
      temporary_report_(report_path_ + ".XXXXXX"),
      temporary_html_(html_path_ + ".XXXXXX") {
  results_.set_status("INCOMPLETE");
}

void Recorder::Update(const std::function<void(Results&)>& change) {
  std::lock_guard<std::mutex> lock(mutex_);
  change(results_);
}

Results Recorder::Snapshot() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return results_;
}

absl::Status Recorder::ClaimReports() {
  std::lock_guard<std::mutex> lock(mutex_);
  folder_.ReadList();
  RETURN_IF_ERROR(folder_.Claim(kResults).status());
  RETURN_IF_ERROR(folder_.Claim(kReport).status());
  RETURN_IF_ERROR(folder_.Claim(kHtml).status());
  claimed_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Recorder::Claim(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  return folder_.Claim(name);
}

void Recorder::RemoveEarlierFiles() {
  std::lock_guard<std::mutex> lock(mutex_);
  folder_.RemoveListed({kResults, kReport, kHtml});
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
  results_.set_status(error.ok() ? "complete" : "INCOMPLETE");
  results_.set_error(std::string(error.message()));
  if (const auto peak = PeakRssBytes()) results_.mutable_environment()->set_process_peak_rss_bytes(*peak);
  std::string report = report::Report(results_, {slowest_layers});
  write_status_.Update(folder_.Write(kResults, report::ToJson(results_)));
  write_status_.Update(folder_.Write(kReport, report));
  write_status_.Update(folder_.Write(kHtml, html::Page(results_)));
  finished_ = true;
  return report;
}

void Recorder::FinishWithoutMemory() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (finished_) return;
  finished_ = true;
  // Before they are claimed, files that are there may be somebody's.
  const auto write = [this](const std::string& path, std::string& temporary, absl::string_view contents) {
    if (claimed_ || access(path.c_str(), F_OK) != 0) ReplaceFile(path.c_str(), &temporary[0], contents);
  };
  write(json_path_, temporary_json_, "{\n  \"status\": \"INCOMPLETE\",\n  \"error\": \"out of memory\"\n}\n");
  write(report_path_, temporary_report_, "INCOMPLETE: out of memory\n");
  write(html_path_, temporary_html_, "<!doctype html>\n<title>INCOMPLETE</title>\n<p>INCOMPLETE: out of memory</p>\n");
}

}  // namespace fuselage::harness
