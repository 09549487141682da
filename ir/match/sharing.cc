#include "ir/match/sharing.h"

#include "absl/strings/str_cat.h"

namespace fuselage::match {

using ir::Node;

std::string SharedModule(const Node& call) {
  if (call.module() == nullptr || call.module()->call_sites.size() <= 1) return "";
  const Node* other = nullptr;  // The first by name: the set has no stable order.
  for (const Node* site : call.module()->call_sites) {
    if (site != &call && (other == nullptr || site->name() < other->name())) other = site;
  }
  return absl::StrCat("module @", call.module()->path, " is also called by %", other->name());
}

std::string SharedBesides(const Node& producer, const Node& user) {
  if (!producer.has_one_use()) {
    for (const ir::Use& use : producer.uses()) {
      if (use.user->kind() == ir::NodeKind::kOutput) return absl::StrCat("%", producer.name(), " is a graph output");
    }
    for (const ir::Use& use : producer.uses()) {
      if (use.user != &user) return absl::StrCat("%", producer.name(), " is also read by %", use.user->name());
    }
    return absl::StrCat("%", producer.name(), " is read twice by %", user.name());
  }
  return SharedModule(producer);
}

}  // namespace fuselage::match
