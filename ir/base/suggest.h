// "did you mean": the name nearest to a misspelt one.
#ifndef FUSELAGE_IR_BASE_SUGGEST_H_
#define FUSELAGE_IR_BASE_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fuselage {

// Levenshtein distance: insertions, deletions and substitutions of one character.
int EditDistance(absl::string_view a, absl::string_view b);

// The first of the nearest candidates; "" where none is within half of the longer name's length.
std::string Nearest(absl::string_view name, const std::vector<std::string>& candidates);

// "; did you mean \"model\"?", or "" where nothing is near.
std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_SUGGEST_H_
