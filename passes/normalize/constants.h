// Constant operands, and the parameters that modules get from them.
#ifndef FUSELAGE_PASSES_NORMALIZE_CONSTANTS_H_
#define FUSELAGE_PASSES_NORMALIZE_CONSTANTS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ir/graph.h"

namespace fuselage::normalize {

// A get_attr, or quantize, dequantize and the transpose of a matrix over constants only.
bool IsConstant(const ir::Node& node);

struct Constant {
  std::shared_ptr<const Tensor> tensor;  // Codes with QuantParams in their type where it comes from a dequantize.
  std::string key;                       // Equal keys, equal tensors: by it tied weights stay tied.
  std::string origin;                    // The parameter that it comes from.
  bool as_stored = false;                // The tensor is the parameter `origin` itself.
};

// The value of a constant node. u8 codes around 128 become i8 codes around 0. InvalidArgument where its quantization
// parameters are no valid ones.
absl::StatusOr<Constant> ConstantOf(const ir::Node& node);

// [a, b] -> [b, a]; the axis of quantization parameters follows.
Constant Transposed(const Constant& matrix);
// Every value times `factor`; of an f32 constant.
Constant Scaled(const Constant& constant, double factor);
// Those of a constant of as many elements as `shape`, or its only one repeated. Scales of an axis stay with it.
Constant Reshaped(const Constant& constant, const Shape& shape);

// Gives each constant one parameter of the graph, however often it is asked for.
class ParameterTable {
 public:
  explicit ParameterTable(ir::Graph& graph) : graph_(graph) {}

  // The name of the parameter; `wish` names a new one.
  std::string Intern(const Constant& constant, const std::string& wish);

 private:
  ir::Graph& graph_;
  std::map<std::string, std::string> by_key_;
};

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_CONSTANTS_H_
