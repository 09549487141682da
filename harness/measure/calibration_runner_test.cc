// Calibration through the real runner on a small network: one result for any number of threads and parts, one key for
// equal data.
#include "compiler/calibration_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "harness/datasets/image_samples.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/quantize/quantize.h"

namespace fuselage::harness {
namespace {

using ::testing::MatchesRegex;

constexpr char kNetwork[] = R"(graph @g {
  param @c.weight: f32[8,1,3,3] = seed(1)
  param @d.weight: f32[4,8,3,3] = seed(2)
  module @c = conv2d(activation="relu", padding=[1, 1, 1, 1], weight=@c.weight)
  module @d = conv2d(weight=@d.weight)
  %x: f32[1,1,8,8] = placeholder
  %c: f32[1,8,8,8] = call_module @c(%x)
  %d: f32[1,4,6,6] = call_module @d(%c)
  output(%d)
}
)";

// Gray images of 4x4 with pixels counted up from `first`.
class CountedImages : public datasets::ImageDataset {
 public:
  explicit CountedImages(int first) : first_(first) {}

  int64_t size() const override { return 11; }
  int num_classes() const override { return 2; }
  int label(int64_t) const override { return 0; }
  absl::StatusOr<datasets::Image> image(int64_t i) const override {
    datasets::Image image{4, 4, 1, std::vector<uint8_t>(16)};
    std::iota(image.pixels.begin(), image.pixels.end(), static_cast<uint8_t>(first_ + 37 * i));
    return image;
  }

 private:
  int first_;
};

class CalibrationRunnerTest : public ::testing::Test {
 protected:
  CalibrationRunnerTest() { ops::RegisterAll(ops_); }

  static datasets::Preprocessor MakePreprocessor(float mean) {
    datasets::PreprocessOptions options;
    options.height = options.width = 8;
    options.channels = 1;
    options.mean = {mean};
    return *datasets::Preprocessor::Create(options);
  }

  std::string KeyOf(int images, int first_pixel, float mean) {
    const CountedImages dataset(first_pixel);
    const datasets::Preprocessor preprocessor = MakePreprocessor(mean);
    runtime::ThreadPool pool(1);
    const datasets::ImageSamples samples(dataset, preprocessor, &pool);
    compiler::CalibrationOptions options;
    options.samples = images;
    return compiler::CalibrationRunner(samples, &pool, options).DataKey();
  }

  // The quantized network, calibrated with so many threads, and the remarks.
  std::string Quantized(int threads, const QuantizeOptions& options, const std::string& cache, passes::Remarks& remarks,
                        int parts = 1) {
    const CountedImages dataset(5);
    const datasets::Preprocessor preprocessor = MakePreprocessor(0.5f);
    runtime::ThreadPool pool(threads);
    const datasets::ImageSamples samples(dataset, preprocessor, &pool);
    compiler::CalibrationOptions calibration;
    calibration.samples = 10;
    calibration.parts = parts;
    compiler::CalibrationRunner runner(samples, &pool, calibration);
    const std::unique_ptr<ir::Graph> graph = *ir::Parse(kNetwork, ops_);
    EXPECT_OK(quantize::Quantize(options, &runner, cache).Run(*graph, remarks));
    return ir::Print(*graph);
  }

  ir::OpRegistry ops_;
};

TEST_F(CalibrationRunnerTest, EveryMethodGivesOneModelForAnyNumberOfThreadsAndParts) {
  std::vector<QuantizeOptions> methods(5);
  methods[0].mutable_observer()->mutable_min_max();
  methods[1].mutable_observer()->mutable_moving_average();
  methods[2].mutable_observer()->mutable_percentile();
  methods[3].mutable_observer()->mutable_mse();
  methods[4].mutable_observer()->mutable_entropy();
  for (const QuantizeOptions& options : methods) {
    passes::Remarks remarks;
    const std::string one = Quantized(1, options, "", remarks);
    for (int threads : {1, 2, 3, 7}) EXPECT_EQ(Quantized(threads, options, "", remarks), one) << threads;
    for (int parts : {2, 7, 13}) EXPECT_EQ(Quantized(2, options, "", remarks, parts), one) << parts << " parts";
  }
}

