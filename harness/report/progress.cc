#include "harness/report/progress.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/table.h"

namespace fuselage::report {
namespace {

constexpr auto kTerminalInterval = std::chrono::milliseconds(100);
constexpr auto kPlainInterval = std::chrono::seconds(10);
constexpr int kPhaseWidth = 34;
constexpr char kClearLine[] = "\r\x1b[K";

}  // namespace

void Progress::Begin(absl::string_view phase) {
  End();
  phase_ = Escaped(phase);
  start_ = shown_ = Clock::now();
  out_ << (terminal_ ? kClearLine : "") << absl::StrFormat("%-*s ", kPhaseWidth, phase_) << std::flush;
  line_begun_ = true;
}

void Progress::Update(int64_t done, int64_t total, absl::string_view unit) {
  const Clock::duration interval = terminal_ ? Clock::duration(kTerminalInterval) : Clock::duration(kPlainInterval);
  if (Clock::now() - shown_ < interval) return;
  Show(absl::StrCat(done, " / ", total, " ", unit));
}

void Progress::Detail(absl::string_view text) {
  if (terminal_) Show(Escaped(text));
}

void Progress::End() {
  if (phase_.empty()) return;
  phases_.emplace_back(phase_, Seconds());
  if (terminal_ || !line_begun_) {
    Line(Text(""));
  } else {
    out_ << absl::StrFormat("%7.1f s\n", Seconds()) << std::flush;
    line_begun_ = false;
  }
  phase_.clear();
}

void Progress::Say(absl::string_view text) { Line(Escaped(text)); }

void Progress::Warn(absl::string_view text) { Say(absl::StrCat("warning: ", text)); }

double Progress::Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

std::string Progress::Text(absl::string_view detail) const {
  return absl::StrFormat("%-*s %7.1f s%s%s", kPhaseWidth, phase_, Seconds(), detail.empty() ? "" : "  ", detail);
}

void Progress::Show(absl::string_view detail) {
  shown_ = Clock::now();
  if (terminal_) {
    out_ << kClearLine << Text(detail) << std::flush;
    line_begun_ = true;
  } else {
    Line(Text(detail));
  }
}

void Progress::Line(const std::string& text) {
  out_ << (terminal_ ? kClearLine : line_begun_ ? "\n" : "") << text << "\n" << std::flush;
  line_begun_ = false;
}

}  // namespace fuselage::report
