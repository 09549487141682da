// The cases are ones that the CPU's kernels take, and the scalar kernel has the bytes of the best one.
#include "tools/gpu_check/cases.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "kernels/core/parallel.h"
#include "kernels/core/registry.h"
#include "kernels/register_all.h"

namespace fuselage::gpu_check {
namespace {

class CasesTest : public ::testing::Test {
 protected:
  CasesTest() { kernels::RegisterAll(registry_); }

  absl::StatusOr<std::vector<Tensor>> Run(const Case& c, kernels::Isa isa) {
    const kernels::KernelEntry* entry = registry_.FindOrNull(c.desc.op);
    if (entry == nullptr) return absl::NotFoundError(c.desc.op);
    kernels::KernelDesc desc = c.desc;
    desc.isa = isa;
    ASSIGN_OR_RETURN(const auto kernel, entry->create(desc));
    std::vector<kernels::ConstBuffer> inputs;
    for (const auto& input : c.inputs) {
      inputs.push_back(input ? kernels::ConstBuffer{input->raw_data(), input->byte_size()} : kernels::ConstBuffer());
    }
    Tensor scratch(DType::kU8, {kernel->scratch_bytes()});
    std::vector<Tensor> results(desc.outputs.begin(), desc.outputs.end());
    std::vector<kernels::Buffer> outputs;
    for (Tensor& result : results) outputs.push_back({result.raw_data(), result.byte_size()});
    kernels::Serial serial;
    RETURN_IF_ERROR(kernel->Run(inputs, outputs, {&serial, {scratch.raw_data(), scratch.byte_size()}}));
    return results;
  }

  void Check(const Case& c) {
    const auto scalar = Run(c, kernels::Isa::kScalar), best = Run(c, kernels::BestIsa());
    ASSERT_TRUE(scalar.ok() && best.ok()) << c.name << ": " << scalar.status() << " " << best.status();
    for (size_t i = 0; i < scalar->size(); ++i) EXPECT_TRUE((*scalar)[i].SameBytes((*best)[i])) << c.name;
  }

  kernels::KernelRegistry registry_;
};

TEST_F(CasesTest, OfEveryKernel) {
  std::map<std::string, int> ops;
  for (const Case& c : RandomCases(60)) {
    Check(c);
    ++ops[c.desc.op];
  }
  for (const char* op : {"dynamic_quantize_symmetric",
                         "fused_elementwise",
                         "index_select",
                         "int8.add",
                         "int8.attention",
                         "int8.avg_pool2d",
                         "int8.conv2d",
                         "int8.conv2d_max_pool2d",
                         "int8.dequantize",
                         "int8.fused_elementwise",
                         "int8.global_avg_pool",
                         "int8.global_avg_pool_linear",
                         "int8.group_norm",
                         "int8.gru",
                         "int8.instance_norm",
                         "int8.layer_norm",
                         "int8.linear",
                         "int8.linear_groups",
                         "int8.lstm",
                         "int8.matmul",
                         "int8.max_pool2d",
                         "int8.quantize",
                         "int8.relu",
                         "int8.rms_norm",
                         "int8.rnn",
                         "scaled_dot_product_attention"}) {
    EXPECT_GE(ops[op], 3) << op;
  }
}

TEST_F(CasesTest, ResNet18) {
  int64_t convolutions = 0;
  for (const Case& c : ResNet18(1)) {
    const kernels::KernelEntry* entry = registry_.FindOrNull(c.desc.op);
    ASSERT_NE(entry, nullptr) << c.desc.op;
    const auto kernel = entry->create(c.desc);
    ASSERT_TRUE(kernel.ok()) << c.name << ": " << kernel.status();
    convolutions += absl::StartsWith(c.desc.op, "int8.conv2d") ? c.repetitions * c.macs : 0;
  }
  EXPECT_EQ(convolutions, 1813561344);  // The paper's 1.8 GMAC (He et al. 2015, table 1).
}

TEST_F(CasesTest, OtherLayers) {
  for (const Case& c : OtherLayers(1)) Check(c);
}

}  // namespace
}  // namespace fuselage::gpu_check
