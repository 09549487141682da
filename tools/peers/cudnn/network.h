// A graph's convolutions on the current CUDA device, one after another and nothing else, each by the engine of cuDNN's
// that was the fastest when all were tried. Only where there is a toolkit.
#ifndef FUSELAGE_TOOLS_PEERS_CUDNN_NETWORK_H_
#define FUSELAGE_TOOLS_PEERS_CUDNN_NETWORK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "tools/peers/cudnn/lowered.h"

namespace fuselage::peers::cudnn {

class Network {
 public:
  virtual ~Network() = default;

  virtual std::string version() const = 0;  // cuDNN's.
  virtual std::string isa() const = 0;      // "sm_90".
  virtual absl::Status Run() = 0;
  virtual int64_t device_ns() const = 0;  // The last run's, by events.
  // What a value of the graph, which a convolution reads or writes, holds now: [n, h, w, c] of the network's type.
  virtual absl::StatusOr<Tensor> Value(const std::string& node) const = 0;
};

// Tries the candidates in processes of their own (trials.h): call it from one thread, before this process uses CUDA.
// `report` gets a line for each that crashed or hung. Unavailable: "no CUDA device: ..."; Unimplemented: cuDNN is not
// installed, or has no engine for a convolution, which is named.
absl::StatusOr<std::unique_ptr<Network>> MakeNetwork(const ir::Graph& graph, DType dtype,
                                                     const std::function<void(const std::string&)>& report);

}  // namespace fuselage::peers::cudnn

#endif  // FUSELAGE_TOOLS_PEERS_CUDNN_NETWORK_H_
