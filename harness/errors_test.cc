// What a run says of mistakes in flags, config, model and data, and its exit codes.
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/cli.h"
#include "harness/testing/runs.h"
#include "harness/testing/testing.h"
#include "runtime/cuda/backend.h"

namespace fuselage::harness {
namespace {

using ::testing::HasSubstr;
using testing::MakeWorkplace;
using testing::Outcome;
using testing::Overwrite;
using testing::ReadResults;
using testing::RunTiny;
using testing::Workplace;

constexpr char kFast[] = "benchmark { batches: 1 repetitions: 3 min_time_ms: 1 }";

class HarnessErrors : public ::testing::Test {
 protected:
  void Expect(int code, const std::string& message, std::vector<std::string> args = {}) {
    const Outcome outcome = RunTiny(place_, std::move(args));
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("error: "));
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  std::string model() const { return place_.folder + "/tiny.onnx"; }
  const Workplace place_ = MakeWorkplace(::testing::UnitTest::GetInstance()->current_test_info()->name(), kFast);
};

TEST_F(HarnessErrors, MisspeltFlag) { Expect(kUsage, "did you mean --limit?", {"--limt=3"}); }

TEST(HarnessOutput, ThatCannotBeWritten) {
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(RunCommand({"--help"}, {out, err}), kIo);
  EXPECT_THAT(err.str(), HasSubstr("error: cannot write all of the output"));
}

TEST_F(HarnessErrors, NoModel) {
  Overwrite(place_.config, "print_graphs: true");
  Expect(kUsage, "tiny.textproto: model.path is empty, want an .onnx or .ir file, here or by --model");
  EXPECT_EQ(RunTiny(place_, {"--model=" + model()}).code, kOk);
}

TEST_F(HarnessErrors, MisspeltConfigField) {
  Overwrite(place_.config, "modle { path: \"x\" }");
  Expect(kUsage, "tiny.textproto:1:7: ");
}

TEST_F(HarnessErrors, UnknownStep) {
  const std::string text = *ReadFile(place_.config);
  Overwrite(place_.config, text + "variants { name: \"x\" after: \"fussion\" }");
  Expect(kUsage, "did you mean \"fusion\"?");
}

TEST_F(HarnessErrors, PassesOfOneVariant) {
  const std::string text = *ReadFile(place_.config);
  const auto with = [&](const std::string& steps) {
    Overwrite(place_.config, text + "variants { name: \"x\" after: \"fusion\" pipeline { steps { " + steps + " } } }");
  };
  with("");
  Expect(kUsage, "variant x: pipeline: a step holds neither a pass nor a fixed_point");
  with("pass { [type.googleapis.com/fuselage.QuantizOptions] {} }");
  Expect(kUsage, "did you mean \"fuselage.QuantizeOptions\"?");
  with("pass { [type.googleapis.com/fuselage.HarnessConfig.Gates] {} }");
  Expect(kUsage, "variant x: pipeline: ");
  with("pass { [type.googleapis.com/fuselage.QuantizeOptions] { skip: \"nothing\" } }");
  Expect(kInvalidInput, "variant x: quantize: skip: 'nothing' fits no node and no module");
}

TEST_F(HarnessErrors, NoCuda) {
  if (runtime::cuda::OpenBackend().ok()) GTEST_SKIP() << "this build has CUDA, and this machine a GPU";
  Expect(kUsage, "cannot run on cuda: ", {"--backend=cuda"});
  EXPECT_FALSE(FileExists(place_.out + "/results.json"));
}

TEST_F(HarnessErrors, EmptyCalibrationSet) {
  std::string text = *ReadFile(place_.config);
  text.replace(text.find("images: 16"), 10, "images: 0");
  Overwrite(place_.config, text);
  Expect(kUsage, "the calibration set is empty");
}

TEST_F(HarnessErrors, MissingDatasetNamesThePackage) {
  std::filesystem::remove(place_.folder + "/train-images-idx3-ubyte.gz");
  Expect(kIo, "dataset-fashion-mnist");
}

TEST_F(HarnessErrors, MissingModel) { Expect(kIo, "none.onnx", {"--model=" + place_.folder + "/none.onnx"}); }

TEST_F(HarnessErrors, Constants) {
  Expect(kUsage, "found the value 'rate', wanted name:numbers", {"--constant=rate"});
  Expect(kUsage, "found a constant for 'rate', no input", {"--constant=rate:1"});
  Expect(kUsage, "by --constant=NAME:NUMBERS", {"--constant=rate:1"});
}

TEST_F(HarnessErrors, MeanAndStd) {
  const std::string text = *ReadFile(place_.config), given = "mean: 0.5 std: 0.5";
  const auto with = [&](const std::string& other) {
    Overwrite(place_.config, absl::StrReplaceAll(text, {{given, other}}));
  };
  for (const std::string input : {"", "input: PIXELS "}) {
    with(input + "std: 0");
    Expect(kUsage, "std is 0, want > 0");
    with(input + "mean: [1, 2]");
    Expect(kUsage, "mean has 2 values, want 1 or one for each of 3 channels");
  }
}

TEST_F(HarnessErrors, IrModels) {
  const std::string ir = place_.folder + "/m.ir";
  Overwrite(ir, "graph @g {\n  %x: f32[1,3] = placeholder\n  output(%y)\n}");
  Overwrite(place_.folder + "/m.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
  Expect(kInvalidInput, "m.ir:3:", {"--model=" + ir});
  Expect(kUsage, "shapes are for .onnx files", {"--model=" + ir, "--shape=x:1,3"});
  Expect(kUsage, "constant inputs are for .onnx files", {"--model=" + ir, "--constant=x:1"});
  Expect(kUsage, "chosen outputs are for .onnx files", {"--model=" + ir, "--output=x"});
  Overwrite(ir,
            "graph @g {\n  %x: f32[2] = placeholder\n"
            "  %q: (i8[2], f32[]) = call_function dynamic_quantize_symmetric(%x)\n  output(%q)\n}");
  Expect(kInvalidInput, "m.ir: output %q is (i8[2], f32[]), want a tensor", {"--model=" + ir});
  Overwrite(ir, "graph @g {\n  %x: f32[1,3] = placeholder\n  output(%x)\n}");
  Expect(kInvalidInput, "input %x is f32[1,3], want f32 [batch, channels, height, width]", {"--model=" + ir});
  Expect(kInvalidInput, "m.ir: input %x is f32[1,3], want f32 [batch, channels, height, width], to take its bytes",
         {"--model=" + ir, "--pixels"});
  Overwrite(place_.config, "model { path: \"" + ir + "\" } print_graphs: true");
  Overwrite(ir, "graph @g {\n  %x: f32[1,3] = placeholder\n  %y: f32[2,3] = placeholder\n  output(%x)\n}");
  const Outcome outcome = RunTiny(place_, {});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("a sample is a whole run"));
}

TEST_F(HarnessErrors, TruncatedModelLeavesAnIncompleteReport) {
  const std::string bytes = *ReadFile(model());
  Overwrite(model(), bytes.substr(0, bytes.size() / 2));
  Expect(kInvalidInput, "tiny.onnx");
  EXPECT_EQ(ReadResults(place_.out).status(), "INCOMPLETE");
  EXPECT_THAT(ReadResults(place_.out).error(), HasSubstr("tiny.onnx"));
}

TEST_F(HarnessErrors, UnknownOperator) {
  std::string bytes = *ReadFile(model());
  bytes.replace(bytes.find("GlobalAveragePool"), 17, "GlobalAveragePoof");
  Overwrite(model(), bytes);
  Expect(kUnsupported, "GlobalAveragePoof");
  Expect(kUnsupported, "by model.outputs, or by --output=NAME");
  Expect(kUsage, "found no node that computes it; did you mean \"logits\"?", {"--output=logit"});
  const Outcome outcome = RunTiny(place_, {"--explain", "--output=r2"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
}

TEST_F(HarnessErrors, AnOpenDimensionNeedsAShapeFlag) {
  Overwrite(model(), testing::TinyModel("height"));
  Expect(kUsage, "    x:1,3,<height>,16\n");
  const Outcome outcome = RunTiny(place_, {"--shape=x:1,3,16,16"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
}

TEST_F(HarnessErrors, MemoryLimit) { Expect(kResourceLimit, "bytes", {"--max_memory=1K"}); }

TEST_F(HarnessErrors, UnwritableOut) { Expect(kIo, "/tiny.onnx/out", {"--out=" + model() + "/out"}); }

TEST_F(HarnessErrors, AFailedWriteStillPrintsTheTable) {
  ASSERT_EQ(RunTiny(place_).code, kOk);
  // A folder in the place of a dump cannot be replaced by a file: the write fails, as on a full disk.
  std::filesystem::remove(place_.out + "/03.fusion.ir");
  std::filesystem::create_directories(place_.out + "/03.fusion.ir/x");
  const Outcome outcome = RunTiny(place_);
  EXPECT_EQ(outcome.code, kIo) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("03.fusion.ir"));
  EXPECT_THAT(outcome.out, HasSubstr("Variants\n"));
}

}  // namespace
}  // namespace fuselage::harness
