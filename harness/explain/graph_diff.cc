#include "harness/explain/graph_diff.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/base/hash_map.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

using Fields = std::map<std::string, std::string>;

struct Node {
  std::string name, op, type;
  std::vector<std::string> operands;  // "none" where one is absent.
  Fields attributes, parameters;

  // All but the name and the operands.
  bool ComputesLike(const Node& other) const {
    return op == other.op && type == other.type && attributes == other.attributes && parameters == other.parameters;
  }
  std::string ToString() const {
    std::vector<std::string> arguments;
    for (const std::string& operand : operands) arguments.push_back(operand == "none" ? operand : "%" + operand);
    for (const Fields* fields : {&attributes, &parameters}) {
      for (const auto& [name, value] : *fields) arguments.push_back(absl::StrCat(name, "=", value));
    }
    return absl::StrCat("%", name, ": ", type, " = ", op, "(", absl::StrJoin(arguments, ", "), ")");
  }
};

struct Graph {
  std::vector<Node> nodes;
  HashMap<std::string, int> index;  // By name.
};

// The position of `wanted` outside of brackets and quotes, from `begin` on; npos where it is not.
size_t FindOutside(absl::string_view text, absl::string_view wanted, size_t begin = 0) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = begin; i < text.size(); ++i) {
    if (!quoted && depth == 0 && absl::StartsWith(text.substr(i), wanted)) return i;
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '(' || c == '[' || c == '<' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '>' || c == '}') {
      --depth;
    }
  }
  return absl::string_view::npos;
}

