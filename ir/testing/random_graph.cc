#include "ir/testing/random_graph.h"

#include "ir/testing/draft.h"

namespace fuselage::testing {

std::unique_ptr<ir::Graph> RandomGraph(uint64_t seed, const ir::OpRegistry& ops, const RandomGraphOptions& options) {
  Draft draft(seed, ops, options);
  Recipes all;
  RegisterAll(all);
  std::vector<Recipe> recipes;
  int total = 0;
  for (const Recipes::List& list : all.lists) {
    if (list.graphs == Graphs::kQuantized && !options.quantized) continue;
    if (list.graphs == Graphs::kSome && !draft.random().OneIn(3)) continue;
    for (const Recipe& recipe : list.recipes) {
      recipes.push_back(recipe);
      total += recipe.weight;
    }
  }
  // Where nothing fits for long, the graph stays smaller.
  for (int tries = 0; draft.num_calls() < options.calls && tries < 10 * options.calls; ++tries) {
    int64_t pick = draft.random().Between(0, total - 1);
    const Recipe* recipe = recipes.data();
    while (pick >= recipe->weight) pick -= (recipe++)->weight;
    recipe->cook(draft);
  }
  return draft.Finish();
}

}  // namespace fuselage::testing
