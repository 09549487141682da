// A calibration that is divided into parts, by one process and by several: the graph is that of one part.
#include "passes/quantize/calibration_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "absl/strings/match.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/quantize/quantize.h"

namespace fuselage::quantize {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kNetwork[] = R"(graph @g {
  param @w: f32[4,64] = seed(1)
  module @fc = linear(weight=@w)
  %x: f32[1,64] = placeholder
  %r: f32[1,64] = call_function relu(%x)
  %fc: f32[1,4] = call_module @fc(%r)
  output(%fc)
}
)";

// Samples of unlike ranges, in parts.
class PartsRunner : public passes::Runner {
 public:
  PartsRunner(int samples, int parts) : samples_(samples), parts_(parts) {}

  absl::Status ForEachSample(
      const ir::Graph&, absl::Span<const ir::Node* const>,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>&) override {
    return absl::InternalError("all at once");
  }
  int Parts() const override { return parts_; }
  absl::Status ForEachSampleOfPart(
      int part, const ir::Graph&, absl::Span<const ir::Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) override {
    for (int sample = samples_ * part / parts_; sample < samples_ * (part + 1) / parts_; ++sample) {
      before_(sample);
      std::vector<Tensor> tensors;
      for (const ir::Node* node : nodes) {
        Tensor& tensor = tensors.emplace_back(SeededTensor(node->tensor_type(), 100 * tensors.size() + sample));
        for (int64_t i = 0; i < tensor.num_elements(); ++i) {
          tensor.data<float>()[i] *= std::ldexp(1.0f, sample * 7 % 12 - 6);
        }
        if (sample == poisoned_) tensor.data<float>()[3] = std::nanf("");
      }
      std::vector<const Tensor*> values;
      for (const Tensor& tensor : tensors) values.push_back(&tensor);
      RETURN_IF_ERROR(visit(sample, values));
      ++visited_;
    }
    return absl::OkStatus();
  }
  std::string DataKey() const override { return "data"; }

  PartsRunner& Poison(int sample) { return poisoned_ = sample, *this; }
  PartsRunner& Before(std::function<void(int sample)> before) { return before_ = std::move(before), *this; }
  int visited() const { return visited_; }

 private:
  const int samples_, parts_;
  int poisoned_ = -1, visited_ = 0;
  std::function<void(int sample)> before_ = [](int) {};
};

std::vector<QuantizeOptions> AllMethods() {
  std::vector<QuantizeOptions> methods(5);
  methods[0].mutable_observer()->mutable_min_max();
  methods[1].mutable_observer()->mutable_moving_average()->set_momentum(0.9);
  methods[2].mutable_observer()->mutable_percentile()->set_percent(99);
  methods[3].mutable_observer()->mutable_mse();
  methods[4].mutable_observer()->mutable_entropy();
  return methods;
}

class PartsTest : public ::testing::Test {
 protected:
  PartsTest() : folder_(::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    ops::RegisterAll(ops_);
    Forget();
  }

  void Forget() const { std::filesystem::remove_all(folder_); }

  // The quantized graph, to the bit. Biases are corrected on all samples at once.
  absl::StatusOr<std::string> Run(PartsRunner& runner, QuantizeOptions options, const std::string& folder) {
    options.set_correct_bias(false);
    const std::unique_ptr<ir::Graph> graph = *ir::Parse(kNetwork, ops_);
    passes::Remarks remarks;
    RETURN_IF_ERROR(Quantize(options, &runner, folder).Run(*graph, remarks).status());
    remarks_ = remarks.ToString();
    return ir::Print(*graph);
  }
  std::string GraphOf(PartsRunner& runner, const QuantizeOptions& options, const std::string& folder) {
    const absl::StatusOr<std::string> graph = Run(runner, options, folder);
    EXPECT_OK(graph);
    return graph.ok() ? *graph : "";
  }
  std::string Whole(int samples, const QuantizeOptions& options) {
    PartsRunner runner(samples, 1);
    return GraphOf(runner, options, "");
  }

  std::vector<std::string> Files(const std::string& prefix) const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (absl::StartsWith(name, prefix) && absl::EndsWith(name, ".textproto")) files.push_back(entry.path().string());
    }
    return files;
  }

  const std::string folder_;
  ir::OpRegistry ops_;
  std::string remarks_;
};

TEST_F(PartsTest, AnyNumberIsTheWhole) {
  for (const QuantizeOptions& options : AllMethods()) {
    for (const int samples : {1, 23}) {
      const std::string whole = Whole(samples, options);
      for (const int parts : {1, 2, 7, 30}) {
        for (const std::string& folder : {std::string(), folder_}) {
          Forget();
          PartsRunner runner(samples, parts);
          EXPECT_EQ(GraphOf(runner, options, folder), whole) << parts << " of " << samples;
          EXPECT_EQ(runner.visited(), samples);
          EXPECT_THAT(remarks_, HasSubstr(absl::StrCat("calibrated on ", samples, " samples")));
        }
      }
    }
  }
}