std::vector<absl::string_view> Items(absl::string_view list) {
  std::vector<absl::string_view> items;
  while (!absl::StripAsciiWhitespace(list).empty()) {
    const size_t comma = FindOutside(list, ",");
    items.push_back(absl::StripAsciiWhitespace(list.substr(0, comma)));
    if (comma == absl::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return items;
}

// "op(items)..." in two; false: it is not of that form.
bool SplitCall(absl::string_view call, absl::string_view* head, absl::string_view* items) {
  const size_t open = call.find('(');
  if (open == absl::string_view::npos) return false;
  const size_t close = FindOutside(call, ")", open + 1);
  if (close == absl::string_view::npos) return false;
  *head = call.substr(0, open);
  *items = call.substr(open + 1, close - open - 1);
  return true;
}

// "head: type = rest" or "head = rest" in its parts.
bool SplitDefinition(absl::string_view line, absl::string_view* head, absl::string_view* type,
                     absl::string_view* rest) {
  const size_t equals = FindOutside(line, " = ");
  if (equals == absl::string_view::npos) return false;
  const size_t colon = FindOutside(line.substr(0, equals), ": ");
  *head = line.substr(0, std::min(colon, equals));
  *type = colon == absl::string_view::npos ? "" : line.substr(colon + 2, equals - colon - 2);
  *rest = line.substr(equals + 3);
  return true;
}

class Reader {
 public:
  absl::StatusOr<Graph> Read(const GraphText& in) {
    int number = 0;
    bool begun = false, ended = false;
    for (absl::string_view line : absl::StrSplit(in.text, '\n')) {
      ++number;
      line = absl::StripAsciiWhitespace(line);
      if (line.empty() || absl::StartsWith(line, "//")) continue;
      const bool good = !begun ? absl::StartsWith(line, "graph @") : line == "}" ? !ended : !ended && ReadLine(line);
      ended = ended || (begun && line == "}");
      begun = true;
      if (good) continue;
      return absl::InvalidArgumentError(absl::StrCat(in.file, ":", number, ": found '", line.substr(0, 60),
                                                     "', wanted a line of a graph's text (ir/text.h)"));
    }
    if (ended) return std::move(graph_);
    return absl::InvalidArgumentError(absl::StrCat(in.file, ":", number, ": the graph has no end"));
  }

  Graph Read(const Results::GraphHistory& history, const Results::GraphHistory::Step& step) {
    for (const int index : step.nodes()) {
      if (index < 0 || index >= history.nodes_size()) continue;
      const Results::GraphHistory::Node& in = history.nodes(index);
      Node node;
      node.name = in.name();
      node.op = in.op().empty() ? in.kind() : in.op();
      node.type = in.type();
      node.operands = {in.inputs().begin(), in.inputs().end()};
      for (const std::string& weight : in.weights()) {
        const size_t space = std::min(weight.find(' '), weight.size());
        node.parameters[weight.substr(0, space)] = weight.substr(space);
      }
      // "linear(bias=true)", or "fc1 = linear(bias=true)".
      const size_t named = in.target().find(absl::StrCat(" = ", in.op()));
      absl::string_view computes = in.target(), op, attributes;
      if (named != std::string::npos) computes.remove_prefix(named + 3);
      if (SplitCall(computes, &op, &attributes)) AddOperands(attributes, &node);
      Add(std::move(node));
    }
    return std::move(graph_);
  }

 private:
  bool ReadLine(absl::string_view line) {
    absl::string_view head, type, rest, items;
    if (absl::StartsWith(line, "output(")) {
      if (!SplitCall(line, &head, &items)) return false;
      Node node;
      node.name = node.op = "output";
      AddOperands(items, &node);
      return Add(std::move(node));
    }
    if (!SplitDefinition(line, &head, &type, &rest)) return false;
    if (absl::ConsumePrefix(&head, "param @")) {
      parameters_[std::string(head)] = absl::StrCat(type, " ", rest);
      return true;
    }
    if (absl::ConsumePrefix(&head, "module @")) {
      Node module;
      if (!SplitCall(rest, &type, &items)) return false;
      module.op = std::string(type);
      AddOperands(items, &module);
      modules_[std::string(head)] = std::move(module);
      return true;
    }
    if (!absl::ConsumePrefix(&head, "%")) return false;
    Node node;
    if (absl::ConsumePrefix(&rest, "call_module @")) {
      if (!SplitCall(rest, &rest, &items)) return false;
      const auto module = modules_.find(std::string(rest));
      if (module == modules_.end()) return false;
      node = module->second;
      AddOperands(items, &node);
    } else if (absl::ConsumePrefix(&rest, "get_attr @")) {
      node.op = "get_attr";
      node.parameters["value"] = Parameter(rest.substr(0, rest.find(' ')));
    } else if (absl::ConsumePrefix(&rest, "call_function ") || absl::ConsumePrefix(&rest, "call_method ")) {
      if (!SplitCall(rest, &rest, &items)) return false;
      node.op = std::string(rest);
      AddOperands(items, &node);
    } else if (absl::StartsWith(rest, "placeholder")) {
      node.op = "placeholder";
    } else {
      return false;
    }
    node.name = std::string(head);
    node.type = std::string(type);
    return Add(std::move(node));
  }

  bool Add(Node node) {
    const bool added = graph_.index.emplace(node.name, static_cast<int>(graph_.nodes.size())).second;
    graph_.nodes.push_back(std::move(node));
    return added;
  }

  std::string Parameter(absl::string_view name) const {
    const auto found = parameters_.find(std::string(name));
    return found == parameters_.end() ? absl::StrCat("@", name) : found->second;
  }

  void AddOperands(absl::string_view items, Node* node) const {
    for (const absl::string_view item : Items(items)) {
      const size_t equals = FindOutside(item, "=");
      if (equals == absl::string_view::npos) {
        node->operands.emplace_back(absl::StripPrefix(item, "%"));
        continue;
      }
      absl::string_view value = item.substr(equals + 1);
      const std::string name(item.substr(0, equals));
      if (absl::ConsumePrefix(&value, "@")) {
        node->parameters[name] = Parameter(value);
      } else {
        node->attributes[name] = std::string(value);
      }
    }
  }

  Graph graph_;
  HashMap<std::string, std::string> parameters_;  // Type and values, as written.
  HashMap<std::string, Node> modules_;
};

class Differ {
 public:
  Differ(const Graph& before, const Graph& after)
      : before_(before), after_(after), partner_(before.nodes.size(), -1), taken_(after.nodes.size(), false) {}

  GraphDifference Run(absl::string_view before_file, absl::string_view after_file) {
    MatchByName();
    MatchByStructure();
    absl::StrAppend(&found_.text, "--- ", before_file, ": ", before_.nodes.size(), " nodes\n+++ ", after_file, ": ",
                    after_.nodes.size(), " nodes\n");
    for (size_t i = 0; i < before_.nodes.size(); ++i) {
      if (partner_[i] < 0) {
        ++found_.removed;
        found_.result.add_nodes()->set_before(before_.nodes[i].name);
        absl::StrAppend(&found_.text, "- ", before_.nodes[i].ToString(), "\n");
      } else {
        Compare(before_.nodes[i], after_.nodes[partner_[i]]);
      }
    }
    for (size_t i = 0; i < after_.nodes.size(); ++i) {
      if (taken_[i]) continue;
      ++found_.added;
      found_.result.add_nodes()->set_now(after_.nodes[i].name);
      absl::StrAppend(&found_.text, "+ ", after_.nodes[i].ToString(), "\n");
    }
    absl::StrAppend(&found_.text, found_.added, " added, ", found_.removed, " removed, ", found_.changed, " changed, ",
                    found_.renamed, " renamed\n");
    return std::move(found_);
  }

 private:
  void Match(int before, int after) {
    partner_[before] = after;
    taken_[after] = true;
  }

  void MatchByName() {
    for (size_t i = 0; i < before_.nodes.size(); ++i) {
      const auto found = after_.index.find(before_.nodes[i].name);
      if (found != after_.index.end()) Match(static_cast<int>(i), found->second);
    }
  }

  // In topological order, so that operands are matched before those that read them.
  void MatchByStructure() {
    HashMap<std::string, std::vector<int>> by_op;  // Those of `after` that are free, in reverse.
    for (int i = static_cast<int>(after_.nodes.size()) - 1; i >= 0; --i) {
      if (!taken_[i]) by_op[after_.nodes[i].op].push_back(i);
    }
    for (size_t i = 0; i < before_.nodes.size(); ++i) {
      const Node& node = before_.nodes[i];
      if (partner_[i] >= 0) continue;
      std::vector<int>& free = by_op[node.op];
      const auto match = std::find_if(free.rbegin(), free.rend(), [&](int j) {
        return node.ComputesLike(after_.nodes[j]) && SameOperands(node, after_.nodes[j]);
      });
      if (match == free.rend()) continue;
      Match(static_cast<int>(i), *match);
      free.erase(std::next(match).base());
    }
  }

  // What an operand of `before` is called in `after`.
  std::string InAfter(const std::string& operand) const {
    const auto found = before_.index.find(operand);
    if (found == before_.index.end() || partner_[found->second] < 0) return operand;
    return after_.nodes[partner_[found->second]].name;
  }

  bool SameOperands(const Node& before, const Node& after) const {
    return before.operands.size() == after.operands.size() &&
           std::equal(before.operands.begin(), before.operands.end(), after.operands.begin(),
                      [&](const std::string& a, const std::string& b) { return InAfter(a) == b; });
  }

  void Compare(const Node& before, const Node& after) {
    std::vector<std::string> changes;
    const auto change = [&](absl::string_view what, absl::string_view old, absl::string_view now) {
      if (old != now) changes.push_back(absl::StrCat(what, ": ", old, " -> ", now));
    };
    change("op", before.op, after.op);
    change("type", before.type, after.type);
    for (size_t i = 0; i < std::max(before.operands.size(), after.operands.size()); ++i) {
      const std::string old = i < before.operands.size() ? InAfter(before.operands[i]) : "(absent)";
      const std::string now = i < after.operands.size() ? after.operands[i] : "(absent)";
      change(absl::StrCat("operand ", i), old, now);
    }
    ChangedFields("attribute", before.attributes, after.attributes, change);
    ChangedFields("parameter", before.parameters, after.parameters, change);
    const bool renamed = before.name != after.name;
    if (renamed || !changes.empty()) {
      Results::GraphDifference::Node* node = found_.result.add_nodes();
      node->set_before(before.name);
      node->set_now(after.name);
      *node->mutable_changes() = {changes.begin(), changes.end()};
    }
    if (changes.empty()) {
      if (renamed) absl::StrAppend(&found_.text, "= %", before.name, " is called %", after.name, "\n");
      found_.renamed += renamed;
      return;
    }
    ++found_.changed;
    absl::StrAppend(&found_.text, "~ %", before.name, "\n    ", absl::StrJoin(changes, "\n    "), "\n");
  }

  template <typename Change>
  static void ChangedFields(absl::string_view kind, const Fields& before, const Fields& after, Change change) {
    Fields all = before;
    all.insert(after.begin(), after.end());
    for (const auto& [name, value] : all) {
      const auto text = [&, name = name](const Fields& fields) {
        const auto found = fields.find(name);
        return found == fields.end() ? std::string("(default)") : found->second;
      };
      change(absl::StrCat(kind, " ", name), text(before), text(after));
    }
  }

  const Graph &before_, &after_;
  std::vector<int> partner_;  // By node of `before`: its node of `after`; -1: none.
  std::vector<bool> taken_;   // By node of `after`.
  GraphDifference found_;
};

// The step of the graph that the pass `after` of `results` left; -1: there is no such pass. One that changed nothing
// left no graph of its own: the last one before it is the same.
int StepAfter(const Results& results, absl::string_view after) {
  std::vector<absl::string_view> order = {"input"};
  for (const Results::Pass& pass : results.passes()) order.push_back(pass.name());
  const auto until = std::find(order.begin(), order.end(), after);
  const auto& steps = results.history().steps();
  for (int i = until == order.end() ? -1 : steps.size() - 1; i >= 0; --i) {
    if (std::find(order.begin(), order.end(), steps[i].after()) <= until) return i;
  }
  return -1;
}

}  // namespace

Results::GraphDifferences DiffHistories(const Results& before, const Results& now) {
  Results::GraphDifferences differences;
  const auto &old_steps = before.history().steps(), &steps = now.history().steps();
  for (int i = 0; i < steps.size(); ++i) {
    const int old = i + 1 == steps.size() ? old_steps.size() - 1 : StepAfter(before, steps[i].after());
    if (old < 0) continue;
    const Graph a = Reader().Read(before.history(), old_steps[old]), b = Reader().Read(now.history(), steps[i]);
    Results::GraphDifference& difference = *differences.add_graphs() = Differ(a, b).Run("", "").result;
    difference.set_before(old);
    difference.set_now(i);
  }
  return differences;
}

absl::StatusOr<GraphDifference> DiffGraphs(const GraphText& before, const GraphText& after) {
  ASSIGN_OR_RETURN(const Graph a, Reader().Read(before));
  ASSIGN_OR_RETURN(const Graph b, Reader().Read(after));
  return Differ(a, b).Run(before.file, after.file);
}

}  // namespace fuselage::harness
