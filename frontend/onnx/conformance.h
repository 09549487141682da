// The official ONNX test models (Debian's libonnx-testdata) as a table, and how to run one. For tests.
//
// A model is loaded as it is, except that an input which a compiler must know (the shape of a Reshape, the axes of a
// Squeeze, ...) becomes a constant of the value in the test data.
#ifndef FUSELAGE_FRONTEND_ONNX_CONFORMANCE_H_
#define FUSELAGE_FRONTEND_ONNX_CONFORMANCE_H_

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph.h"

namespace fuselage::onnx::conformance {

inline constexpr char kData[] = "/usr/share/libonnx-testdata/data";
inline constexpr int kModels = 1072;
inline constexpr int kFirstTier = 88;

// The first tier: every node test of these operators, by the test's name without "test_".
struct Tier {
  const char* op;
  std::vector<std::string> tests;
};
const std::vector<Tier>& FirstTier();
// What a compiler of inference has no use for in the first tier, and why.
const std::map<std::string, const char*>& Exclusions();

std::filesystem::path NodeTest(const std::string& test);
// Sorted.
std::vector<std::filesystem::path> ModelsBelow(const std::filesystem::path& folder);
std::vector<std::filesystem::path> AllModels();

// All operators, registered once.
const ir::OpRegistry& Ops();

// A way to run a graph: the interpreter, or kernels.
using Runner = std::function<absl::StatusOr<std::vector<Tensor>>(const ir::Graph&, absl::Span<const Tensor>)>;

// Node tests feed even a convolution's weight as an input: kConstants makes it a parameter, as it is in real models.
enum class Weights { kInputs, kConstants };

enum class Outcome { kPassed, kDeclined, kFailed };
struct Result {
  Outcome outcome;
  std::string message;
};

// Runs all data sets of a model and compares as ONNX's own runner does: rtol 1e-3 and atol 1e-7 for floats, all else
// exactly. Declined: Unimplemented, by the frontend or the runner, with a message that names what is not supported.
Result RunModel(const std::filesystem::path& model, Weights weights, const Runner& run);

}  // namespace fuselage::onnx::conformance

#endif  // FUSELAGE_FRONTEND_ONNX_CONFORMANCE_H_
