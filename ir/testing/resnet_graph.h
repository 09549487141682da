// A deep residual network with tiny tensors: what the passes cost as the number of nodes grows.
#ifndef FUSELAGE_IR_TESTING_RESNET_GRAPH_H_
#define FUSELAGE_IR_TESTING_RESNET_GRAPH_H_

#include <cstdint>
#include <memory>

#include "ir/graph.h"

namespace fuselage::testing {

// At least `nodes` nodes (and fewer than 32 more) in residual blocks
//   relu(x + bn(conv(relu(bn(conv(x))))))
// on f32[1,4,2,2], one behind the other; then a global average pool, a flatten and a linear. Blocks are spelled in turn
// as torch.fx traces them (modules, operator.iadd, method relu) and as ONNX has them (functions, weights from
// get_attr). `ops` must hold the ops of ir/ops.
std::unique_ptr<ir::Graph> ResNetGraph(int64_t nodes, const ir::OpRegistry& ops);

}  // namespace fuselage::testing

#endif  // FUSELAGE_IR_TESTING_RESNET_GRAPH_H_
