#include "harness/measure/measure.h"

#include <errno.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "compiler/engine.h"
#include "compiler/load.h"
#include "compiler/samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/files.h"
#include "harness/measure/cold_cache.h"
#include "harness/measure/memory_counter.h"
#include "harness/measure/peaks.h"
#include "harness/measure/prefetch.h"
#include "harness/measure/slower_threads.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "kernels/register_all.h"

namespace fuselage::harness {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::HasSubstr;

TensorType Floats(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

// Sample i is the value i, after a wait that lets later ones overtake; one may be broken.
class CountedSamples : public compiler::Samples {
 public:
  CountedSamples(int64_t size, kernels::Parallel* parallel, int64_t broken = -1)
      : compiler::Samples(parallel), size_(size), broken_(broken) {}
  int64_t size() const override { return size_; }
  std::string Key(int64_t) const override { return ""; }
  int64_t begun() const { return begun_; }

 private:
  absl::Status FillRow(int64_t sample, int, Tensor* batch, int64_t row) const override {
    ++begun_;
    if (sample % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (sample == broken_) return absl::InvalidArgumentError(absl::StrCat("sample ", sample));
    batch->data<float>()[row] = static_cast<float>(sample);
    return absl::OkStatus();
  }
  const int64_t size_, broken_;
  mutable std::atomic<int64_t> begun_{0};
};

TEST(Prefetcher, BatchesComeInOrderForAnyNumberOfThreads) {
  for (int threads : {1, 2, 5}) {
    runtime::ThreadPool pool(threads);
    const CountedSamples samples(10, &pool);
    Prefetcher batches(samples, {Floats({4, 1})}, 0, 10);
    for (int64_t first = 0; first < 10; first += 4) {
      const auto batch = batches.Next();
      ASSERT_OK(batch);
      for (int64_t i = 0; i < 4; ++i) EXPECT_EQ((**batch)[0].At(i), first + i < 10 ? first + i : 0) << threads;
    }
    EXPECT_EQ(samples.begun(), 10);
  }
}

TEST(Prefetcher, ReadsOneBatchAheadAndNoMore) {
  runtime::ThreadPool pool(2);
  const CountedSamples samples(100, &pool);
  Prefetcher batches(samples, {Floats({4, 1})}, 0, 100);
  ASSERT_OK(batches.Next());
  while (samples.begun() < 8) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(samples.begun(), 8);
}

TEST(Prefetcher, AnErrorIsThatOfTheFirstRow) {
  runtime::ThreadPool pool(3);
  const CountedSamples samples(8, &pool, /*broken=*/5);
  Prefetcher batches(samples, {Floats({4, 1})}, 0, 8);
  EXPECT_OK(batches.Next());
  EXPECT_THAT(batches.Next(), StatusIs(absl::StatusCode::kInvalidArgument, "sample 5"));
}

TEST(MeasureInTurns, EveryoneGetsRepetitionsAndTime) {
  std::string order;
  std::map<char, size_t> timed;
  const auto runner = [&](char name, int ms) {
    return Contestant{[&order, name, ms] {
                        order += name;
                        std::this_thread::sleep_for(std::chrono::milliseconds(ms));
                        return absl::OkStatus();
                      },
                      {},
                      [&timed, name] { ++timed[name]; }};
  };
  std::vector<Contestant> contestants = {runner('a', 5), runner('b', 30)};
  MeasureOptions options;
  options.warmup = 1;
  options.repetitions = 5;
  options.min_time_ms = 120;
  double last_fraction = 0;
  options.progress = [&](double fraction) { last_fraction = fraction; };
  ASSERT_TRUE(MeasureInTurns(options, &contestants).ok());
  EXPECT_EQ(last_fraction, 1);
  EXPECT_EQ(order.substr(0, 2), "ab") << "warm-up first";
  EXPECT_NE(order.find("bba"), std::string::npos) << "b's turn ends and a's begins: " << order;
  EXPECT_EQ(timed['a'], contestants[0].ms.size()) << "neither warm-up nor a turn's first run";
  EXPECT_EQ(timed['b'], contestants[1].ms.size());
  for (const Contestant& contestant : contestants) {
    EXPECT_GE(contestant.ms.size(), 5);
    double total = 0;
    for (double ms : contestant.ms) total += ms;
    EXPECT_GE(total, 120);
  }
  EXPECT_GE(contestants[1].ms[0], 29);
}

TEST(MeasureInTurns, AnErrorEndsIt) {
  std::vector<Contestant> contestants = {{[] { return absl::InternalError("broken"); }, {}, {}}};
  EXPECT_EQ(MeasureInTurns(MeasureOptions(), &contestants).message(), "broken");
}

TEST(ColdRuns, TimesEachAndEndsAtAnError) {
  runtime::ThreadPool pool(2);
  CacheFlusher flusher(&pool, /*bytes=*/1000);
  int runs = 0;
  const auto run = [&] { return ++runs == 5 ? absl::InternalError("broken") : absl::OkStatus(); };
  ASSERT_OK_AND_ASSIGN(const std::vector<double> ms, ColdRuns(run, 3, &flusher));
  EXPECT_EQ(ms.size(), 3);
  EXPECT_EQ(ColdRuns(run, 3, &flusher).status().message(), "broken");
  EXPECT_EQ(runs, 5);
}

TEST(RandomSamples, DependOnSeedSampleAndInputAlone) {
  runtime::ThreadPool one(1), three(3);
  const compiler::RandomSamples samples(7, 5, &one), again(7, 5, &three), other(8, 5, &one);
  const std::vector<TensorType> types = {Floats({2, 3}), Floats({2, 3})};
  ASSERT_OK_AND_ASSIGN(const auto batch, samples.Batch(3, types));
  ASSERT_EQ(batch.size(), 2);
  EXPECT_TRUE((*again.Batch(3, types))[1].SameBytes(batch[1]));
  EXPECT_FALSE((*other.Batch(3, types))[0].SameBytes(batch[0]));
  EXPECT_FALSE(batch[0].SameBytes(batch[1])) << "inputs";
  // Row 1 of the batch from sample 3 on is sample 4, and sample 5 is sample 0 again.
  EXPECT_EQ((*samples.Batch(4, {Floats({1, 3})}))[0].At(2), batch[0].At(5));
  EXPECT_EQ((*samples.Batch(4, types))[0].At(3), (*samples.Batch(0, types))[0].At(0));
  EXPECT_NE(batch[0].At(0), batch[0].At(3)) << "samples";

  EXPECT_EQ(samples.Key(5), again.Key(5));
  EXPECT_NE(samples.Key(5), other.Key(5));

  Tensor filled = batch[0];
  ASSERT_OK(again.Fill(3, 4, &filled));
  EXPECT_EQ(filled.At(2), batch[0].At(2));
  for (int i = 3; i < 6; ++i) EXPECT_EQ(filled.At(i), 0) << "past the end";
}

// Positions stay inside of what they select from, seen through casts and views, and masks are of zeros and ones.
TEST(RandomSamples, IntegersThatTheGraphCanTake) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  ASSERT_OK_AND_ASSIGN(const auto graph, ir::Parse(R"(graph @g {
  param @w: f32[300,4] = seed(1)
  param @short: f32[4,3] = seed(2)
  %ids: i32[1,6] = placeholder
  %x: f32[1,3,4] = placeholder
  %mask: i64[1,6] = placeholder
  %place: i64[1,6] = placeholder
  %w: f32[300,4] = get_attr @w
  %short: f32[4,3] = get_attr @short
  %long: i64[1,6] = call_function to(%ids, dtype=i64)
  %flat: i64[2,3] = call_function reshape(%long, shape=[2, 3])
  %rows: f32[2,3,4] = call_function index_select(%w, %flat, dim=0)
  %far: f32[1,6,4] = call_function index_select(%w, %place, dim=0)
  %near: f32[4,1,6] = call_function index_select(%short, %place, dim=-1)
  output(%rows, %far, %near, %mask, %x)
})",
                                                   ops));
  const std::vector<int64_t> bounds = compiler::IntegerBounds(*graph);
  EXPECT_THAT(bounds, ::testing::ElementsAre(300, 0, 2, 3));
  runtime::ThreadPool pool(1);
  const compiler::RandomSamples samples(7, 64, &pool, bounds);
  std::vector<TensorType> types;
  for (const ir::Node* input : graph->placeholders()) {
    types.push_back(input->tensor_type());
    types.back().shape[0] = 64;
  }
  ASSERT_OK_AND_ASSIGN(const auto batch, samples.Batch(0, types));
  const auto range = [&](int input) {
    const std::vector<double> values = ToDoubles(batch[input]);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return std::pair(*least, *most);
  };
  EXPECT_GE(range(0).first, 0);
  EXPECT_LT(range(0).first, 30);
  EXPECT_GE(range(0).second, 270);
  EXPECT_LT(range(0).second, 300);
  EXPECT_LT(range(1).first, -0.9) << "floats are as before";
  EXPECT_EQ(range(2), std::pair(0.0, 1.0));
  EXPECT_EQ(range(3), std::pair(0.0, 2.0));
  EXPECT_NE(samples.Key(1), compiler::RandomSamples(7, 64, &pool).Key(1));
}

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() {
    ops::RegisterAll(ops_);
    kernels::RegisterAll(kernels_);
  }
  std::unique_ptr<ir::Graph> Sum(const std::string& type_of_a, const std::string& type_of_b) {
    return *ir::Parse("graph @sum {\n  %a: " + type_of_a + " = placeholder\n  %b: " + type_of_b +
                          " = placeholder\n  %c: " + type_of_a + " = call_function add(%a, %b)\n  output(%c)\n}",
                      ops_);
  }
  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  runtime::ThreadPool pool_{1};
};

