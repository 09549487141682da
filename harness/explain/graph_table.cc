#include "harness/explain/graph_table.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/hash_map.h"

namespace fuselage::harness {
namespace {

// "linear(activation="relu")"
std::string Computes(const ir::Node& node) {
  const auto format = [](std::string* out, const auto& attribute) {
    absl::StrAppend(out, attribute.first, "=", attribute.second.ToString());
  };
  const std::string attributes = absl::StrJoin(node.attributes(), ", ", format);
  return attributes.empty() ? node.op()->name : absl::StrCat(node.op()->name, "(", attributes, ")");
}

// What a row says of the node by itself.
std::string Essence(const Results::GraphTable::Row& row) {
  return absl::StrCat(row.kind(), "|", row.target(), "|", absl::StrJoin(row.inputs(), ","), "|",
                      absl::StrJoin(row.sources(), ","));
}

}  // namespace

std::string TargetOf(const ir::Node& node) {
  if (node.kind() == ir::NodeKind::kPlaceholder) return node.name();
  if (node.kind() == ir::NodeKind::kOutput) return "output";
  if (!node.is_call()) return node.target();
  if (node.kind() == ir::NodeKind::kCallModule) return absl::StrCat(node.target(), " = ", Computes(node));
  return node.target() == node.op()->name || node.attributes().empty()
             ? Computes(node)
             : absl::StrCat(node.target(), " = ", Computes(node));
}

Results::GraphTable TableOf(const ir::Graph& graph, absl::string_view after) {
  Results::GraphTable table;
  table.set_after(std::string(after));
  table.set_nodes(graph.num_nodes());
  for (const ir::Node* node : graph.Snapshot()) {
    auto* row = table.add_rows();
    row->set_name(node->name());
    row->set_kind(std::string(ir::NodeKindName(node->kind())));
    row->set_target(TargetOf(*node));
    for (const ir::Node* operand : node->operands()) *row->add_inputs() = operand == nullptr ? "none" : operand->name();
    for (const ir::Node* user : node->users()) *row->add_users() = user->name();
    for (const std::string& source : node->sources()) *row->add_sources() = source;
  }
  return table;
}

void MarkChanges(const Results::GraphTable& before, Results::GraphTable* after) {
  HashMap<std::string, std::string> old;
  for (const auto& row : before.rows()) old[row.name()] = Essence(row);
  HashSet<std::string> kept;
  for (auto& row : *after->mutable_rows()) {
    kept.insert(row.name());
    const auto found = old.find(row.name());
    row.set_change(found == old.end() ? "new" : found->second != Essence(row) ? "changed" : "");
  }
  for (const auto& row : before.rows()) {
    if (!kept.contains(row.name())) *after->add_removed() = row.name();
  }
}

Results::GraphTable Abridged(Results::GraphTable table, int most) {
  const int rows = table.rows_size();
  if (rows <= most) return table;
  const int head = most - most / 2;
  table.mutable_rows()->DeleteSubrange(head, rows - most);
  table.set_left_out(rows - most);
  return table;
}

}  // namespace fuselage::harness
