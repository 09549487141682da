// Runs with variants on CUDA: on a fake device (runtime/cuda/fake_api.h), and where there is none.
#include <algorithm>
#include <optional>
#include <sstream>
#include <string>

#include "compiler/library.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/flags.h"
#include "harness/load_config.h"
#include "harness/run.h"
#include "harness/testing/testing.h"
#include "ir/testing/matchers.h"
#include "runtime/cuda/fake_kernels.h"

namespace fuselage::harness {
namespace {

using runtime::cuda::FakeApi;
using runtime::cuda::FakeBackend;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MakeWorkplace;
using testing::Workplace;

constexpr char kBenchmark[] = "benchmark { batches: [1, 3] threads: [1, 2] repetitions: 3 min_time_ms: 1 }\n";
constexpr char kThirdOnCuda[] = "variants { name: \"int8_cuda\" backend: \"cuda\" }\n";

struct Outcome {
  absl::Status status;
  std::string report;
  Results results;
};

using OpenCuda = decltype(RunRequest::open_cuda);

OpenCuda On(FakeApi* api) {
  return [api]() -> absl::StatusOr<std::unique_ptr<runtime::cuda::Backend>> { return FakeBackend::Open(api); };
}

OpenCuda Missing() {
  return [] { return absl::FailedPreconditionError("no GPU here"); };
}

Outcome RunWith(const Workplace& place, OpenCuda open_cuda, const std::string& backend = "",
                std::optional<int> limit = std::nullopt) {
  const SearchPath search = SearchPath::FromEnvironment();
  auto loaded = LoadConfig(place.config, search, compiler::BuiltIn().passes.OptionTypes());
  EXPECT_OK(loaded);
  RunRequest request;
  request.search = search;
  request.config = loaded->config;
  request.open_cuda = std::move(open_cuda);
  Flags flags;
  flags.backend = backend;
  flags.limit = limit;
  ApplyFlags(flags, &request.config);
  EXPECT_OK(MakeWritableFolder(place.out));
  Recorder recorder(place.out);
  std::ostringstream err;
  report::Progress progress(err, false);
  Outcome outcome;
  outcome.status = RunHarness(request, progress, recorder);
  outcome.report = recorder.Finish(outcome.status, 3);
  outcome.results = recorder.Snapshot();
  return outcome;
}

// Each stream has a session on the device, whose copies may run beside the others' kernels.
TEST(Cuda, StreamsShareTheDevice) {
  FakeApi api;
  const Outcome outcome =
      RunWith(MakeWorkplace("streams", std::string(kThirdOnCuda) +
                                           "throughput { streams: [1, 2] load_percent: 50 seconds: 0.01 }"),
              On(&api));
  ASSERT_OK(outcome.status);
  const auto& found = outcome.results.variants(2).throughput();
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found.Get(1).streams(), 2);
  EXPECT_GT(found.Get(1).images_per_second(), 0);
  EXPECT_GT(found.Get(1).scaling(), 0);
}

TEST(Cuda, AVariantBesideThoseOfTheCpu) {
  FakeApi api;
  const Outcome outcome = RunWith(MakeWorkplace("beside", std::string(kBenchmark) + kThirdOnCuda), On(&api));
  ASSERT_OK(outcome.status);
  const Results& results = outcome.results;
  EXPECT_EQ(results.environment().gpu(), "Fake GPU");
  EXPECT_EQ(results.environment().gpu_arch(), "sm_90");
  EXPECT_EQ(results.environment().cuda_driver(), "13.0");
  ASSERT_EQ(results.variants_size(), 3);
  const auto& cpu = results.variants(1);
  const auto& cuda = results.variants(2);
  EXPECT_EQ(cuda.backend(), "cuda");
  EXPECT_EQ(cuda.isa(), "sm_90");
  EXPECT_EQ(cuda.logits_fingerprint(), cpu.logits_fingerprint()) << "the same bits on all devices";
  EXPECT_EQ(cuda.images(), 24);
  ASSERT_EQ(cuda.measurements_size(), 4);
  for (const auto& measurement : cuda.measurements()) {
    EXPECT_GE(measurement.device_ms().median(), 1) << "the fake counts a millisecond between events";
    EXPECT_GT(measurement.device_images_per_second(), 0);
    EXPECT_GT(measurement.peak_memory_bytes(), 0);
    EXPECT_FALSE(measurement.has_predicted_ms()) << "the peaks are the CPU's";
    EXPECT_FALSE(measurement.has_measured_bytes());
  }
  EXPECT_FALSE(cpu.measurements(0).has_device_ms());
  const auto with_snr = [](const Results::Variant& variant) {
    return std::count_if(variant.layers().begin(), variant.layers().end(),
                         [](const Results::Layer& layer) { return layer.has_snr_db(); });
  };
  EXPECT_GT(with_snr(cuda), 0);
  EXPECT_EQ(with_snr(cuda), with_snr(cpu));
  EXPECT_THAT(outcome.report, AllOf(HasSubstr("Fake GPU, sm_90, driver for CUDA 13.0"), HasSubstr("cuda sm_90"),
                                    HasSubstr("device median")));
  EXPECT_EQ(api.live_handles(), 0);
}

TEST(Cuda, AsTheFlagAsksButForTheBaseline) {
  FakeApi api;
  const Outcome outcome = RunWith(MakeWorkplace("flag", kBenchmark), On(&api), "cuda");
  ASSERT_OK(outcome.status);
  ASSERT_EQ(outcome.results.variants_size(), 2);
  EXPECT_EQ(outcome.results.variants(0).backend(), "cpu");
  EXPECT_EQ(outcome.results.variants(1).backend(), "cuda");
  EXPECT_THAT(outcome.report,
              HasSubstr("warning: variant fp32 runs on the CPU: it has operators without CUDA kernels"));
  EXPECT_EQ(outcome.results.variants(1).measurements(0).baseline_backend(), "cpu");
  EXPECT_THAT(outcome.report, HasSubstr("x over cpu"));
}

TEST(Cuda, WhereItIsMissingTheOthersAreMeasured) {
  const Outcome outcome = RunWith(MakeWorkplace("missing", std::string(kBenchmark) + kThirdOnCuda), Missing());
  ASSERT_OK(outcome.status);
  ASSERT_EQ(outcome.results.variants_size(), 3);
  EXPECT_EQ(outcome.results.variants(1).measurements_size(), 4);
  EXPECT_EQ(outcome.results.variants(2).not_run(), "no GPU here");
  EXPECT_EQ(outcome.results.variants(2).measurements_size(), 0);
  EXPECT_THAT(outcome.report, HasSubstr("warning: int8_cuda cannot run on cuda: no GPU here"));
  EXPECT_TRUE(outcome.results.environment().gpu_arch().empty());
}

TEST(Cuda, WhereItIsMissingItsGatesAreNotJudged) {
  const std::string gated = std::string(kBenchmark) + "gates { min_top1: 0 }\n";
  Outcome outcome = RunWith(MakeWorkplace("gated", gated + kThirdOnCuda), Missing());
  EXPECT_EQ(ExitCodeOf(outcome.status), kGateFailed);
  EXPECT_THAT(std::string(outcome.status.message()),
              HasSubstr("min_top1 of int8_cuda is not judged, wanted 0 (not run: no GPU here)"));
  EXPECT_THAT(outcome.report, HasSubstr("not judged"));

  outcome = RunWith(MakeWorkplace("optional", gated + "variants { name: \"x\" backend: \"cuda\" optional: true }"),
                    Missing());
  EXPECT_OK(outcome.status);
  EXPECT_TRUE(outcome.results.gates(2).excused());
}

// The first variant is the baseline even where it cannot run: no other takes its place.
TEST(Cuda, AMissingBaselineHasNoHeir) {
  const Workplace place = MakeWorkplace("heir", std::string(kBenchmark) + "gates { min_speedup: 0 }\n");
  std::string text = *ReadFile(place.config);
  const std::string baseline = "variants { name: \"fp32\"";
  text.replace(text.find(baseline), baseline.size(), baseline + " backend: \"cuda\"");
  ASSERT_OK(WriteFileAtomic(place.config, text));
  const Outcome outcome = RunWith(place, Missing());
  EXPECT_EQ(ExitCodeOf(outcome.status), kGateFailed);
  EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("the baseline fp32 was not run: no GPU here"));
  const auto& int8 = outcome.results.variants(1);
  EXPECT_TRUE(int8.has_top1());
  EXPECT_FALSE(int8.has_agreement_with_fp32());
  ASSERT_EQ(int8.measurements_size(), 4);
  EXPECT_FALSE(int8.measurements(0).has_speedup());
}

