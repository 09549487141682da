// oneDNN as a contestant. MODE is "network" or "convolutions". ONEDNN_MAX_CPU_ISA in the environment bounds the
// instructions that it uses.
#include <omp.h>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "tools/peers/onednn_network.h"
#include "tools/peers/worker.h"

namespace fuselage::peers {
namespace {

std::string IsaName() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41: return "sse41";
    case dnnl::cpu_isa::avx: return "avx";
    case dnnl::cpu_isa::avx2: return "avx2";
    case dnnl::cpu_isa::avx2_vnni: return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core: return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni: return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16: return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx: return "avx512_core_amx";
    default: return "other";
  }
}

class Onednn final : public Contestant {
 public:
  static absl::StatusOr<std::unique_ptr<Contestant>> Make(const Job& job) {
    if (job.mode != "network" && job.mode != "convolutions") {
      return absl::InvalidArgumentError(absl::StrCat("mode ", job.mode, ", want network or convolutions"));
    }
    if (job.inputs.size() != 1) {
      return absl::UnimplementedError(absl::StrCat("the network has ", job.inputs.size(), " inputs, want one"));
    }
    omp_set_num_threads(job.threads);
    const auto part = job.mode == "network" ? OnednnNetwork::Part::kNetwork : OnednnNetwork::Part::kConvolutions;
    ASSIGN_OR_RETURN(auto network, OnednnNetwork::Create(*job.graph, part));
    network->SetInput(job.inputs[0]);
    return std::make_unique<Onednn>(std::move(network));
  }

  explicit Onednn(std::unique_ptr<OnednnNetwork> network) : network_(std::move(network)) {}

  std::string version() const override {
    const dnnl_version_t* version = dnnl_version();
    return absl::StrCat(version->major, ".", version->minor, ".", version->patch);
  }
  std::string isa() const override { return IsaName(); }
  absl::Status Run() override { return network_->Run(); }
  std::vector<double> Outputs() const override {
    const std::optional<Tensor> output = network_->Output();
    return output.has_value() ? ToDoubles(*output) : std::vector<double>();
  }

 private:
  const std::unique_ptr<OnednnNetwork> network_;
};

}  // namespace
}  // namespace fuselage::peers

int main(int argc, char** argv) { return fuselage::peers::Serve(argc, argv, fuselage::peers::Onednn::Make); }
