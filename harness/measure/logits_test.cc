// The shipped model on real images: the logits that models/README.md lists, through reader, passes and FP32 kernels.
#include "frontend/onnx/onnx.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "harness/base/files.h"
#include "harness/datasets/fashion_mnist.h"
#include "harness/datasets/preprocess.h"
#include "harness/measure/engine.h"
#include "harness/measure/samples.h"
#include "ir/ops/register_all.h"
#include "kernels/register_all.h"
#include "passes/core/pipeline.h"
#include "passes/register_all.h"

namespace fuselage::harness {
namespace {

constexpr char kDataset[] = "/usr/share/datasets/fashion-mnist";
constexpr char kModel[] = "models/resnet18_fashion_mnist.onnx";

constexpr int kImages = 4;
constexpr int kLabels[kImages] = {9, 2, 1, 1};
// PyTorch's, in FP32.
constexpr float kLogits[kImages][10] = {
    {-1.0812, -0.4438, -0.7943, -1.1392, -0.6795, -0.2814, -0.9654, 2.3180, -2.0335, 5.3310},
    {-0.5044, -0.7114, 6.2698, -0.3209, 0.4580, -0.7830, -0.3650, -1.1707, -1.3121, -1.1390},
    {-0.0840, 6.1712, -0.1296, -1.7078, -0.7561, -0.9851, -0.8371, -0.2714, -0.9171, -0.3399},
    {-0.0214, 5.6483, -0.2704, -1.8556, -1.8571, -0.6946, 0.1323, -0.4268, -0.5820, 0.1109}};
constexpr float kTolerance = 1e-3f;

TEST(Logits, OfTheFirstTestImages) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  kernels::KernelRegistry kernels;
  kernels::RegisterAll(kernels);
  passes::PassRegistry passes;
  passes::RegisterAll(passes);

  auto graph = onnx::Load(kModel, ops);
  ASSERT_TRUE(graph.ok()) << graph.status();
  PipelineConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } }
         steps { pass { [type.googleapis.com/fuselage.ConvBnOptions] {} } }
         steps { pass { [type.googleapis.com/fuselage.FusionOptions] {} } })",
      &config));
  passes::PassEnvironment environment;
  environment.kernels = &kernels;
  const auto reports = passes::RunPipeline(config, passes, environment, **graph);
  ASSERT_TRUE(reports.ok()) << reports.status();

  const auto dataset = datasets::OpenFashionMnist(kDataset, /*train=*/false);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 10000);
  datasets::PreprocessOptions options;
  options.height = options.width = 224;
  options.channels = 3;
  options.mean = {0.2860f};
  options.std = {0.3530f};
  const auto preprocessor = datasets::Preprocessor::Create(options);
  ASSERT_TRUE(preprocessor.ok());

  runtime::ThreadPool pool(2);
  const Samples samples(**dataset, *preprocessor, &pool);
  for (int batch : {1, kImages}) {
    const auto engine = MakeEngine(**graph, batch, kernels, &pool, {});
    ASSERT_TRUE(engine.ok()) << engine.status();
    for (int first = 0; first < kImages; first += batch) {
      const auto input = samples.Batch(first, (*engine)->input_type());
      ASSERT_TRUE(input.ok());
      const auto outputs = (*engine)->Run(*input);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      ASSERT_EQ((**outputs)[0].shape(), (Shape{batch, 10}));
      for (int row = 0; row < batch; ++row) {
        EXPECT_EQ((*dataset)->label(first + row), kLabels[first + row]);
        for (int i = 0; i < 10; ++i) {
          EXPECT_NEAR((**outputs)[0].data<float>()[row * 10 + i], kLogits[first + row][i], kTolerance)
              << "image " << first + row << ", class " << i << ", batch " << batch;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuselage::harness