TEST(Cuda, WhereNothingElseRunsItIsAUsageError) {
  const Outcome outcome = RunWith(MakeWorkplace("only", kBenchmark), Missing(), "cuda");
  EXPECT_EQ(ExitCodeOf(outcome.status), kUsage);
  EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("fp32, int8 cannot run on cuda: no GPU here"));
  EXPECT_EQ(outcome.results.passes_size(), 0) << "before any work";
}

// Wherever it happens, what was measured before stays.
TEST(Cuda, ALostDeviceLeavesAnIncompleteReport) {
  const Workplace place = MakeWorkplace("lost", std::string(kBenchmark) + kThirdOnCuda);
  constexpr runtime::cuda::Error kIllegalAddress = 700;
  for (int call : {10, 100, 250}) {
    FakeApi api;
    const Outcome outcome = RunWith(place, [&]() -> absl::StatusOr<std::unique_ptr<runtime::cuda::Backend>> {
      auto backend = FakeBackend::Open(&api);
      api.FailAt(call, kIllegalAddress, true);
      return backend;
    });
    EXPECT_EQ(ExitCodeOf(outcome.status), kIo) << outcome.status;
    EXPECT_THAT(outcome.report, AllOf(HasSubstr("INCOMPLETE"), HasSubstr("the device is lost to this process")));
    EXPECT_GT(outcome.results.variants(1).top1(), -1);
    EXPECT_EQ(outcome.results.variants(1).images(), 24) << call;
    EXPECT_EQ(api.live_handles(), 0);
  }
}