// The first, in order, and no more; or all that there are.
TEST_F(CalibrationRunnerTest, VisitsTheFirstSamples) {
  const std::unique_ptr<ir::Graph> graph = *ir::Parse(kNetwork, ops_);
  const CountedImages dataset(5);
  const datasets::Preprocessor preprocessor = MakePreprocessor(0.5f);
  for (const int threads : {1, 2, 3}) {
    runtime::ThreadPool pool(threads);
    const datasets::ImageSamples samples(dataset, preprocessor, &pool);
    compiler::CalibrationOptions options;
    options.samples = 10;
    compiler::CalibrationRunner runner(samples, &pool, options);
    const auto visited = [&](int most) {
      std::vector<Tensor> values;
      const auto keep = [&](int sample, absl::Span<const Tensor* const> tensors) {
        EXPECT_EQ(sample, values.size());
        values.push_back(*tensors[0]);
        return absl::OkStatus();
      };
      EXPECT_EQ(runner.ForFirstSamples(most, *graph, {graph->FindNodeOrNull("d")}, keep).value(), std::min(most, 10));
      return values;
    };
    const std::vector<Tensor> all = visited(100);
    for (int most = 1; most <= 10; ++most) {
      const std::vector<Tensor> some = visited(most);
      ASSERT_EQ(some.size(), most);
      for (int i = 0; i < most; ++i) EXPECT_TRUE(some[i].SameBytes(all[i])) << i;
    }
    EXPECT_FALSE(all[8].SameBytes(all[9]));
    const auto fails = [](int sample, absl::Span<const Tensor* const>) {
      return sample == 2 ? absl::DataLossError("the third") : absl::OkStatus();
    };
    EXPECT_THAT(runner.ForFirstSamples(5, *graph, {}, fails).status(),
                ::fuselage::testing::StatusIs(absl::StatusCode::kDataLoss, "the third"));
  }
}

// Its reference evaluation calls the C library's tanh, which is not the same on every machine.
TEST_F(CalibrationRunnerTest, DeclinesWhatOtherMachinesComputeOtherwise) {
  const std::unique_ptr<ir::Graph> graph = *ir::Parse(R"(graph @g {
  param @c.weight: f32[8,1,3,3] = seed(1)
  module @c = conv2d(weight=@c.weight)
  %x: f32[1,1,8,8] = placeholder
  %wide: f64[1,1,8,8] = call_function to(%x, dtype=f64)
  %t: f64[1,1,8,8] = call_function tanh(%wide)
  %narrow: f32[1,1,8,8] = call_function to(%t, dtype=f32)
  %c: f32[1,8,6,6] = call_module @c(%narrow)
  output(%c)
}
)",
                                                      ops_);
  runtime::ThreadPool pool(1);
  const compiler::RandomSamples samples(1, 2, &pool);
  compiler::CalibrationOptions options;
  options.samples = 2;
  compiler::CalibrationRunner runner(samples, &pool, options);
  passes::Remarks remarks;
  const absl::Status status = quantize::Quantize({}, &runner).Run(*graph, remarks).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("%t: tanh of f64[1,1,8,8]"));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("has other bits on other machines"));
}

TEST_F(CalibrationRunnerTest, TheKeyTellsDataApart) {
  const std::string key = KeyOf(3, 0, 0.5f);
  EXPECT_THAT(key, MatchesRegex("3 images, inputs f32.1,8,8., sha256 [0-9a-f]{64}, arithmetic [0-9]+"));
  EXPECT_EQ(KeyOf(3, 0, 0.5f), key);
  EXPECT_NE(KeyOf(4, 0, 0.5f), key);
  EXPECT_NE(KeyOf(3, 1, 0.5f), key);
  EXPECT_NE(KeyOf(3, 0, 0.25f), key);
  EXPECT_EQ(KeyOf(11, 0, 0.5f), KeyOf(99, 0, 0.5f)) << "there are no more";
}

TEST_F(CalibrationRunnerTest, TheCacheGivesTheSameModel) {
  const std::string folder = ::testing::TempDir() + "/calibration";
  passes::Remarks first, second;
  const std::string calibrated = Quantized(2, {}, folder, first), kept = Quantized(1, {}, folder, second);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(calibrated, kept);
  EXPECT_THAT(first.ToString(), ::testing::HasSubstr("calibrated on 10 samples"));
  EXPECT_THAT(second.ToString(), ::testing::HasSubstr("calibrated on 10 samples"));
  EXPECT_THAT(second.ToString(), ::testing::HasSubstr("ranges from cache " + folder));
}

}  // namespace
}  // namespace fuselage::harness
