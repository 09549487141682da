// Which nodes are quantized, and on which edges the pairs go.
#ifndef FUSELAGE_PASSES_QUANTIZE_SELECT_H_
#define FUSELAGE_PASSES_QUANTIZE_SELECT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/base/hash_map.h"
#include "ir/graph.h"
#include "passes/core/remarks.h"
#include "passes/quantize/group_weights.h"
#include "passes/quantize/quantize.pb.h"

namespace fuselage::quantize {

// `value` is operand `operand` of `user`; a user with one value twice has two edges.
struct Edge {
  ir::Node* value;
  ir::Node* user;
  int operand;
};

// Whose weights have seven bits, by the module's path: what a remark says of it.
using SevenBits = HashMap<std::string, std::string>;

struct Selection {
  std::vector<ir::Node*> nodes;  // To quantize, in the graph's order.
  std::vector<Edge> edges;       // That get a pair, in the graph's order.
  std::vector<Edge> rows;        // Whose rows get scales in the run, in the graph's order.
  HashMap<std::string, int64_t> four_bits;  // The groups' size of weights that stay in four bits, by parameter.
  SevenBits seven_bits;                     // None from Select.
  // Values of one group share their parameters: views, slices of codes and quantized max pools join their operand's, a
  // quantized concat joins all of its operands and its result. A group's range is the union of the ranges of its
  // sources: the values that the others are made of, or, where only maxima are taken of one, these.
  HashMap<const ir::Node*, int> group_of;
  std::vector<std::vector<ir::Node*>> sources;  // By group, in the graph's order.
};

// The operands that are no parameters and are present, as indices for Node::operand; of an op that hands elements on,
// those that it takes them from; none that the quantized form takes as it is (a mask).
std::vector<int> DataOperands(const ir::Node& node);

// A text with '*' for any characters and '?' for one.
bool GlobMatches(absl::string_view glob, absl::string_view text);

// The first of such that the name of the node or the path of its module fits; null: none.
const std::string* FittingOrNull(const google::protobuf::RepeatedPtrField<std::string>& globs, const ir::Node& node);

// Moves floats, and loses or repeats none.
bool IsView(const ir::Node* node);

// What views of any kind show.
const ir::Node& SourceOf(const ir::Node& value);

// A quantized op that can leave a float result; what adds a residual in codes cannot.
bool HasFloatResult(const ir::Node& node);

// By name of the node: what a remark says of it.
using KeptInFloat = HashMap<std::string, std::string>;

// Remarks say which candidates stay in FP32, and why; those of `kept` do besides what the options say. InvalidArgument:
// options that fit nothing.
absl::StatusOr<Selection> Select(const QuantizeOptions& options, const ir::Graph& graph, FourBitWeights& four_bits,
                                 passes::Remarks& remarks, const KeptInFloat& kept = {});

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_SELECT_H_
