// The workers' protocol, oneDNN's network against our kernels, and a whole run of the tool without Python's packages.
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "frontend/onnx/onnx.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "harness/base/files.h"
#include "harness/results.pb.h"
#include "harness/testing/testing.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/safetensors.h"
#include "ir/testing/matchers.h"
#include "tools/peers/onednn_network.h"

namespace fuselage::peers {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct Outcome {
  int code;
  std::vector<std::string> lines;  // What both streams hold.
};

Outcome RunShell(const std::string& command, const std::string& input = "") {
  const std::string file = ::testing::TempDir() + "/input";
  std::ofstream(file, std::ios::trunc) << input;
  FILE* pipe = popen(absl::StrCat(command, " < ", file, " 2>&1").c_str(), "r");
  std::string text;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) text.push_back(static_cast<char>(c));
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, absl::StrSplit(text, '\n', absl::SkipEmpty())};
}

std::vector<double> Numbers(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<double>(stream), std::istream_iterator<double>()};
}

// The tiny network after a whole run of the tool with our workers and oneDNN's.
class PeersTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    place_ = new harness::testing::Workplace(harness::testing::MakeWorkplace("peers"));
    outcome_ = new Outcome(RunShell(
        absl::StrCat("/usr/bin/python3 -B tools/peers/peers.py --config=", place_->config, " --out=", place_->out,
                     " --contestants=fuselage,onednn --batches=1,3 --threads=1", " --repetitions=2 --min_time_ms=0")));
  }

  Outcome Work(const std::string& worker, const std::string& arguments, const std::string& input = "",
               std::string model = "") {
    if (model.empty()) model = worker == "fuselage_worker" ? "/int8" : "/int8_lowered";
    return RunShell(absl::StrCat("tools/peers/", worker, " ", place_->out, model, " ", place_->out,
                                 "/samples.safetensors ", arguments),
                    input);
  }

  static harness::testing::Workplace* place_;
  static Outcome* outcome_;
};
harness::testing::Workplace* PeersTest::place_ = nullptr;
Outcome* PeersTest::outcome_ = nullptr;

TEST_F(PeersTest, AWholeRun) {
  ASSERT_EQ(outcome_->code, 0) << ::testing::PrintToString(outcome_->lines);
  Results results;
  const auto text = harness::ReadFile(place_->out + "/results.json");
  ASSERT_OK(text);
  const auto parsed = google::protobuf::util::JsonStringToMessage(*text, &results);
  ASSERT_TRUE(parsed.ok()) << parsed.ToString();
  std::vector<std::string> ours, peers;
  for (const auto& variant : results.variants()) ours.push_back(variant.name());
  EXPECT_THAT(ours, IsSupersetOf({"fuselage int8", "fuselage fp32"}));
  EXPECT_EQ(ours[0], "fuselage fp32") << "the baseline";
  for (const auto& measurement : results.variants(0).measurements()) EXPECT_EQ(measurement.speedup(), 1);
  for (const auto& peer : results.peers()) {
    peers.push_back(peer.name());
    EXPECT_THAT(peer.version(), StartsWith("2."));
    ASSERT_THAT(peer.measurements(), SizeIs(2));
    EXPECT_EQ(peer.measurements(0).batch(), 1);
    EXPECT_EQ(peer.measurements(1).batch(), 3);
    for (const auto& measurement : peer.measurements()) {
      EXPECT_GE(measurement.repetitions(), 2);
      EXPECT_THAT(measurement.latency_ms().min(), Gt(0));
      EXPECT_GE(measurement.latency_ms().p99(), measurement.latency_ms().median());
      EXPECT_EQ(measurement.samples_ms_size(), std::min(500, measurement.repetitions()));
      EXPECT_GT(measurement.speedup(), 0);
      EXPECT_EQ(measurement.has_ratio(), std::find(ours.begin(), ours.end(), peer.compared_with()) != ours.end());
    }
  }
  EXPECT_THAT(peers, IsSupersetOf({"onednn convolutions", "onednn network"}));
  EXPECT_EQ(results.status(), "complete");
  EXPECT_THAT(results.passes(), SizeIs(8));
  EXPECT_THAT(harness::ReadFile(place_->out + "/report.html").value_or(""),
              AnyOf(HasSubstr("\"name\": \"onednn network\""), HasSubstr("<title>No report</title>")));
}

