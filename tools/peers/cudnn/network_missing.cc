#include "tools/peers/cudnn/network.h"

namespace fuselage::peers::cudnn {

absl::StatusOr<std::unique_ptr<Network>> MakeNetwork(const ir::Graph&, DType,
                                                     const std::function<void(const std::string&)>&) {
  return absl::UnimplementedError("no CUDA device: this was built without the CUDA toolkit");
}

}  // namespace fuselage::peers::cudnn
