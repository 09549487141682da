// What a run takes and gives beside its report: images, NumPy arrays and ONNX files.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/npz/npz.h"
#include "harness/results.pb.h"
#include "harness/testing/runs.h"
#include "harness/testing/testing.h"
#include "ir/base/tensor.h"

namespace fuselage::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MakeWorkplace;
using ::testing::Not;
using testing::Outcome;
using testing::Overwrite;
using testing::ReadResults;
using testing::RunTiny;
using testing::RunWithArgs;
using testing::Workplace;

constexpr char kFast[] = "benchmark { batches: 1 repetitions: 3 min_time_ms: 1 }";

// Images of 20x16 pixels.
void WriteImages(const std::string& folder, int count) {
  std::filesystem::create_directories(folder);
  for (int i = 0; i < count; ++i) testing::WritePng(absl::StrCat(folder, "/", i, ".png"), 20, 16, /*seed=*/i);
}

TEST(Files, ImagesToCalibrateOnAndImagesWithLabels) {
  const Workplace place = MakeWorkplace("images", kFast);
  const std::string photos = place.folder + "/photos", test = place.folder + "/test";
  WriteImages(photos + "/deep", 6);
  WriteImages(test, 4);
  const Outcome calibrated = RunTiny(place, {"--calibrate=" + photos, "--limit=3"});
  ASSERT_EQ(calibrated.code, kOk) << calibrated.err;
  EXPECT_THAT(calibrated.out, AllOf(HasSubstr("Images of images (calibrate), calibrated on 6 (calibrate)"),
                                    HasSubstr("no labels: accuracy not measured\n"), Not(HasSubstr("top-1"))));
  Results results = ReadResults(place.out);
  EXPECT_TRUE(results.dataset().unlabelled());
  EXPECT_GT(results.variants(1).snr_db(), 20);
  EXPECT_FALSE(results.variants(1).has_top1());

  // Over all labels that all images could have, each image is predicted right once.
  const auto labels = [&](const std::string& label) {
    std::string text;
    for (int i = 0; i < 4; ++i) absl::StrAppend(&text, i, ".png ", label, "\n");
    Overwrite(test + "/val.txt", text);
  };
  double top1 = 0;
  for (int label = 0; label < 10; ++label) {
    labels(absl::StrCat(label));
    const Outcome outcome = RunTiny(place, {"--calibrate=" + photos, "--labels=" + test + "/val.txt"});
    ASSERT_EQ(outcome.code, kOk) << outcome.err;
    results = ReadResults(place.out);
    EXPECT_EQ(results.dataset().split(), "labels");
    EXPECT_EQ(results.calibration().split(), "calibrate");
    EXPECT_EQ(results.variants(0).images(), 4);
    EXPECT_THAT(outcome.err, Not(HasSubstr("not an independent one")));
    top1 += results.variants(0).top1();
  }
  EXPECT_EQ(top1, 100);

  // Without images to calibrate on, the labelled ones are: a warning.
  const Outcome both = RunTiny(place, {"--labels=" + test + "/val.txt"});
  ASSERT_EQ(both.code, kOk) << both.err;
  EXPECT_THAT(both.err, HasSubstr("use the same images: the accuracy is not an independent one"));
  EXPECT_EQ(RunTiny(place, {"--calibrate=" + place.folder + "/none"}).code, kIo);
}

constexpr char kTwoInputs[] = R"(graph @two {
  %a: f32[1,4] = placeholder
  %b: f32[1,4] = placeholder
  %sum: f32[1,4] = call_function add(%a, %b)
  %relu: f32[1,4] = call_function relu(%sum)
  output(%relu, %sum, %relu)
})";
constexpr char kTwoInputsConfig[] = R"(pipeline { steps { pass { [type.googleapis.com/fuselage.CleanupOptions] {} } } }
variants { name: "read" after: "input" }
variants { name: "clean" }
benchmark { threads: 1 repetitions: 3 min_time_ms: 1 })";