// The fake has the reference's bits.
TEST(Cuda, Fp16BesideFp32) {
  constexpr char kVariants[] = R"(
    variants { name: "float" after: "fusion" backend: "reference" }
    variants { name: "half" after: "fusion" backend: "reference" precision: "fp16" }
    variants { name: "half_cuda" after: "fusion" backend: "cuda" precision: "fp16" }
  )";
  FakeApi api;
  const Outcome outcome = RunWith(MakeWorkplace("fp16", std::string(kBenchmark) + kVariants), On(&api),
                                  /*backend=*/"", /*limit=*/4);
  ASSERT_OK(outcome.status);
  const auto &wide = outcome.results.variants(2), &half = outcome.results.variants(3),
             &cuda = outcome.results.variants(4);
  EXPECT_EQ(cuda.backend(), "cuda");
  for (const auto& variant : {wide, half, cuda}) EXPECT_EQ(variant.images(), 4);
  EXPECT_NE(half.logits_fingerprint(), wide.logits_fingerprint());
  EXPECT_EQ(cuda.logits_fingerprint(), half.logits_fingerprint());
  ASSERT_GT(cuda.measurements_size(), 0);
  EXPECT_TRUE(cuda.measurements(0).has_device_ms());
  EXPECT_EQ(std::count_if(cuda.layers().begin(), cuda.layers().end(),
                          [](const Results::Layer& layer) { return layer.op() == "to"; }),
            2);
}

TEST(Cuda, Fp16IsOfAFloatGraph) {
  const Outcome outcome =
      RunWith(MakeWorkplace("fp16_codes", "variants { name: \"half\" backend: \"reference\" precision: \"fp16\" }\n"),
              Missing());
  EXPECT_EQ(ExitCodeOf(outcome.status), kUnsupported);
  EXPECT_THAT(std::string(outcome.status.message()),
              AllOf(HasSubstr("variant half: "), HasSubstr("wanted no codes in a network for FP16")));
}

TEST(Cuda, Fp16OnTheCpuIsAUsageError) {
  const Outcome outcome = RunWith(
      MakeWorkplace("fp16_cpu", "variants { name: \"half\" after: \"fusion\" precision: \"fp16\" }\n"), Missing());
  EXPECT_EQ(ExitCodeOf(outcome.status), kUsage);
  EXPECT_THAT(std::string(outcome.status.message()),
              HasSubstr("variant half: precision fp16 runs on cuda or reference, not on cpu"));
  EXPECT_EQ(outcome.results.passes_size(), 0) << "before any work";
}

TEST(Cuda, Fp16WithoutKernelsNamesTheNodes) {
  FakeApi api;
  const Outcome outcome =
      RunWith(MakeWorkplace("fp16_cuda",
                            "variants { name: \"half\" after: \"input\" backend: \"cuda\" precision: \"fp16\" }\n"),
              On(&api));
  EXPECT_EQ(ExitCodeOf(outcome.status), kUnsupported);
  EXPECT_THAT(std::string(outcome.status.message()),
              AllOf(HasSubstr("variant half: "), HasSubstr("nodes have no CUDA kernel"), HasSubstr("(batch_norm)")));
}

TEST(Cuda, TooLittleMemoryIsAResourceLimit) {
  FakeApi api;
  api.properties.memory_bytes = 1000;
  const Outcome outcome = RunWith(MakeWorkplace("memory", std::string(kBenchmark) + kThirdOnCuda), On(&api));
  EXPECT_EQ(ExitCodeOf(outcome.status), kResourceLimit);
  EXPECT_THAT(std::string(outcome.status.message()),
              AllOf(HasSubstr("variant int8_cuda: cudaMalloc of "), HasSubstr("for the arena: out of memory (2)")));
}

}  // namespace
}  // namespace fuselage::harness
