// The convolutions of a lowered graph, as cuDNN is to run them.
#ifndef FUSELAGE_TOOLS_PEERS_CUDNN_LOWERED_H_
#define FUSELAGE_TOOLS_PEERS_CUDNN_LOWERED_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "tools/peers/cudnn/convolution.h"

namespace fuselage::peers::cudnn {

struct LoweredConvolution {
  const ir::Node* node;
  Convolution convolution;
  // weight [oc, kh, kw, c / groups] of its type; scale [oc] in f32, of i8 alone; bias [oc], in steps of the result as
  // f32 beside i8 and real as f16 beside f16.
  Tensor weight, scale, bias;
};

// All int8.conv2d, in order, `dtype` being i8 or f16. Codes of u8 count as i8 with a zero point of 0, a residual as one
// of the result's scale: what takes the same time, not the same values. Channels of an input that is no multiple of 4
// bytes (i8) or 16 (f16) are filled up, as a network for tensor cores has them. Unimplemented, with the node's name: an
// activation other than ReLU; InvalidArgument: there are none.
absl::StatusOr<std::vector<LoweredConvolution>> LoweredConvolutions(const ir::Graph& graph, DType dtype);

}  // namespace fuselage::peers::cudnn

#endif  // FUSELAGE_TOOLS_PEERS_CUDNN_LOWERED_H_
