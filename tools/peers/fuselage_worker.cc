// This compiler as a contestant: Executable::Run, from the float input to the outputs. MODE is an instruction set
// ("avx2"), "best", or "cuda": then times are the device's.
#include <cmath>

#include "compiler/engine.h"
#include "ir/base/status.h"
#include "kernels/register_all.h"
#include "runtime/cuda/backend.h"
#include "runtime/thread_pool.h"
#include "tools/peers/worker.h"

namespace fuselage::peers {
namespace {

class Fuselage final : public Contestant {
 public:
  static absl::StatusOr<std::unique_ptr<Contestant>> Make(const Job& job) {
    compiler::EngineOptions options;
    std::unique_ptr<runtime::cuda::Backend> cuda;
    if (job.mode == "cuda") {
      ASSIGN_OR_RETURN(cuda, runtime::cuda::OpenBackend());
      options.backend = "cuda";
      options.cuda = cuda.get();
    } else if (job.mode != "best") {
      ASSIGN_OR_RETURN(options.isa, kernels::IsaFromName(job.mode));
      if (!kernels::CpuSupports(options.isa)) {
        return absl::UnimplementedError(absl::StrCat("this CPU does not run ", job.mode));
      }
    }
    auto made = std::make_unique<Fuselage>(job, options.isa, std::move(cuda));
    kernels::RegisterAll(made->kernels_);
    ASSIGN_OR_RETURN(made->engine_,
                     compiler::MakeEngine(*job.graph, job.inputs[0].dim(0), made->kernels_, &made->pool_, options));
    return made;
  }

  Fuselage(const Job& job, kernels::Isa isa, std::unique_ptr<runtime::cuda::Backend> cuda)
      : isa_(isa), cuda_(std::move(cuda)), pool_(job.threads), inputs_(job.inputs) {}

  std::string version() const override { return "this"; }
  std::string isa() const override {
    return cuda_ != nullptr ? cuda_->device().arch() : std::string(kernels::IsaName(isa_));
  }
  absl::Status Run() override {
    ASSIGN_OR_RETURN(outputs_, engine_->Run(inputs_));
    return absl::OkStatus();
  }
  std::optional<int64_t> device_ns() const override {
    const std::optional<double> ms = engine_->device_ms();
    return ms.has_value() ? std::optional<int64_t>(std::llround(1e6 * *ms)) : std::nullopt;
  }
  std::vector<double> Outputs() const override { return ToDoubles((*outputs_)[0]); }

 private:
  const kernels::Isa isa_;
  const std::unique_ptr<runtime::cuda::Backend> cuda_;  // Null: on the CPU.
  runtime::ThreadPool pool_;
  kernels::KernelRegistry kernels_;
  std::unique_ptr<compiler::Engine> engine_;
  const std::vector<Tensor> inputs_;
  const std::vector<Tensor>* outputs_ = nullptr;
};

}  // namespace
}  // namespace fuselage::peers

int main(int argc, char** argv) { return fuselage::peers::Serve(argc, argv, fuselage::peers::Fuselage::Make); }
