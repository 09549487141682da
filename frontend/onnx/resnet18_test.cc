// The shipped model: what importing it must give. Its logits are checked by the harness, on real images.
#include <map>
#include <string>

#include "frontend/onnx/onnx.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"

namespace fuselage::onnx {
namespace {

constexpr char kModel[] = "models/resnet18_fashion_mnist.onnx";

TEST(ResNet18, EveryNodeAndParameter) {
  ir::OpRegistry registry;
  ops::RegisterAll(registry);
  const auto graph = Load(kModel, registry);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::map<std::string, int> counts;
  for (const ir::Node* node : (*graph)->Snapshot()) {
    ++counts[node->is_call() ? node->target() : std::string(ir::NodeKindName(node->kind()))];
    if (node->is_call()) {
      EXPECT_EQ(node->kind(), ir::NodeKind::kCallFunction) << node->name();
    }
  }
  // 20 convolutions without bias, 20 batch norms of 4 parameters, and the classifier's 2: 102 parameters.
  const std::map<std::string, int> wanted = {
      {"placeholder", 1}, {"get_attr", 102}, {"conv2d", 20},         {"batch_norm", 20}, {"relu", 17}, {"add", 8},
      {"max_pool2d", 1},  {"linear", 1},     {"global_avg_pool", 1}, {"flatten", 1},     {"output", 1}};
  EXPECT_EQ(counts, wanted);

  int64_t weights = 0;
  for (const auto& [name, parameter] : (*graph)->parameters()) {
    EXPECT_EQ(parameter.tensor->dtype(), DType::kF32) << name;
    weights += parameter.tensor->num_elements();
  }
  EXPECT_EQ(weights, 11191242);  // torchvision's resnet18(num_classes=10), running statistics included.
  EXPECT_NE((*graph)->FindParameterOrNull("layer4.1.bn2.running_var"), nullptr);
  EXPECT_EQ((*graph)->placeholders()[0]->name(), "input");
  EXPECT_EQ((*graph)->output()->operand(0)->tensor_type().shape, (Shape{1, 10}));

  ASSERT_TRUE((*graph)->SetBatch(16).ok());
  EXPECT_EQ((*graph)->output()->operand(0)->tensor_type().shape, (Shape{16, 10}));
}

TEST(ResNet18, AnotherSizeByShapeFlag) {
  ir::OpRegistry registry;
  ops::RegisterAll(registry);
  LoadOptions options;
  options.shapes["input"] = {2, 3, 64, 64};
  const auto small = Load(kModel, registry, options);  // The file fixes 224 x 224.
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ((*small)->output()->operands()[0]->tensor_type().shape, (Shape{2, 10}));
  options.max_memory_bytes = 50 << 20;  // The file, its parsed form and f32 weights do not fit.
  EXPECT_EQ(Load(kModel, registry, options).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace fuselage::onnx
