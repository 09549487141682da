#include "kernels/cuda/testing/testing.h"

#include <algorithm>
#include <string>

#include "kernels/core/testing/testing.h"
#include "kernels/cuda/device_buffer.h"
#include "third_party/cuda/testing/no_gpu.h"

namespace fuselage::cuda {

void CudaTest::SetUp() {
  if (!CurrentDevice().ok()) FUSELAGE_NO_GPU("no CUDA device");
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateRegistered(RegisterFunction* f,
                                                                  const kernels::KernelDesc& desc) {
  kernels::KernelRegistry registry;
  f(registry);
  const kernels::KernelEntry* entry = registry.FindOrNull(desc.op);
  if (entry == nullptr) return absl::NotFoundError(desc.op);
  return entry->create(desc);
}

void ExpectBytesOf(const std::function<CreateFunction>& cpu,
                   const absl::StatusOr<std::unique_ptr<kernels::Kernel>>& cuda, const kernels::KernelDesc& desc,
                   absl::Span<const Tensor* const> inputs) {
  const std::string what = ToString(desc.input(0)) + " to " + ToString(desc.output());
  ASSERT_TRUE(cuda.ok()) << cuda.status() << " " << what;
  const auto found = RunCudaKernel(**cuda, desc, inputs);
  ASSERT_TRUE(found.ok()) << found.status() << " " << what;

  const auto reference = cpu(desc);
  ASSERT_TRUE(reference.ok()) << reference.status() << " " << what;
  std::vector<kernels::ConstBuffer> in;
  for (const Tensor* input : inputs) {
    in.push_back(input == nullptr ? kernels::ConstBuffer()
                                  : kernels::ConstBuffer{input->raw_data(), input->byte_size()});
  }
  std::vector<std::unique_ptr<kernels::GuardedMemory>> wanted;
  std::vector<kernels::Buffer> out;
  for (const TensorType& type : desc.outputs) {
    wanted.push_back(std::make_unique<kernels::GuardedMemory>(type.byte_size()));
    out.push_back({wanted.back()->data(), wanted.back()->size()});
  }
  kernels::GuardedMemory scratch((*reference)->scratch_bytes());
  kernels::Serial serial;
  ASSERT_TRUE((*reference)->Run(in, out, {&serial, {scratch.data(), scratch.size()}}).ok());
  ASSERT_EQ(found->size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Bytes& bytes = (*found)[i];
    ASSERT_EQ(static_cast<int64_t>(bytes.size()), wanted[i]->size());
    const auto differs = std::mismatch(bytes.begin(), bytes.end(), wanted[i]->data()).first;
    ASSERT_EQ(differs - bytes.begin(), bytes.end() - bytes.begin()) << "differs: output " << i << " of " << what;
  }
}

void ExpectBytesOf(CreateFunction* cpu, RegisterFunction* cuda, const kernels::KernelDesc& desc, uint64_t seed) {
  std::vector<Tensor> inputs;
  std::vector<const Tensor*> pointers;
  for (const auto& type : desc.inputs) inputs.push_back(SeededTensor(*type, seed++));
  for (const Tensor& input : inputs) pointers.push_back(&input);
  ExpectBytesOf(cpu, CreateRegistered(cuda, desc), desc, pointers);
}

void ExpectBytesOf(RegisterFunction* cpu, RegisterFunction* cuda, const kernels::OpCall& call) {
  const ir::OpSchema& schema = *kernels::Ops().FindOrNull(call.op);
  const kernels::KernelDesc desc = kernels::DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
  std::vector<const Tensor*> inputs;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (schema.operands[std::min(i, schema.operands.size() - 1)].parameter) continue;
    inputs.push_back(call.operands[i] ? &*call.operands[i] : nullptr);
  }
  kernels::KernelRegistry registry;
  cpu(registry);
  ExpectBytesOf(registry.FindOrNull(call.op)->create, CreateRegistered(cuda, desc), desc, inputs);
}

void ExpectSameEntries(RegisterFunction* cpu, RegisterFunction* cuda) {
  kernels::KernelRegistry on_cpu, on_cuda;
  cpu(on_cpu);
  cuda(on_cuda);
  ASSERT_EQ(on_cuda.Sorted().size(), on_cpu.Sorted().size());
  for (const kernels::KernelEntry* entry : on_cpu.Sorted()) {
    const kernels::KernelEntry* found = on_cuda.FindOrNull(entry->op);
    ASSERT_NE(found, nullptr) << entry->op;
    EXPECT_EQ(found->layout, entry->layout);
  }
}

}  // namespace fuselage::cuda
