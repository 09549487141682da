// Which of the candidates that were tried is taken.
#ifndef FUSELAGE_TOOLS_PEERS_CUDNN_CHOICE_H_
#define FUSELAGE_TOOLS_PEERS_CUDNN_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace fuselage::peers::cudnn {

// Of a convolution: beyond them heuristics do not get better, and each takes a second or two to compile.
constexpr int kMostCandidates = 8;

// The fastest one's number, of the times of one convolution's candidates; NotFound: there are fewer. Unimplemented
// where none ran, with the first one's reason.
absl::StatusOr<int> Fastest(absl::Span<const absl::StatusOr<double>> times);

// "candidate 3: ended by signal 11" for each that crashed or hung.
std::vector<std::string> Accidents(absl::Span<const absl::StatusOr<double>> times);

}  // namespace fuselage::peers::cudnn

#endif  // FUSELAGE_TOOLS_PEERS_CUDNN_CHOICE_H_