TEST_F(PeersTest, WorkersSpeakTheProtocol) {
  for (const std::string worker : {"fuselage_worker", "onednn_worker"}) {
    const std::string mode = worker == "fuselage_worker" ? "best" : "network";
    const Outcome outcome = Work(worker, "2 1 " + mode, "run 3\noutputs\n");
    EXPECT_EQ(outcome.code, 0);
    ASSERT_THAT(outcome.lines, SizeIs(3)) << worker;
    EXPECT_THAT(outcome.lines[0], StartsWith("ready "));
    EXPECT_THAT(Numbers(outcome.lines[1]), ElementsAre(Gt(0), Gt(0), Gt(0)));
    EXPECT_THAT(Numbers(outcome.lines[2]), SizeIs(2 * 10));
  }
}

TEST_F(PeersTest, WorkersSayWhatIsWrong) {
  const auto expect = [&](const std::string& arguments, const std::string& input, const std::string& error) {
    const Outcome outcome = Work("onednn_worker", arguments, input);
    EXPECT_EQ(outcome.code, 1);
    ASSERT_FALSE(outcome.lines.empty());
    EXPECT_THAT(outcome.lines.back(), AllOf(StartsWith("error "), HasSubstr(error)));
  };
  expect("0 1 network", "", "usage: ");
  expect("1 1 layers", "", "network or convolutions");
  expect("4 1 network", "", "want f32[4,3,16,16] or more samples");
  expect("1 1 network", "walk 3\n", "found \"walk 3\"");
  expect("1 1 network", "run 0\n", "found \"run 0\"");
}

// What those on a GPU say where there is none. Where there is one, the tool's own run is the test.
TEST_F(PeersTest, WorkersOnAGpuSayThatThereIsNone) {
  EXPECT_THAT(Work("cudnn_worker", "1 1 network").lines, ElementsAre("error mode network, want int8 or fp16"));
  if (std::ifstream("/dev/nvidiactl").good()) GTEST_SKIP() << "there is an NVIDIA driver";
  for (const std::string mode : {"int8", "fp16"}) {
    const Outcome outcome = Work("cudnn_worker", "1 1 " + mode);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.lines, ElementsAre(StartsWith("error no CUDA device: ")));
  }
  EXPECT_THAT(Work("fuselage_worker", "1 1 cuda").lines, ElementsAre(AllOf(StartsWith("error "), HasSubstr("CUDA"))));
  const Outcome outcome = RunShell(absl::StrCat("/usr/bin/python3 -B tools/peers/python_worker.py ", place_->out,
                                                "/fp32.onnx ", place_->out, "/samples.safetensors 1 1 torch"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.lines.back(), AnyOf(HasSubstr("no CUDA device for torch"), HasSubstr("No module named")));
}

// On the CPU in floats: there the model is the same as on a GPU.
TEST_F(PeersTest, TorchComputesTheSameNetwork) {
  if (RunShell("/usr/bin/python3 -c 'import numpy, onnx, torch'").code != 0)
    GTEST_SKIP() << "no torch here, or no onnx";
  const Outcome theirs = RunShell(absl::StrCat(
      "/usr/bin/python3 -B -c \"import sys; sys.path.insert(0, 'tools/peers')\nimport torch, python_worker\n"
      "image = torch.from_numpy(python_worker.read_safetensors('",
      place_->out, "/samples.safetensors')['input 0'].copy())\nmodel = python_worker.TorchModel('", place_->out,
      "/fp32.onnx', 'cpu', torch.float32)\nprint(*model(image)[0].flatten().tolist())\""));
  ASSERT_EQ(theirs.code, 0) << ::testing::PrintToString(theirs.lines);
  const Outcome ours = Work("fuselage_worker", "3 1 best", "outputs\n", "/fp32");
  const std::vector<double> wanted = Numbers(ours.lines.back()), found = Numbers(theirs.lines.back());
  ASSERT_THAT(found, SizeIs(wanted.size()));
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-4 * std::abs(wanted[i]) + 1e-5);
}

// oneDNN rounds in another order, so a code may differ by one. Without VNNI its 16-bit sums saturate, and how many do
// is up to the network: nothing follows for the outputs.
TEST_F(PeersTest, OnednnComputesTheSameNetwork) {
  const Outcome ours = Work("fuselage_worker", "3 1 best", "outputs\n");
  const Outcome theirs = Work("onednn_worker", "3 1 network", "outputs\n");
  ASSERT_THAT(ours.lines, SizeIs(2));
  ASSERT_THAT(theirs.lines, SizeIs(2));
  const std::vector<std::string> ready = absl::StrSplit(theirs.lines[0], ' ');
  for (const char* saturating : {"sse41", "avx", "avx2", "avx512_core"}) {
    if (ready.back() == saturating) GTEST_SKIP() << "oneDNN's " << saturating << " kernels saturate 16-bit sums";
  }
  const std::vector<double> wanted = Numbers(ours.lines[1]), found = Numbers(theirs.lines[1]);
  ASSERT_EQ(found.size(), wanted.size());
  double error = 0, signal = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    error += (found[i] - wanted[i]) * (found[i] - wanted[i]);
    signal += wanted[i] * wanted[i];
  }
  EXPECT_LT(error, 1e-3 * signal);
}

