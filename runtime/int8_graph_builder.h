// For tests: builds graphs of INT8 operators.
#ifndef FUSELAGE_RUNTIME_INT8_GRAPH_BUILDER_H_
#define FUSELAGE_RUNTIME_INT8_GRAPH_BUILDER_H_

#include <string>
#include <utility>
#include <vector>

#include "runtime/testing.h"

namespace fuselage::runtime {

// Operators on codes of one element type. Unsigned codes have zero point 128 before a ReLU and 0 after; signed codes
// -3 and -128. Weights are seeded.
class Int8GraphBuilder : public GraphBuilder {
 public:
  Int8GraphBuilder(const ir::OpRegistry& ops, DType dtype) : GraphBuilder(ops), dtype_(dtype) {}

  AttributeMap Out(float scale, bool relu = false) const;
  static AttributeMap FloatOut() { return {{"out_dtype", DType::kF32}}; }

  ir::Node* Quantized(Shape shape) { return Quantize(Input(std::move(shape))); }
  ir::Node* Quantize(ir::Node* x) { return Call("int8.quantize", {x}, Out(1.0f / 128)); }
  ir::Node* Dequantize(ir::Node* x) { return Call("int8.dequantize", {x}); }

  struct ConvParams {
    int64_t channels = 8, kernel = 3, stride = 1, padding = 1, dilation = 1, groups = 1;
    bool bias = true, relu = false, float_output = false;
  };
  ir::Node* Conv(ir::Node* x, const ConvParams& params, ir::Node* residual = nullptr);
  ir::Node* ConvMaxPool(ir::Node* x, const ConvParams& params);
  ir::Node* Linear(ir::Node* x, int64_t outputs, bool float_output);
  ir::Node* GlobalAveragePoolLinear(ir::Node* x, int64_t outputs, bool float_output);
  ir::Node* Add(ir::Node* a, ir::Node* b, bool relu = false);
  ir::Node* MaxPool(ir::Node* x);
  ir::Node* AveragePool(ir::Node* x);
  ir::Node* GlobalAveragePool(ir::Node* x) { return Call("int8.global_avg_pool", {x}, Out(0.02f)); }
  ir::Node* Relu(ir::Node* x) { return Call("int8.relu", {x}, Out(0.03f, true)); }

  // ResNet18 (He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, table 1) on 224 x 224 pictures of
  // three channels, as the passes leave it: shortcuts added by the convolutions. Its logits.
  ir::Node* ResNet18(int64_t batch, int64_t classes);
  // Its eight blocks, between stem and head.
  ir::Node* ResNet18Blocks(ir::Node* x);

  DType dtype() const { return dtype_; }

 private:
  AttributeMap ConvAttributes(const ConvParams& params) const;
  std::vector<std::pair<std::string, Tensor>> ConvParameters(ir::Node* x, const ConvParams& params);
  std::vector<std::pair<std::string, Tensor>> Parameters(Shape shape, bool bias);

  const DType dtype_;
  uint64_t seed_ = 1000;
};

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_INT8_GRAPH_BUILDER_H_
