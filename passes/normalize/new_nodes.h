// Nodes that are put in front of another one, which the last of them replaces.
#ifndef FUSELAGE_PASSES_NORMALIZE_NEW_NODES_H_
#define FUSELAGE_PASSES_NORMALIZE_NEW_NODES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/graph.h"

namespace fuselage::normalize {

class NewNodes {
 public:
  explicit NewNodes(ir::Node& before) : before_(before), graph_(before.graph()) {}

  const std::vector<ir::Node*>& nodes() const { return nodes_; }

  absl::StatusOr<ir::Node*> Constant(Tensor value, absl::string_view name) {
    const std::string parameter =
        graph_.AddParameter(absl::StrCat(before_.name(), ".", name), std::make_shared<const Tensor>(std::move(value)));
    ASSIGN_OR_RETURN(ir::Node * constant, graph_.AddGetAttr(parameter, parameter, &before_));
    nodes_.push_back(constant);
    return constant;
  }

  absl::StatusOr<ir::Node*> Add(absl::string_view op, std::vector<ir::Node*> operands, AttributeMap attributes = {}) {
    ASSIGN_OR_RETURN(ir::Node * call,
                     graph_.AddFunction(before_.name(), op, std::move(operands), std::move(attributes), &before_));
    nodes_.push_back(call);
    return call;
  }

 private:
  ir::Node& before_;
  ir::Graph& graph_;
  std::vector<ir::Node*> nodes_;
};

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_NEW_NODES_H_
