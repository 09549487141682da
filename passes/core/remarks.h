// Remarks: what a pass did, and for each near miss what it left alone and why (after LLVM's optimization remarks).
#ifndef FUSELAGE_PASSES_CORE_REMARKS_H_
#define FUSELAGE_PASSES_CORE_REMARKS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/graph.h"

namespace fuselage::passes {

enum class RemarkKind {
  kApplied,  // One match rewritten; the report counts these.
  kMissed,   // A near miss, with its reason.
  kNote,     // A measurement or a warning: "layer1.0.conv1: SNR 43.1 dB".
  kProcess,  // How this process came to it, which is nothing about the network: "ranges from cache <file>".
};

absl::string_view RemarkKindName(RemarkKind kind);  // "applied", "missed", "note", "process"

struct Remark {
  RemarkKind kind;
  std::string pass;
  std::string node;  // Without "%"; empty where it is about the whole graph.
  std::string message;
};

class Remarks {
 public:
  void Applied(const ir::Node& node, std::string message) {
    Add(RemarkKind::kApplied, node.name(), std::move(message));
  }
  void Missed(const ir::Node& node, std::string message) { Add(RemarkKind::kMissed, node.name(), std::move(message)); }
  void Note(const ir::Node& node, std::string message) { Add(RemarkKind::kNote, node.name(), std::move(message)); }
  void Note(std::string message) { Add(RemarkKind::kNote, "", std::move(message)); }

  void Process(std::string message) { Add(RemarkKind::kProcess, "", std::move(message)); }

  void set_pass(absl::string_view pass) { pass_ = std::string(pass); }
  const std::vector<Remark>& list() const { return list_; }
  std::vector<Remark> Take() { return std::move(list_); }
  int CountApplied() const;

  // "conv_bn: applied %bn1: folded into %conv1 (module @conv1)", one a line.
  std::string ToString() const;

 private:
  void Add(RemarkKind kind, std::string node, std::string message) {
    list_.push_back({kind, pass_, std::move(node), std::move(message)});
  }
  std::string pass_;
  std::vector<Remark> list_;
};

}  // namespace fuselage::passes

#endif  // FUSELAGE_PASSES_CORE_REMARKS_H_
