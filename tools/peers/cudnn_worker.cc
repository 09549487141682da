// cuDNN's convolutions on a CUDA device as a contestant, by its graph API. MODE is "int8" or "fp16".
#include <iostream>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "tools/peers/cudnn/network.h"
#include "tools/peers/worker.h"

namespace fuselage::peers {
namespace {

class Cudnn final : public Contestant {
 public:
  static absl::StatusOr<std::unique_ptr<Contestant>> Make(const Job& job) {
    if (job.mode != "int8" && job.mode != "fp16") {
      return absl::InvalidArgumentError(absl::StrCat("mode ", job.mode, ", want int8 or fp16"));
    }
    ASSIGN_OR_RETURN(auto network, cudnn::MakeNetwork(*job.graph, job.mode == "int8" ? DType::kI8 : DType::kF16,
                                                      [](const std::string& line) { std::cerr << line << std::endl; }));
    return std::make_unique<Cudnn>(std::move(network));
  }

  explicit Cudnn(std::unique_ptr<cudnn::Network> network) : network_(std::move(network)) {}

  std::string version() const override { return network_->version(); }
  std::string isa() const override { return network_->isa(); }
  absl::Status Run() override { return network_->Run(); }
  std::vector<double> Outputs() const override { return {}; }
  std::optional<int64_t> device_ns() const override { return network_->device_ns(); }

 private:
  const std::unique_ptr<cudnn::Network> network_;
};

}  // namespace
}  // namespace fuselage::peers

int main(int argc, char** argv) { return fuselage::peers::Serve(argc, argv, fuselage::peers::Cudnn::Make); }
