// Graph => ONNX model, opset 13 or as new as its operators ask for (Gelu: 20). A quantized graph becomes QuantizeLinear
// and DequantizeLinear around float operators (the "QDQ" form that other runtimes read): codes stay codes, i8 weights
// keep a scale for each channel.
//
//   conv2d(%x, %r; activation="relu") => Conv, Add, Relu       another activation likewise
//   fused_elementwise(%x, ...)        => an operator for each step
//   a quantized parameter             => its codes, DequantizeLinear
//
// Declines (Unimplemented, naming node and op) what ONNX cannot say: operators/ has a row for each op, with its ONNX
// operator or the reason. Graphs that are already lowered to int8.* kernels are among them.
#ifndef FUSELAGE_FRONTEND_ONNX_WRITER_WRITER_H_
#define FUSELAGE_FRONTEND_ONNX_WRITER_WRITER_H_

#include <string>

#include "absl/status/statusor.h"
#include "frontend/onnx/names.h"
#include "ir/graph.h"

namespace fuselage::onnx::writer {

struct WriteOptions {
  // Names dimension 0 of the inputs and outputs, which so takes any size; empty: it stays what it is in the graph.
  std::string batch;
  // How the bias of a conv or linear of codes is written. kInt32: as codes with the scale s_x*s_w[c], behind
  // DequantizeLinear, which onnxruntime wants before it runs the layer in integers; a bias that does not fit stays f32.
  enum class Bias { kFloat, kInt32 } bias = Bias::kFloat;
  // What inputs and outputs are called, one for each; what was there before is numbered. Empty: as their nodes.
  Names names;
};

// The serialized model. Values keep the names of their nodes, but for inputs and outputs, and what would share a name
// with those.
absl::StatusOr<std::string> Write(const ir::Graph& graph, const WriteOptions& options = {});

}  // namespace fuselage::onnx::writer

#endif  // FUSELAGE_FRONTEND_ONNX_WRITER_WRITER_H_