TEST_F(EngineTest, SeveralInputsOnBothBackends) {
  const auto graph = Sum("f32[1,2]", "f32[1,2]");
  for (const char* backend : {"cpu", "reference"}) {
    compiler::EngineOptions options;
    options.backend = backend;
    ASSERT_OK_AND_ASSIGN(const auto engine, compiler::MakeEngine(*graph, /*batch=*/2, kernels_, &pool_, options));
    EXPECT_EQ(engine->batch(), 2);
    ASSERT_EQ(engine->input_types().size(), 2);
    const std::vector<Tensor> inputs = {Tensor::Of<float>({2, 2}, {1, 2, 3, 4}),
                                        Tensor::Of<float>({2, 2}, {10, 20, 30, 40})};
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor>* outputs, engine->Run(inputs));
    EXPECT_THAT((*outputs)[0].values<float>(), ::testing::ElementsAre(11, 22, 33, 44)) << backend;
  }
}

TEST_F(EngineTest, InputsMustShareTheirFirstDimension) {
  EXPECT_THAT(compiler::BatchOf(*Sum("f32[2,2]", "f32[1,2]")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input %b is f32[1,2] and input %a f32[2,2]")));
  EXPECT_THAT(compiler::BatchOf(*Sum("f32[2]", "f32[]")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input %b")));
  EXPECT_EQ(*compiler::BatchOf(*Sum("f32[3,2]", "f32[3,1]")), 3);
  const auto empty =
      *ir::Parse("graph @e {\n  param @p: f32[1] = [1]\n  %p: f32[1] = get_attr @p\n  output(%p)\n}", ops_);
  EXPECT_THAT(compiler::BatchOf(*empty), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no inputs")));
}

TEST(MemoryCounter, CountsOrSaysWhyNot) {
  EXPECT_THAT(CounterReason(EACCES), HasSubstr("perf_event_paranoid"));
  EXPECT_THAT(CounterReason(ENOENT), HasSubstr("no counter"));
  EXPECT_THAT(CounterReason(EMFILE), HasSubstr("Too many open files"));
  const auto counter = MemoryCounter::Open();
  if (!counter.ok()) {
    EXPECT_THAT(counter, StatusIs(absl::StatusCode::kUnavailable, ::testing::Not(::testing::IsEmpty())));
    return;
  }
  (*counter)->Start();
  std::vector<char> fresh(64 << 20);
  for (size_t i = 0; i < fresh.size(); i += 64) static_cast<volatile char&>(fresh[i]) = 1;
  ASSERT_OK_AND_ASSIGN(const int64_t bytes, (*counter)->Stop());
  EXPECT_GT(bytes, 0);
  EXPECT_EQ(bytes % 64, 0);
}

TEST_F(EngineTest, PeaksAreMeasuredKeptAndRead) {
  ASSERT_OK_AND_ASSIGN(const Results::Peaks peaks, MeasurePeaks(ops_, kernels_));
  // Any machine that this runs on, under any sanitizer: orders of magnitude.
  EXPECT_GT(peaks.f32_flops_per_second(), 1e6);
  EXPECT_GT(peaks.int8_ops_per_second(), 1e6);
  EXPECT_GT(peaks.bytes_per_second(), 1e6);
  EXPECT_LT(peaks.bytes_per_second(), 1e13);
  EXPECT_GT(peaks.seconds_per_call(), 0);
  EXPECT_LT(peaks.seconds_per_call(), 1e-2);

  const std::string folder = ::testing::TempDir() + "/peaks";
  std::filesystem::remove_all(folder);
  const std::string file = PeaksFile(folder);
  EXPECT_THAT(ReadPeaks(file), StatusIs(absl::StatusCode::kNotFound, HasSubstr(file)));
  ASSERT_OK(WritePeaks(file, peaks));
  ASSERT_OK_AND_ASSIGN(const Results::Peaks read, ReadPeaks(file));
  EXPECT_EQ(read.DebugString(), peaks.DebugString());
  EXPECT_EQ(ToMachinePeaks(read).int8_ops_per_second, peaks.int8_ops_per_second());
}

TEST(Peaks, AFileThatIsNotOneIsRefused) {
  const std::string file = PeaksFile(::testing::TempDir());
  for (const char* text : {"", "f32_flops_per_second: -1", "nonsense", "f32_flops_per_second: inf"}) {
    ASSERT_OK(WriteFileAtomic(file, text));
    EXPECT_THAT(ReadPeaks(file), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("four positive numbers")));
  }
  Results::Peaks other;
  other.set_f32_flops_per_second(1);
  other.set_int8_ops_per_second(1);
  other.set_bytes_per_second(1);
  other.set_seconds_per_call(1);
  other.set_cpu("another CPU");
  ASSERT_OK(WritePeaks(file, other));
  EXPECT_THAT(ReadPeaks(file), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("of another CPU")));
}

TEST(SlowerThreads, BeyondNoiseAtOneBatchOnAQuietMachine) {
  Results::Variant variant;
  variant.set_name("fp32");
  const auto add = [&variant](int batch, int threads, double ms, double others = 0) {
    auto* measurement = variant.add_measurements();
    measurement->set_batch(batch);
    measurement->set_threads(threads);
    measurement->mutable_latency_ms()->set_median(ms);
    measurement->mutable_latency_ms()->set_p90(ms == 30 ? 70 : ms);
    measurement->set_other_cores_busy(others);
  };
  add(1, 1, 6.5);
  add(1, 2, 21);
  add(1, 4, 6.6);  // Within noise.
  add(16, 1, 100);
  add(16, 2, 60);
  add(16, 4, 70);
  add(32, 1, 10);
  add(32, 2, 20, 0.5);
  add(64, 1, 30);  // Whose runs are up to 70.
  add(64, 2, 60);
  const std::vector<std::string> warnings = MarkSlowerThreads(&variant);
  ASSERT_EQ(warnings.size(), 2);
  EXPECT_EQ(warnings[0], "variant fp32, batch 1: 2 threads take 21 ms, 1 only 6.5");
  EXPECT_EQ(warnings[1], "variant fp32, batch 16: 4 threads take 70 ms, 2 only 60");
  EXPECT_EQ(variant.measurements(1).slower_than_threads(), 1);
  EXPECT_EQ(variant.measurements(5).slower_than_threads(), 2);
  for (int i : {0, 2, 3, 4, 6, 7, 8, 9}) EXPECT_EQ(variant.measurements(i).slower_than_threads(), 0) << i;
}

}  // namespace
}  // namespace fuselage::harness
