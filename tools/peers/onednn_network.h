// A lowered graph as oneDNN primitives: each int8.* call becomes the primitive with the same meaning, u8 or i8
// activations in NHWC, i8 weights in the layout that oneDNN prefers, packed when the network is made.
//
//   int8.conv2d     convolution: bias, residual as a sum post-op (in place where it is the residual's last use), ReLU
//   int8.linear     inner product
//   int8.max_pool2d, int8.global_avg_pool pooling
//   int8.quantize   reorder
//
// Its rounding is oneDNN's own: results are close to ours, not the same bits. oneDNN's programming model and the
// meaning of scales and zero points: oneapi-src.github.io/oneDNN/v2.6, "Primitive Attributes: Quantization".
#ifndef FUSELAGE_TOOLS_PEERS_ONEDNN_NETWORK_H_
#define FUSELAGE_TOOLS_PEERS_ONEDNN_NETWORK_H_

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace fuselage::peers {

class OnednnNetwork {
 public:
  enum class Part {
    kNetwork,
    kConvolutions,  // The convolutions of the network, in its order and on its buffers, and nothing else.
  };

  // Plans for as many threads as OpenMP then has. Unimplemented names the node that has no primitive here (of the
  // whole network: its convolutions alone need no other op).
  static absl::StatusOr<std::unique_ptr<OnednnNetwork>> Create(const ir::Graph& graph, Part part);

  // For a whole network; with convolutions alone it does nothing. The tensor has the type of the graph's placeholder.
  void SetInput(const Tensor& input);
  absl::Status Run();
  // For a whole network whose output is a matrix.
  std::optional<Tensor> Output() const;

 private:
  class Builder;

  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };

  OnednnNetwork() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<Step> steps_;
  std::vector<dnnl::memory> buffers_;  // They hold activations, which several steps share.
  dnnl::memory input_, output_;
  TensorType output_type_;
};

}  // namespace fuselage::peers

#endif  // FUSELAGE_TOOLS_PEERS_ONEDNN_NETWORK_H_
