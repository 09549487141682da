// What a model's file calls its inputs and outputs; a graph's nodes have names of their own.
#ifndef FUSELAGE_FRONTEND_ONNX_NAMES_H_
#define FUSELAGE_FRONTEND_ONNX_NAMES_H_

#include <string>
#include <vector>

namespace fuselage::onnx {

struct Names {
  std::vector<std::string> inputs;   // One for each placeholder of the graph, in their order.
  std::vector<std::string> outputs;  // One for each operand of the output.
};

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_NAMES_H_
