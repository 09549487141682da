// One round of quant_lift. A round can open the way for another, where a scale that it moved is quantized itself.
#ifndef FUSELAGE_PASSES_QUANT_LIFT_LIFTER_H_
#define FUSELAGE_PASSES_QUANT_LIFT_LIFTER_H_

#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/base/hash_map.h"
#include "ir/graph.h"
#include "passes/core/remarks.h"
#include "passes/quant_lift/liftable.h"
#include "passes/quant_lift/mutations.h"
#include "passes/quant_lift/view_axes.h"

namespace fuselage::quant_lift {

class Lifter {
 public:
  Lifter(ir::Graph& graph, passes::Remarks& remarks) : graph_(graph), remarks_(remarks) {}

  // True: something changed.
  absl::StatusOr<bool> Run();
  // A remark for each near miss of the round; those of the last round are the pass's.
  void ReportMissed();

 private:
  // What a node does with its operand 0: a quantize; or a view, once all that read it do the same.
  struct Reading {
    Quantizing quantizing;               // The operand's.
    Axes axes_behind;                    // For a view: the axes of the quantizing of its result.
    int key = -1;                        // The quantizing's.
    unsigned used_results = 1;           // Bit i: result i of the quantize is read.
    const ir::Node* together = nullptr;  // Reads the results of the quantize as one tuple.
  };
  // The results of the new quantize above a chain of views: as it gives them, and as one view of the chain has them.
  struct Results {
    ir::Node* quantize = nullptr;
    std::array<ir::Node*, kMostResults> above = {}, here = {};
  };

  void FindQuantizes();
  void FindViews();
  std::optional<View> CropOf(const ir::Node& node) const;
  absl::StatusOr<Reading> ReadingOfView(const ir::Node& view, const View& axes);
  int64_t PositionOf(const ir::Node& node) const;
  absl::Status CheckOperands(const ir::Node& view, const ir::Node& quantize) const;

  absl::Status Lift();
  absl::StatusOr<Results> AddQuantize(const Reading& reading, ir::Node* view);
  absl::StatusOr<ir::Node*> AddViewOfResult(int i, ir::Node* result, ir::Node* view);
  void ReplaceReaders(ir::Node* view);
  bool Combine();

  void Replace(ir::Node* node, ir::Node* replacement, ir::Node* heir);
  void AddSources();

  ir::Graph& graph_;
  passes::Remarks& remarks_;
  Keys keys_;
  mutable HashMap<const ir::Node*, int64_t> position_;  // Empty until it is needed.
  HashMap<const ir::Node*, Reading> readings_;
  HashMap<const ir::Node*, const ir::Node*> last_change_;  // What quantizes and views read: see Mutations.
  std::vector<ir::Node*> lifted_;                          // Views, in reverse order.
  HashMap<const ir::Node*, Results> results_;              // By lifted view.
  HashSet<const ir::Node*> created_;
  HashMap<ir::Node*, std::vector<std::string>> further_sources_;
  std::vector<std::pair<const ir::Node*, std::string>> missed_;
};

}  // namespace fuselage::quant_lift

#endif  // FUSELAGE_PASSES_QUANT_LIFT_LIFTER_H_
