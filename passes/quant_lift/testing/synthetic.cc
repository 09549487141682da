#include "passes/quant_lift/testing/synthetic.h"

#include <string>
#include <utility>
#include <vector>

namespace fuselage::quant_lift {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;

// Adds nodes that must be valid.
class Builder {
 public:
  explicit Builder(const ir::OpRegistry& ops) : graph_(std::make_unique<ir::Graph>("synthetic", ops)) {
    x = graph_->AddPlaceholder("x", TensorType{DType::kF32, {2, 6}, std::nullopt, Layout::kRowMajor}).value();
  }
  Node* Add(const char* op, std::vector<Node*> operands, AttributeMap attributes = {}) {
    return graph_->AddFunction("n", op, std::move(operands), std::move(attributes)).value();
  }
  Node* Quantize(Node* value) { return Add("quantize", {value}, {{"scales", std::vector<double>{0.5}}}); }
  Node* Reshape(Node* value, Ints shape) { return Add("reshape", {value}, {{"shape", std::move(shape)}}); }
  std::unique_ptr<ir::Graph> Output(std::vector<Node*> results) {
    graph_->AddOutput(std::move(results)).value();
    return std::move(graph_);
  }

  Node* x;

 private:
  std::unique_ptr<ir::Graph> graph_;
};

// A view with two equal quantizes, again and again.
std::unique_ptr<ir::Graph> Blocks(const ir::OpRegistry& ops, int64_t units) {
  Builder b(ops);
  Node* x = b.x;
  for (int64_t i = 0; i < units; ++i) {
    Node* view = b.Reshape(x, {i % 2 ? 2 : 6, -1});
    x = b.Add("add", {b.Add("dequantize", {b.Quantize(view)}), b.Add("dequantize", {b.Quantize(view)})});
  }
  return b.Output({x});
}

std::unique_ptr<ir::Graph> Wide(const ir::OpRegistry& ops, int64_t units) {
  Builder b(ops);
  std::vector<Node*> results;
  for (int64_t i = 0; i < units; ++i) {
    results.push_back(b.Quantize(b.x));
    results.push_back(b.Quantize(b.Reshape(b.x, {12})));
  }
  return b.Output(std::move(results));
}

std::unique_ptr<ir::Graph> Chain(const ir::OpRegistry& ops, int64_t units) {
  Builder b(ops);
  Node* x = b.x;
  for (int64_t i = 0; i < units; ++i) x = b.Reshape(x, {i % 2 ? 2 : 6, -1});
  return b.Output({b.Quantize(x)});
}

std::unique_ptr<ir::Graph> DynamicChain(const ir::OpRegistry& ops, int64_t units) {
  Builder b(ops);
  Node* x = b.x;
  for (int64_t i = 0; i < units; ++i) x = b.Add("permute", {x}, {{"dims", Ints{1, 0}}});
  Node* d = b.Add("dynamic_quantize_symmetric", {x}, {{"dims", Ints{1}}});
  return b.Output({b.Add("getitem", {d}, {{"index", 0}}), b.Add("getitem", {d}, {{"index", 1}})});
}

}  // namespace

// After: x and output; of a block one quantize less; one quantize for all; the quantize; the tuple, its two results,
// and two views for one.
const Synthetic kSynthetics[4] = {
    {"blocks", 6, Blocks, [](int64_t units) { return 2 + 5 * units; }},
    {"wide", 3, Wide, [](int64_t units) { return 3 + units; }},
    {"chain", 1, Chain, [](int64_t units) { return 3 + units; }},
    {"dynamic_chain", 1, DynamicChain, [](int64_t units) { return 5 + 2 * units; }},
};

}  // namespace fuselage::quant_lift