Tensor Floats(Shape shape, uint64_t seed) {
  return SeededTensor({DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

std::map<std::string, Tensor> ReadNpz(const std::string& path) {
  std::map<std::string, Tensor> tensors;
  auto arrays = npz::Read(path);
  EXPECT_TRUE(arrays.ok()) << arrays.status();
  for (npz::Array& array : *arrays) tensors[array.name] = std::move(array.tensor);
  return tensors;
}

TEST(Files, InputsAndOutputsAsNumpysArrays) {
  const Workplace place = testing::MakeIrWorkplace("npz", kTwoInputs, kTwoInputsConfig);
  const std::string in = place.folder + "/x.npz", out = place.folder + "/y.npz";
  const Tensor a = Floats({5, 4}, 1), b = Floats({5, 4}, 2);
  ASSERT_TRUE(npz::Write(in, {{"b", b}, {"a", a}}).ok());
  const Outcome outcome = RunTiny(place, {"--inputs=" + in, "--save_outputs=" + out});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Inputs of " + in), HasSubstr("outputs: " + out + "\n")));
  EXPECT_EQ(ReadResults(place.out).inputs(), in);
  EXPECT_EQ(ReadResults(place.out).calibration().images(), 5);
  std::map<std::string, Tensor> found = ReadNpz(out);
  EXPECT_EQ(found.size(), 6);
  for (const char* variant : {"read", "clean"}) {
    const Tensor& sum = found[absl::StrCat(variant, "/sum")];
    const Tensor& relu = found[absl::StrCat(variant, "/relu")];
    ASSERT_EQ(sum.shape(), (Shape{5, 4}));
    ASSERT_EQ(relu.shape(), (Shape{5, 4}));
    EXPECT_TRUE(relu.SameBytes(found[absl::StrCat(variant, "/relu_1")]));
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(sum.At(i), a.data<float>()[i] + b.data<float>()[i]);
      EXPECT_EQ(relu.At(i), std::max(0.0, sum.At(i)));
    }
  }

  // Random inputs are given back, and give the same outputs again.
  ASSERT_EQ(RunTiny(place, {"--save_outputs=" + out, "--limit=3"}).code, kOk);
  found = ReadNpz(out);
  ASSERT_EQ(found.size(), 8);
  EXPECT_EQ(found["inputs/a"].shape(), (Shape{3, 4}));
  ASSERT_TRUE(npz::Write(in, {{"a", found["inputs/a"]}, {"b", found["inputs/b"]}}).ok());
  ASSERT_EQ(RunTiny(place, {"--inputs=" + in, "--save_outputs=" + out}).code, kOk);
  EXPECT_TRUE(ReadNpz(out)["clean/relu"].SameBytes(found["clean/relu"]));
}

TEST(Files, EachIsSavedInAFileOfItsOwn) {
  const Workplace place = testing::MakeIrWorkplace("own", kTwoInputs, kTwoInputsConfig);
  const std::string file = place.folder + "/x", model = place.folder + "/tiny.ir";
  Outcome outcome = RunTiny(place, {"--save_onnx=" + file, "--save_outputs=" + place.folder + "/./x"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("save_outputs is " + place.folder + "/./x, as save_onnx is, want a file of its"));
  EXPECT_FALSE(FileExists(file));
  outcome = RunTiny(place, {"--save_fuse=" + model});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("save_fuse is " + model + ", as model is"));
}

TEST(Files, InputsThatDoNotFitTheModel) {
  const Workplace place = testing::MakeIrWorkplace("npz_errors", kTwoInputs, kTwoInputsConfig);
  const std::string in = place.folder + "/x.npz";
  const auto error = [&](const std::vector<npz::Array>& arrays) {
    EXPECT_TRUE(npz::Write(in, arrays).ok());
    const Outcome outcome = RunTiny(place, {"--inputs=" + in});
    EXPECT_EQ(outcome.code, kInvalidInput) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("x.npz: "));
    return outcome.err;
  };
  const Tensor a = Floats({5, 4}, 1);
  EXPECT_THAT(error({{"a", a}, {"c", a}}), HasSubstr("found the array \"c\", wanted the model's inputs: \"a\", \"b\""));
  EXPECT_THAT(error({{"a", a}}), HasSubstr("found no array \"b\""));
  EXPECT_THAT(error({{"a", a}, {"b", Floats({5, 3}, 1)}}),
              HasSubstr("array \"b\": found f32[5,3], wanted f32[n,4], n samples"));
  EXPECT_THAT(error({{"a", Cast(a, DType::kF64)}, {"b", a}}),
              HasSubstr("array \"a\": found f64[5,4], wanted f32[n,4]"));
  EXPECT_THAT(error({{"a", Floats({}, 1)}, {"b", a}}), HasSubstr("array \"a\": found f32[], wanted f32[n,4]"));
  EXPECT_THAT(error({{"a", a}, {"b", Floats({6, 4}, 1)}}), HasSubstr("and 5 as in another input"));
  EXPECT_THAT(error({{"a", Floats({0, 4}, 1)}, {"b", Floats({0, 4}, 1)}}), HasSubstr("found f32[0,4]"));
  Overwrite(in, "no archive");
  EXPECT_EQ(RunTiny(place, {"--inputs=" + in}).code, kInvalidInput);
  EXPECT_EQ(RunTiny(place, {"--inputs=" + place.folder + "/none.npz"}).code, kIo);
  EXPECT_EQ(RunTiny(place, {"--save_outputs=" + place.folder + "/none/y.npz"}).code, kIo);
}

// The network that is written is the one that was measured: read again and lowered, it gives the same bits.
TEST(Files, TheQuantizedNetworkAsOnnx) {
  const Workplace place = MakeWorkplace("save_onnx", kFast);
  const std::string onnx = place.folder + "/int8.onnx", first = place.folder + "/1.npz",
                    second = place.folder + "/2.npz";
  const Outcome outcome = RunTiny(place, {"--save_onnx=" + onnx, "--save_outputs=" + first});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("quantized network: " + onnx + "\n"));
  const std::string fingerprint = ReadResults(place.out).variants(1).logits_fingerprint();

  const Outcome again = RunTiny(place, {"--model=" + onnx, "--save_outputs=" + second});
  ASSERT_EQ(again.code, kOk) << again.err;
  EXPECT_EQ(ReadResults(place.out).variants(1).logits_fingerprint(), fingerprint);
  EXPECT_EQ(ReadResults(place.out).passes(3).matches(), 0) << "quantized already";
  std::map<std::string, Tensor> wanted = ReadNpz(first), found = ReadNpz(second);
  ASSERT_EQ(wanted["int8/logits"].shape(), (Shape{24, 10}));
  EXPECT_TRUE(found["int8/logits"].SameBytes(wanted["int8/logits"]));

  const Outcome explained =
      RunWithArgs({"explain", "--config=" + place.config, "--out=" + place.out, "--save_onnx=" + onnx + "2"});
  ASSERT_EQ(explained.code, kOk) << explained.err;
  EXPECT_EQ(*ReadFile(onnx + "2"), *ReadFile(onnx));
}