TEST_F(PartsTest, MethodsWithOneStateShareIt) {
  int visited = 0;
  for (const QuantizeOptions& options : AllMethods()) {
    const std::string whole = Whole(23, options);
    PartsRunner runner(23, 7);
    EXPECT_EQ(GraphOf(runner, options, folder_), whole);
    visited += runner.visited();
  }
  EXPECT_EQ(visited, 3 * 23) << "mse and entropy read the histograms of percentile";
  EXPECT_THAT(remarks_, AllOf(HasSubstr("calibrated on 23 samples"), HasSubstr("saw 0 of 7 parts of the samples")));
  EXPECT_EQ(Files("calibration-part-").size(), 3 * 7);
}

// What others left undone, and what they left damaged.
TEST_F(PartsTest, GoesOnWhereItWas) {
  const QuantizeOptions options = AllMethods()[3];
  const std::string whole = Whole(21, options);
  PartsRunner first(21, 7);
  ASSERT_OK(Run(first, options, folder_));
  for (const std::string& path : Files("calibration-")) {
    if (!absl::StrContains(path, "-part-")) std::filesystem::remove(path);
  }
  const std::vector<std::string> parts = Files("calibration-part-");
  ASSERT_EQ(parts.size(), 7);
  std::filesystem::remove(parts[0]);
  std::ofstream(parts[1]) << "samples: 3";
  std::filesystem::copy_file(parts[3], parts[2], std::filesystem::copy_options::overwrite_existing);
  PartsRunner second(21, 7);
  EXPECT_EQ(GraphOf(second, options, folder_), whole);
  EXPECT_EQ(second.visited(), 3 * 3);
  EXPECT_THAT(remarks_, HasSubstr("saw 3 of 7 parts of the samples"));
  EXPECT_THAT(remarks_, HasSubstr("warning: not used: " + parts[1] + ": its fingerprint is that of other contents"));
  EXPECT_THAT(remarks_, HasSubstr("warning: not used: " + parts[2] + ": it is about other data"));
}

TEST_F(PartsTest, AnotherGraphOrNumberOfPartsIsAnotherFile) {
  const QuantizeOptions options = AllMethods()[0];
  PartsRunner two(8, 2), four(8, 4);
  ASSERT_OK(Run(two, options, folder_));
  for (const std::string& path : Files("calibration-")) {
    if (!absl::StrContains(path, "-part-")) std::filesystem::remove(path);
  }
  ASSERT_OK(Run(four, options, folder_));
  EXPECT_EQ(four.visited(), 8);
  EXPECT_EQ(Files("calibration-part-").size(), 2 + 4);
}

TEST_F(PartsTest, ASampleThatIsNotFiniteIsNamed) {
  for (const int parts : {1, 2, 7}) {
    for (const int poisoned : {0, 9, 22}) {
      PartsRunner runner(23, parts);
      EXPECT_THAT(Run(runner.Poison(poisoned), AllMethods()[4], folder_),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr(absl::StrCat("calibration sample ", poisoned, ": %x: element 3 is nan"))));
    }
  }
  EXPECT_EQ(Files("calibration-").size(), Files("calibration-part-").size()) << "no ranges";
}

TEST_F(PartsTest, AFolderThatCannotBeWrittenIsNoError) {
  std::ofstream(folder_) << "a file";
  const std::string whole = Whole(23, AllMethods()[2]);
  PartsRunner runner(23, 7);
  EXPECT_EQ(GraphOf(runner, AllMethods()[2], folder_), whole);
  EXPECT_EQ(runner.visited(), 23);
  EXPECT_THAT(remarks_, HasSubstr("warning: not shared: "));
}

// Seven processes, of which one is killed in the middle of its first part: all others have the graph of one process,
// and each part but that one was observed once.
TEST_F(PartsTest, ADeadProcessCostsItsPartOnly) {
  constexpr int kProcesses = 7, kSamples = 60, kParts = 20;
  for (const QuantizeOptions& options : AllMethods()) {
    Forget();
    std::filesystem::create_directories(folder_);
    const std::string whole = Whole(kSamples, options), log = folder_ + "/log";
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        PartsRunner runner(kSamples, kParts);
        runner.Before([&](int sample) {
          std::ofstream(log, std::ios::app) << absl::StrCat(sample, "\n") << std::flush;
          if (i == 3 && sample % 3 == 1) {
            std::ofstream(folder_ + "/dead") << "";
            raise(SIGKILL);
          }
          // Each holds a part of its own until then.
          while (i != 3 && !std::filesystem::exists(folder_ + "/dead")) usleep(100);
        });
        const auto graph = Run(runner, options, folder_);
        _exit(graph.ok() && *graph == whole ? 0 : 1);
      }
      children.push_back(child);
    }
    for (int i = 0; i < kProcesses; ++i) {
      int status = 0;
      ASSERT_EQ(waitpid(children[i], &status, 0), children[i]);
      if (i == 3) {
        EXPECT_TRUE(WIFSIGNALED(status)) << status;
      } else {
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "process " << i << ": " << status;
      }
    }
    std::map<int, int> seen;
    std::ifstream lines(log);
    for (int sample; lines >> sample;) ++seen[sample];
    EXPECT_EQ(seen.size(), kSamples);
    int twice = 0;
    for (const auto& [sample, times] : seen) {
      EXPECT_LE(times, 2) << sample;
      twice += times == 2;
    }
    EXPECT_EQ(twice, 2) << "the sample of that part before the one that killed, and that one";
  }
}

}  // namespace
}  // namespace fuselage::quantize
