#include "ir/base/suggest.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace fuselage {

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string Nearest(absl::string_view name, const std::vector<std::string>& candidates) {
  std::string nearest;
  int best = 0;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(name, candidate);
    if (distance * 2 > static_cast<int>(std::max(name.size(), candidate.size()))) continue;
    if (nearest.empty() || distance < best) {
      nearest = candidate;
      best = distance;
    }
  }
  return nearest;
}

std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(name, candidates);
  return nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?");
}

}  // namespace fuselage