// What was compiled once runs to the same bits wherever it is loaded, here through the pipeline again.
TEST(Files, TheCompiledNetwork) {
  const Workplace place = MakeWorkplace("save_fuse", kFast);
  const std::string fuse = place.folder + "/int8.fuse", first = place.folder + "/1.npz",
                    second = place.folder + "/2.npz";
  const Outcome outcome =
      RunTiny(place, {"--save_fuse=" + fuse, "--pack=scalar", "--no_cache", "--save_outputs=" + first});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("compiled network: " + fuse + "\n"));
  const Outcome again = RunTiny(place, {"--model=" + fuse, "--save_outputs=" + second});
  ASSERT_EQ(again.code, kOk) << again.err;
  EXPECT_EQ(ReadResults(place.out).passes(3).matches(), 0) << "quantized already";
  std::map<std::string, Tensor> wanted = ReadNpz(first), found = ReadNpz(second);
  ASSERT_EQ(wanted["int8/logits"].shape(), (Shape{24, 10}));
  EXPECT_TRUE(found["int8/logits"].SameBytes(wanted["int8/logits"]));

  const Outcome compiled =
      RunWithArgs({"compile", "--config=" + place.config, "--out=" + fuse + "2", "--pack=scalar", "--no_cache"});
  ASSERT_EQ(compiled.code, kOk) << compiled.err;
  EXPECT_TRUE(*ReadFile(fuse + "2") == *ReadFile(fuse))
      << "the same remarks too, which name a cache where there is one";
  EXPECT_EQ(RunTiny(place, {"--save_fuse=" + place.folder + "/none/x.fuse"}).code, kIo);
}

}  // namespace
}  // namespace fuselage::harness
