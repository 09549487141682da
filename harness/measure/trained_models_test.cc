// The shipped models on real images, by the library: their logits, and that INT8 tells as many images as FP32.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "gtest/gtest.h"
#include "harness/datasets/fashion_mnist.h"
#include "harness/datasets/image_samples.h"
#include "harness/datasets/preprocess.h"
#include "ir/testing/matchers.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {
namespace {

constexpr int kBatch = 50, kImages = 1000, kClasses = 10;

struct TrainedModel {
  const char* name;  // Of models/<name>_fashion_mnist.onnx.
  int64_t channels, size;
  int right;                  // Of the first kImages, in FP32.
  float logits[4][kClasses];  // PyTorch's, of the first images, in FP32 (models/README.md).
};
constexpr TrainedModel kModels[] = {
    {"mobilenet_v2",
     3,
     64,
     924,
     {{-0.3396, -0.5694, -0.3023, -0.4253, -0.4076, -0.5346, -0.4833, -0.7877, -0.5169, 4.9546},
      {-0.9303, -0.5412, 4.9061, -1.0129, 0.4547, -0.3000, -0.7415, -0.4508, -0.9324, -0.3978},
      {-0.3698, 5.2488, -0.5784, -0.8909, -0.4024, -0.4907, -0.5539, -0.2971, -0.3418, -0.2456},
      {-0.2017, 5.0731, -0.6695, -0.9273, -0.5227, -0.4474, -0.3052, -0.4289, -0.3478, -0.1340}}},
    {"vit",
     1,
     28,
     890,
     {{-0.5579, -1.3335, -0.5672, -0.9387, -1.3247, 0.2605, -1.0657, 1.5249, -0.8150, 4.3475},
      {-0.2825, -1.3482, 4.6335, -0.4752, 0.4187, -1.0703, 0.8914, -0.9078, -0.5477, -0.5512},
      {-0.4818, 4.7812, -0.6343, -0.1532, -0.3546, -0.6728, -0.5394, -0.4356, -0.6522, -0.3531},
      {-0.4286, 4.7654, -0.6600, -0.3208, -0.2171, -0.6383, -0.4816, -0.4305, -0.6828, -0.3681}}}};

class TrainedModelTest : public ::testing::TestWithParam<TrainedModel> {
 protected:
  void SetUp() override {
    datasets::PreprocessOptions options;
    options.height = options.width = GetParam().size;
    options.channels = GetParam().channels;
    options.mean = {0.2860f};
    options.std = {0.3530f};
    ASSERT_OK_AND_ASSIGN(preprocessor_, datasets::Preprocessor::Create(options));
    ASSERT_OK_AND_ASSIGN(train_, datasets::OpenFashionMnist(datasets::FashionMnistFolder(), /*train=*/true));
    ASSERT_OK_AND_ASSIGN(test_, datasets::OpenFashionMnist(datasets::FashionMnistFolder(), /*train=*/false));
  }

  Tensor Images(const datasets::ImageDataset& dataset, int64_t first, int64_t count) {
    Tensor images(DType::kF32, {count, GetParam().channels, GetParam().size, GetParam().size});
    EXPECT_OK(datasets::ImageSamples(dataset, *preprocessor_, &pool_).Fill(first, first + count, &images));
    return images;
  }

  // The logits of the first test images.
  std::vector<float> Logits(const Model& model) {
    SessionOptions options;
    options.batch = kBatch;
    options.pool = &pool_;
    absl::StatusOr<Session> session = Prepare(model, options);
    EXPECT_OK(session);
    std::vector<float> all;
    for (int first = 0; first < kImages; first += kBatch) {
      Tensor logits;
      EXPECT_OK(session->Run({{"input", Images(*test_, first, kBatch)}}, {{"logits", &logits}}));
      const absl::Span<const float> values = logits.values<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  int CountRight(const std::vector<float>& logits) {
    int right = 0;
    for (int i = 0; i < kImages; ++i) {
      const auto row = logits.begin() + i * kClasses;
      right += std::max_element(row, row + kClasses) - row == test_->label(i);
    }
    return right;
  }

  runtime::ThreadPool pool_{2};
  std::optional<datasets::Preprocessor> preprocessor_;
  std::unique_ptr<datasets::ImageDataset> train_, test_;
};

TEST_P(TrainedModelTest, Int8LosesNoMoreThanChance) {
  const TrainedModel& trained = GetParam();
  ASSERT_OK_AND_ASSIGN(const Model model, Load(absl::StrCat("models/", trained.name, "_fashion_mnist.onnx")));
  const std::vector<float> fp32 = Logits(model);
  for (int i = 0; i < 4 * kClasses; ++i) EXPECT_NEAR(fp32[i], trained.logits[i / kClasses][i % kClasses], 1e-3) << i;
  EXPECT_EQ(CountRight(fp32), trained.right);

  ASSERT_OK_AND_ASSIGN(const Model int8, Compile(model, {{"input", Images(*train_, 0, 64)}}));
  EXPECT_GE(CountRight(Logits(int8)), trained.right - 5);
}

INSTANTIATE_TEST_SUITE_P(All, TrainedModelTest, ::testing::ValuesIn(kModels),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fuselage::harness
