// Converts nodes one after the other: a model's graph, the subgraphs of If,
// Loop and Scan, the bodies of functions.
#ifndef FUSELAGE_FRONTEND_ONNX_IMPORTER_H_
#define FUSELAGE_FRONTEND_ONNX_IMPORTER_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/onnx/builder.h"
#include "frontend/onnx/call.h"
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/structure.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/hash_map.h"

namespace fuselage::onnx {

// What each ONNX name of one body stands for, while someone still reads it.
class Values {
 public:
  // `outer`: where to look for what is not defined here; may be null.
  Values(HashMap<absl::string_view, int> uses, const Values* outer, Budget* budget)
      : remaining_(std::move(uses)), outer_(outer), budget_(budget) {}

  bool IsRead(absl::string_view name) const { return !name.empty() && remaining_.contains(name); }
  // `name` must outlive this.
  void Define(absl::string_view name, Value value);
  // Null where nobody has defined it.
  const Value* GetOrNull(absl::string_view name) const;
  // One reader is done. The memory of a constant that became no parameter is
  // free after its last reader.
  void Done(absl::string_view name);

 private:
  void Release(const Value& value);

  HashMap<absl::string_view, int> remaining_;
  HashMap<absl::string_view, Value> values_;
  const Values* outer_;
  Budget* budget_;
};

class Importer : public Inliner {
 public:
  // All must outlive this.
  Importer(const Structure& structure, const LoadOptions& options, const Payloads& payloads, Builder* builder)
      : structure_(structure), options_(options), payloads_(payloads), builder_(builder) {}

  // The values of the model's outputs; `define` defines the inputs that are no
  // initializers.
  using Define = std::function<absl::Status(Values& values)>;
  absl::StatusOr<std::vector<Value>> Import(const schema::GraphProto& graph, const Define& define);

  absl::StatusOr<std::vector<Value>> Inline(const schema::GraphProto& subgraph, std::vector<Value> inputs) override;

 private:
  struct Scope {
    Values values;
    int opset;
  };

  absl::StatusOr<std::vector<Value>> Run(const schema::GraphProto& graph, int opset, const Values* outer, bool nested,
                                         const Define& define);
  absl::Status AddInitializers(const schema::GraphProto& graph, bool nested, Values& values);
  absl::Status AddNode(const schema::NodeProto& node, Scope& scope);
  absl::Status Convert(const schema::NodeProto& node, Scope& scope, std::vector<Value>* results);
  absl::StatusOr<std::vector<Value>> CallFunction(const Function& function, const schema::NodeProto& node,
                                                  std::vector<Value> operands);
  // Loops and functions unroll: what comes of a small file must have an end.
  absl::Status Count(int64_t bodies, int64_t nodes);

  const Structure& structure_;
  const LoadOptions& options_;
  const Payloads& payloads_;
  Builder* builder_;
  const Scope* scope_ = nullptr;  // Where the node that is being converted stands.
  int depth_ = 0;
  int64_t bodies_ = 0, nodes_ = 0;
};

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_IMPORTER_H_
