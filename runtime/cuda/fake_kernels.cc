#include "runtime/cuda/fake_kernels.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "ir/base/check.h"
#include "ir/base/status.h"
#include "ir/ops/register_all.h"
#include "kernels/core/parallel.h"
#include "runtime/reorder.h"

namespace fuselage::runtime::cuda {
namespace {

using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::KernelDesc;
using kernels::LayoutRule;

TensorType RowMajor(TensorType type) {
  type.layout = Layout::kRowMajor;
  return type;
}

// Launches the op's reference evaluation on the fake device; operands and result lie as the description says.
class FakeKernel final : public kernels::Kernel {
 public:
  FakeKernel(const KernelDesc& desc, const ir::OpSchema& schema, std::atomic<int>* launches)
      : Kernel(desc), schema_(schema), desc_(desc), launches_(launches) {
    for (const auto& [name, tensor] : desc.parameters) parameters_.emplace(name, *tensor);
    set_variant("fake");
    set_scratch_bytes(1000);
    set_weight_bytes(10);
  }

 private:
  void Compute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
               const kernels::RunContext& context) const override {
    ++*launches_;
    std::vector<const void*> from;
    for (const ConstBuffer& input : inputs) from.push_back(input.data);
    FakeApi::Launch(context.stream, [this, from, to = outputs[0].data, scratch = context.scratch.data] {
      std::memset(scratch, 0xab, 1000);  // Whatever else lies there must not matter.
      Evaluate(from, to);
    });
  }

  void Evaluate(const std::vector<const void*>& from, void* to) const {
    kernels::Serial serial;
    std::vector<std::vector<Tensor>> values;
    values.reserve(schema_.operands.size());
    std::vector<const std::vector<Tensor>*> operands;
    size_t next = 0;
    for (const ir::OperandSpec& spec : schema_.operands) {
      const auto parameter = parameters_.find(spec.name);
      if (spec.parameter) {
        if (parameter == parameters_.end()) {
          operands.push_back(nullptr);
          continue;
        }
        values.push_back({parameter->second});
      } else {
        const size_t i = next++;
        if (i >= from.size() || from[i] == nullptr) {
          operands.push_back(nullptr);
          continue;
        }
        Tensor tensor(RowMajor(desc_.input(static_cast<int>(i))));
        if (desc_.input(static_cast<int>(i)).layout == Layout::kNhwc) {
          Reorder(desc_.input(static_cast<int>(i)), from[i], tensor.raw_data(), serial);
        } else {
          std::memcpy(tensor.raw_data(), from[i], tensor.byte_size());
        }
        values.push_back({std::move(tensor)});
      }
      operands.push_back(&values.back());
    }
    const TensorType result = RowMajor(desc_.output());
    const auto results = ir::Evaluate(schema_, desc_.attributes, operands, ir::Type(result));
    FUSELAGE_CHECK(results.ok());
    if (desc_.output().layout == Layout::kNhwc) {
      Reorder(result, (*results)[0].raw_data(), to, serial);
    } else {
      std::memcpy(to, (*results)[0].raw_data(), result.byte_size());
    }
  }

  const ir::OpSchema& schema_;
  const KernelDesc desc_;  // But for its parameters, which live in:
  std::map<std::string, Tensor> parameters_;
  std::atomic<int>* const launches_;
};

}  // namespace

void RegisterFakeKernels(const ir::OpRegistry& ops, std::atomic<int>* launches, kernels::KernelRegistry& registry) {
  const std::map<std::string, LayoutRule> rules = {
      {"int8.quantize", LayoutRule::kAnyInput},
      {"int8.dequantize", LayoutRule::kAnyOutput},
      {"int8.lookup", LayoutRule::kAnyInput},
      {"int8.add", LayoutRule::kSame},
      {"int8.relu", LayoutRule::kSame},
      {"int8.linear", LayoutRule::kRowMajor},
      {"clamp", LayoutRule::kRowMajor},
      {"to", LayoutRule::kSame},
      {"conv2d", LayoutRule::kNhwc},
      {"linear", LayoutRule::kRowMajor},
      {"max_pool2d", LayoutRule::kNhwc},
      {"global_avg_pool", LayoutRule::kNhwc},
  };
  for (const ir::OpSchema* op : ops.SortedByName()) {
    const auto rule = rules.find(op->name);
    const bool int8 = absl::StartsWith(op->name, "int8.");
    if (rule == rules.end() && !int8) continue;
    const bool only_f16 = !int8 && op->name != "clamp";
    registry.Register(
        {op->name, rule == rules.end() ? LayoutRule::kNhwc : rule->second,
         [op, launches, only_f16](const KernelDesc& desc) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
           if (only_f16 && desc.input(0).dtype != DType::kF16 && desc.output().dtype != DType::kF16) {
             return absl::UnimplementedError("wanted f16");
           }
           return std::make_unique<FakeKernel>(desc, *op, launches);
         }});
  }
}

absl::StatusOr<std::unique_ptr<FakeBackend>> FakeBackend::Open(FakeApi* api) {
  auto backend = std::unique_ptr<FakeBackend>(new FakeBackend());
  ASSIGN_OR_RETURN(backend->device_, Device::Open(api));
  return backend;
}

FakeBackend::FakeBackend() {
  ops::RegisterAll(ops_);
  RegisterFakeKernels(ops_, &launches_, kernels_);
}

}  // namespace fuselage::runtime::cuda
