// Progress on a stream: one line that is rewritten on a terminal, a few plain lines elsewhere.
#ifndef FUSELAGE_HARNESS_REPORT_PROGRESS_H_
#define FUSELAGE_HARNESS_REPORT_PROGRESS_H_

#include <chrono>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace fuselage::report {

// Phases follow one another: Begin ends the one before. From one thread.
class Progress {
 public:
  // `terminal`: the line may be rewritten with "\r". Elsewhere a long phase adds a line every ten seconds.
  Progress(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  void Begin(absl::string_view phase);
  // `done` of `total` units ("images"); cheap enough to call for each.
  void Update(int64_t done, int64_t total, absl::string_view unit);
  void Detail(absl::string_view text);  // In place of a count: "conv_bn".
  void End();
  void Say(absl::string_view text);  // A line of its own.
  void Warn(absl::string_view text);

  // Name and seconds of each ended phase.
  const std::vector<std::pair<std::string, double>>& phases() const { return phases_; }

 private:
  using Clock = std::chrono::steady_clock;
  double Seconds() const;
  std::string Text(absl::string_view detail) const;
  void Show(absl::string_view detail);
  void Line(const std::string& text);

  std::ostream& out_;
  const bool terminal_;
  std::string phase_;
  bool line_begun_ = false;  // The cursor stands in the middle of a line.
  Clock::time_point start_, shown_;
  std::vector<std::pair<std::string, double>> phases_;
};

}  // namespace fuselage::report

#endif  // FUSELAGE_HARNESS_REPORT_PROGRESS_H_