// The exported model means the lowered network: our frontend reads it, the interpreter runs it. The codes differ only
// where the model rounds a mean or a sum in another order.
TEST_F(PeersTest, TheExportedModelHasOurCodes) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  ASSERT_OK_AND_ASSIGN(const auto model, onnx::Load(place_->out + "/int8_codes.onnx", ops));
  ASSERT_OK_AND_ASSIGN(const ir::TensorMap samples, ir::ReadSafetensors(place_->out + "/samples.safetensors"));
  const Tensor& all = *samples.at("input 0");
  Tensor first(model->placeholders()[0]->tensor_type());
  std::memcpy(first.raw_data(), all.raw_data(), first.byte_size());
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> found, interpreter::Run(*model, {&first, 1}));
  int64_t codes = 0, within_one = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const Tensor& wanted = *samples.at(model->output()->operand(i)->name());
    if (found[i].dtype() != DType::kU8) continue;
    for (int64_t j = 0; j < found[i].num_elements(); ++j) {
      ++codes;
      within_one += std::abs(found[i].At(j) - wanted.At(j)) <= 1;
    }
  }
  EXPECT_GE(codes, (3 + 8 + 8) * 16 * 16);  // The input and both convolutions have so many.
  EXPECT_GE(within_one, codes * 0.999);
}

std::string Peers(const std::string& arguments) {
  return absl::StrCat("/usr/bin/python3 -B tools/peers/peers.py --config=harness/configs/default.textproto ",
                      "--contestants=fuselage,onednn --batches=1,2 --threads=1 --repetitions=2 --min_time_ms=0 ",
                      arguments);
}

TEST(Peers, ANetworkOfTwoInputs) {
  const harness::testing::Workplace place = harness::testing::MakeIrWorkplace("two", R"(graph @g {
  param @w: f32[4,4] = seed(1)
  %ids: i64[1,3] = placeholder
  %x: f32[1,3,4] = placeholder
  %w: f32[4,4] = get_attr @w
  %rows: f32[1,3,4] = call_function index_select(%w, %ids, dim=0)
  %sum: f32[1,3,4] = call_function add(%rows, %x)
  output(%sum)
})",
                                                                              "");
  const Outcome outcome = RunShell(Peers(absl::StrCat("--model=", place.folder, "/tiny.ir --out=", place.out)));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.lines, AllOf(Contains(HasSubstr("onednn network does not take part: the network has 2 inputs")),
                                   Contains(StartsWith("| fuselage fp32 "))));
  const auto samples = ir::ReadSafetensors(place.out + "/samples.safetensors");
  ASSERT_OK(samples);
  EXPECT_EQ(samples->at("input 0")->type().shape, Shape({2, 3}));
  EXPECT_EQ(samples->at("input 1")->type().shape, Shape({2, 3, 4}));
}

TEST(Peers, TakesTheHarnessFlagsOfANetwork) {
  const std::string folder = harness::testing::MakeWorkplace("open").folder, model = folder + "/open.onnx";
  std::ofstream(model, std::ios::binary) << harness::testing::TinyModel("height");
  const std::string arguments = absl::StrCat("--model=", model, " --out=", folder, "/out");
  const Outcome open = RunShell(Peers(arguments));
  EXPECT_EQ(open.code, 2);
  EXPECT_THAT(open.lines, Contains(HasSubstr("--shape")));
  EXPECT_EQ(RunShell(Peers(absl::StrCat(arguments, " --shape=x:1,3,16,16"))).code, 0);
}

TEST(OnednnNetwork, NamesWhatHasNoPrimitive) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  ASSERT_OK_AND_ASSIGN(const auto graph, ir::Parse(R"(graph @g {
  %x: f32[1,2,4,4] = placeholder
  %y: f32[1,2,4,4] = call_function sigmoid(%x)
  output(%y)
})",
                                                   ops));
  EXPECT_THAT(
      OnednnNetwork::Create(*graph, OnednnNetwork::Part::kNetwork),
      fuselage::testing::StatusIs(absl::StatusCode::kUnimplemented, AllOf(HasSubstr("%y"), HasSubstr("sigmoid"))));
  EXPECT_THAT(OnednnNetwork::Create(*graph, OnednnNetwork::Part::kConvolutions),
              fuselage::testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nothing")));
}

}  // namespace
}  // namespace fuselage::peers
