// A random graph while it grows, and the recipes that let it. Private to random_graph.
#ifndef FUSELAGE_IR_TESTING_DRAFT_H_
#define FUSELAGE_IR_TESTING_DRAFT_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/hash_map.h"
#include "ir/graph.h"
#include "ir/testing/random.h"
#include "ir/testing/random_graph.h"

namespace fuselage::testing {

// One call in whatever spelling.
struct RandomCall {
  std::string op;
  std::vector<ir::Node*> operands;                // Those that are no parameters.
  std::map<std::string, std::string> parameters;  // Operand name -> parameter of the graph.
  AttributeMap attributes;
};

class Draft {
 public:
  Draft(uint64_t seed, const ir::OpRegistry& ops, const RandomGraphOptions& options);

  Random& random() { return random_; }
  ir::Graph& graph() { return *graph_; }
  int num_calls() const { return num_calls_; }

  // A value for which `fits` holds, rather a recent one; null where there is none.
  using Condition = std::function<bool(const ir::Node&)>;
  ir::Node* PickOrNull(const Condition& fits);
  // A small float tensor of a rank in [low, high].
  ir::Node* PickFloatOrNull(int low, int high);
  // The same of f32, and one that may be rounded to codes (RandomGraphOptions::round_arithmetic).
  ir::Node* PickToRoundOrNull(int low, int high);
  // No arithmetic above it: no pass moves it.
  bool is_exact(const ir::Node& node) const { return exact_.at(&node); }
  bool MayRound(const ir::Node& node) const { return options_.round_arithmetic || exact_.at(&node); }

  // Each returns the new node, or null where the op refuses the operands: then nothing has changed.
  ir::Node* AddInRandomSpelling(const RandomCall& call);
  ir::Node* AddAsModule(const RandomCall& call);
  ir::Node* AddFunction(absl::string_view op, std::vector<ir::Node*> operands, AttributeMap attributes = {});
  ir::Node* AddSharedCall(const ir::Module& module, std::vector<ir::Node*> operands);
  ir::Node* AddGetAttr(const std::string& parameter);

  // Names of new parameters: `value`, of at most 16 elements; SeededTensor values; `values` repeated to fill a vector
  // of at most 16.
  std::string AddParameter(const std::string& name, Tensor value);
  std::string SeededParameter(const std::string& name, TensorType type);
  std::string VectorParameter(const std::string& name, DType dtype, int64_t size, const std::vector<double>& values);

  // About how large a value's elements are.
  double magnitude(const ir::Node& node) const { return magnitude_.at(&node); }
  void set_magnitude(const ir::Node& node, double magnitude) { magnitude_[&node] = magnitude; }

  // Ends the graph: outputs, and mostly no leftovers.
  std::unique_ptr<ir::Graph> Finish();

 private:
  ir::Node* AddAsFunctionOrMethod(const RandomCall& call, const ir::OpSchema& op);
  ir::Node* Take(absl::StatusOr<ir::Node*> node);
  bool IsExact(const ir::Node& node) const;

  Random random_;
  RandomGraphOptions options_;
  std::unique_ptr<ir::Graph> graph_;
  std::vector<ir::Node*> values_;
  int num_calls_ = 0;
  HashMap<const ir::Node*, double> magnitude_;
  HashMap<const ir::Node*, bool> exact_;
};

// What recipes write often.
inline TensorType Of(DType dtype, Shape shape, std::optional<QuantParams> quant = std::nullopt) {
  return {dtype, std::move(shape), std::move(quant), Layout::kRowMajor};
}
inline bool Done(const ir::Node* node) { return node != nullptr; }

// A reshape, flatten, squeeze, unsqueeze or permute; null where the one that was drawn does not fit.
ir::Node* AddRandomView(Draft& draft, ir::Node* x);

// A way to add a few calls; false where the draft has no value that fits.
struct Recipe {
  int weight;
  bool (*cook)(Draft& draft);
};

enum class Graphs { kEvery, kQuantized, kSome };  // kSome: one in three, so that what passes match stays frequent.

// By the graphs that they are for. A file of recipes/ registers its own; a new one needs no more than to be there.
struct Recipes {
  struct List {
    Graphs graphs;
    std::vector<Recipe> recipes;
  };
  std::vector<List> lists;

  void Add(Graphs graphs, std::vector<Recipe> recipes) { lists.push_back({graphs, std::move(recipes)}); }
};

// Those of all files of recipes/, by their names.
void RegisterAll(Recipes& recipes);

}  // namespace fuselage::testing

#endif  // FUSELAGE_IR_TESTING_DRAFT_H_
