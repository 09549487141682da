// What gpu_check runs: ResNet18's layers, and random shapes of every kernel.
#ifndef FUSELAGE_TOOLS_GPU_CHECK_CASES_H_
#define FUSELAGE_TOOLS_GPU_CHECK_CASES_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/tensor.h"
#include "kernels/core/kernel.h"

namespace fuselage::gpu_check {

// A kernel to make and what to run it on.
struct Case {
  std::string name;
  int repetitions = 1;  // In the network.
  int64_t macs = 0;     // Multiply-accumulates.
  kernels::KernelDesc desc;
  std::vector<std::optional<Tensor>> inputs;
  std::shared_ptr<const void> parameters;  // Owns what desc.parameters points to.
};

// As lowered, on 224x224 images and with 1000 classes: layers that differ, in order.
std::vector<Case> ResNet18(int batch);

// What other networks are made of, on as large images: ResNeXt50's and RegNet's groups, MobileNetV2's depthwise
// convolutions, attention of ViT-S, fused and written out, and recurrent layers of 64 steps.
std::vector<Case> OtherLayers(int batch);

// The same cases for the same count.
std::vector<Case> RandomCases(int count);

}  // namespace fuselage::gpu_check

#endif  // FUSELAGE_TOOLS_GPU_CHECK_CASES_H_
