// Losses, pools with indices, images read between pixels, spectra: forms and errors beyond ONNX's own node tests.
#include <cmath>
#include <string>
#include <vector>

#include "frontend/onnx/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fuselage::onnx {
namespace {

using Ints = std::vector<int64_t>;

// --- Losses.

ModelBuilder Loss(const std::string& op, std::vector<Dim> target, DType dtype = DType::kI64) {
  ModelBuilder model = Model(13, {2, 3});
  model.Input("t", std::move(target), dtype).Initializer("w", F32({3}, {1, 2, 4}));
  return model.Node(op, {"x", "t", "w"}, {"y"}, "loss");
}

TEST(Loss, OfI32TargetsWithWeightsAndWithoutOneClass) {
  ModelBuilder model = Loss("NegativeLogLikelihoodLoss", {2}, DType::kI32);
  model.Int("ignore_index", 7);
  const Tensor x = F32({2, 3}, {-1, -2, -3, -4, -5, -6});
  ExpectOutput(model, {x, Tensor::Of<int32_t>({2}, {1, 7})}, F32({}, {2}));
  ExpectOutput(model.String("reduction", "sum"), {x, Tensor::Of<int32_t>({2}, {1, 7})}, F32({}, {4}));
}

TEST(Loss, Errors) {
  ExpectError(Loss("NegativeLogLikelihoodLoss", {3}), "and a target i64[3], wanted [N, C, d1...] and i32 or i64 [N");
  ExpectError(Loss("SoftmaxCrossEntropyLoss", {2}, DType::kF32), "and a target f32[2]");
  ExpectError(Loss("SoftmaxCrossEntropyLoss", {2}).String("reduction", "max"), "found 'max', wanted none, sum or mean");
  ModelBuilder model = Model(13, {2, 3});
  model.Input("t", {2}, DType::kI64).Initializer("w", F32({2}, {1, 2}));
  ExpectError(model.Node("NegativeLogLikelihoodLoss", {"x", "t", "w"}, {"y"}), "wanted one for each of 3 classes");
}

// --- Pools.

// What a pool takes away, zeros replace.
TEST(MaxUnpool, PutsMaximaBackInEachPlane) {
  ModelBuilder model = Model(12, {2, 1, 2, 4});
  model.Node("MaxPool", {"x"}, {"p", "i"}).Ints("kernel_shape", {2, 2}).Ints("strides", {2, 2});
  model.Node("MaxUnpool", {"p", "i"}, {"y"}).Ints("kernel_shape", {2, 2}).Ints("strides", {2, 2});
  ExpectOutput(model, {F32({2, 1, 2, 4}, {1, 2, 5, 3, 4, 0, 5, 1, -9, -2, -3, -4, -5, -6, -7, -1})},
               F32({2, 1, 2, 4}, {0, 0, 5, 0, 4, 0, 0, 0, 0, -2, 0, 0, 0, 0, 0, -1}));
}

TEST(MaxUnpool, Errors) {
  ModelBuilder model = Model(12, {1, 1, 2, 2});
  model.Input("i", {1, 1, 2, 2}, DType::kI64).Initializer("shape", I64({1, 1, 3, 4}));
  model.Node("MaxUnpool", {"x", "i", "shape"}, {"y"}).Ints("kernel_shape", {2, 2}).Ints("strides", {2, 2});
  ExpectError(model, "input 2: found [1,1,3,4], wanted at least [1,1,4,4]");
  ModelBuilder padded = Model(12, {1, 1, 1});
  padded.Input("i", {1, 1, 1}, DType::kI64).Node("MaxUnpool", {"x", "i"}, {"y"}).Ints("kernel_shape", {2});
  ExpectError(padded.Ints("pads", {1, 1}), "wanted a result with elements");
}

TEST(MaxPool, IndicesByColumnsInAVolume) {
  ModelBuilder model = Model(12, {1, 1, 2, 2, 2});
  model.Node("MaxPool", {"x"}, {"y", "i"}).Ints("kernel_shape", {2, 2, 2}).Int("storage_order", 1);
  model.Output("i", DType::kI64);
  ExpectError(model, "found storage_order = 1 in three dimensions, wanted at most two");
}

// --- Between pixels.

// -1 is the first pixel's edge, or its center with align_corners.
TEST(GridSample, ModesByOpset) {
  for (const int opset : {16, 20}) {
    ModelBuilder model = Model(opset, {1, 1, 1, 2});
    model.Input("grid", {1, 1, 2, 2}).Node("GridSample", {"x", "grid"}, {"y"});
    const std::vector<Tensor> inputs = {F32({1, 1, 1, 2}, {4, 8}), F32({1, 1, 2, 2}, {0, 0, -1, 0})};
    ExpectOutput(model, inputs, F32({1, 1, 1, 2}, {6, 2}));
    ModelBuilder aligned = model;
    ExpectOutput(aligned.Int("align_corners", 1).String("mode", opset == 16 ? "bilinear" : "linear"), inputs,
                 F32({1, 1, 1, 2}, {6, 4}));
    ExpectError(model.String("mode", opset == 16 ? "linear" : "trilinear"), "mode=");
  }
}

TEST(RoiAlign, BoxesByOpset) {
  for (const int opset : {10, 16}) {
    ModelBuilder model = Model(opset, {1, 1, 2, 2});
    model.Initializer("boxes", F32({1, 4}, {0, 0, 2, 2})).Initializer("batch", I64({0}));
    model.Node("RoiAlign", {"x", "boxes", "batch"}, {"y"}).Int("sampling_ratio", 1);
    ExpectOutput(model, {F32({1, 1, 2, 2}, {1, 2, 3, 8})}, F32({1, 1, 1, 1}, {opset < 16 ? 8 : 3.5f}));
    if (opset == 16) ExpectError(model.String("coordinate_transformation_mode", "pixel"), "found 'pixel'");
  }
}

TEST(AffineGrid, OfTheIdentityIsThePixels) {
  ModelBuilder model(20);
  model.Input("x", {1, 2, 3}).Output("y").Initializer("size", I64({1, 5, 2, 2}));
  model.Node("AffineGrid", {"x", "size"}, {"y"});
  const Tensor theta = F32({1, 2, 3}, {1, 0, 0.25f, 0, 1, 0});
  ExpectOutput(model, {theta}, F32({1, 2, 2, 2}, {-0.25f, -0.5f, 0.75f, -0.5f, -0.25f, 0.5f, 0.75f, 0.5f}));
  ExpectOutput(model.Int("align_corners", 1), {theta}, F32({1, 2, 2, 2}, {-0.75f, -1, 1.25f, -1, -0.75f, 1, 1.25f, 1}));
  ModelBuilder other(20);
  other.Input("x", {1, 2, 3}).Output("y").Initializer("size", I64({2, 5, 2, 2}));
  ExpectError(other.Node("AffineGrid", {"x", "size"}, {"y"}), "found theta f32[1,2,3] for a size [2,5,2,2]");
}

TEST(Col2Im, AddsWhereBlocksOverlap) {
  ModelBuilder model = Model(18, {1, 4, 4});
  model.Initializer("image", I64({3, 3})).Initializer("block", I64({2, 2}));
  model.Node("Col2Im", {"x", "image", "block"}, {"y"});
  ExpectOutput(model, {F32({1, 4, 4}, std::vector<float>(16, 1))}, F32({1, 1, 3, 3}, {1, 2, 1, 2, 4, 2, 1, 2, 1}));
  ExpectError(model.Ints("strides", {2, 1}), "wanted [N, C * 4, 2] for these blocks");
}

// --- Spectra.

TEST(Dft, AndBack) {
  ModelBuilder model = Model(17, {1, 4, 1});
  model.Node("DFT", {"x"}, {"f"}).Output("f");
  model.Node("DFT", {"f"}, {"y"}).Int("inverse", 1);
  const Tensor x = F32({1, 4, 1}, {1, 2, 3, 4});
  const std::vector<Tensor> found = Outputs(model, {x});
  EXPECT_THAT(ToDoubles(found[0]),
              ::testing::Pointwise(::testing::DoubleNear(1e-6), std::vector<double>{1, 0, 2, 0, 3, 0, 4, 0}));
  EXPECT_THAT(ToDoubles(found[1]),
              ::testing::Pointwise(::testing::DoubleNear(1e-6), std::vector<double>{10, 0, -2, 2, -2, 0, -2, -2}));
}

TEST(Dft, OfFewerSamplesOrMoreAlongAnyAxis) {
  for (const int64_t length : {2, 6}) {
    ModelBuilder model = Model(20, {3, 1, 1});
    model.Initializer("length", I64({length})).Initializer("axis", Tensor::Scalar<int64_t>(0));
    model.Node("DFT", {"x", "length", "axis"}, {"y"}).Int("onesided", 1);
    const Tensor found = Outputs(model, {F32({3, 1, 1}, {1, 2, 4})})[0];
    EXPECT_EQ(found.shape(), (Shape{length / 2 + 1, 1, 2}));
    EXPECT_NEAR(found.At(0), length == 2 ? 3 : 7, 1e-6);  // The sum.
  }
  ModelBuilder model = Model(20, {3, 1, 1});
  ExpectError(model.Node("DFT", {"x"}, {"y"}).Int("axis", 0), "as an input from then on");
  ModelBuilder last = Model(17, {3, 2});
  ExpectError(last.Node("DFT", {"x"}, {"y"}).Int("axis", -1), "found the axis of real and imaginary parts");
  ModelBuilder triple = Model(17, {3, 3});
  ExpectError(triple.Node("DFT", {"x"}, {"y"}).Int("axis", 0), "wanted [..., samples, 1 or 2]");
}

// A window of zeros but for its first sample picks that sample of each frame.
TEST(Stft, Frames) {
  ModelBuilder model = Model(17, {1, 7, 1});
  model.Initializer("step", Tensor::Scalar<int64_t>(2)).Initializer("window", F32({3}, {2, 0, 0}));
  model.Node("STFT", {"x", "step", "window"}, {"y"});
  ExpectOutput(model, {F32({1, 7, 1}, {1, 2, 3, 4, 5, 6, 7})},
               F32({1, 3, 2, 2}, {2, 0, 2, 0, 6, 0, 6, 0, 10, 0, 10, 0}));
  ModelBuilder flat = Model(17, {1, 7});
  flat.Initializer("step", Tensor::Scalar<int64_t>(2)).Initializer("window", F32({3}, {2, 0, 0}));
  flat.Node("STFT", {"x", "step", "window"}, {"y"});
  ExpectOutput(flat, {F32({1, 7}, {1, 2, 3, 4, 5, 6, 7})}, F32({1, 3, 2, 2}, {2, 0, 2, 0, 6, 0, 6, 0, 10, 0, 10, 0}));
  ModelBuilder longer = Model(17, {1, 2, 1});
  longer.Initializer("step", Tensor::Scalar<int64_t>(2)).Initializer("window", F32({3}, {2, 0, 0}));
  ExpectError(longer.Node("STFT", {"x", "step", "window"}, {"y"}), "found frames of 3, one every 2 samples");
}

TEST(Windows, AreConstants) {
  ModelBuilder model(17);
  model.Input("x", {3}).Output("y").Initializer("size", Tensor::Scalar<int64_t>(3));
  model.Node("HannWindow", {"size"}, {"w"}).Int("periodic", 0).Node("Mul", {"x", "w"}, {"y"});
  ExpectOutput(model, {F32({3}, {5, 5, 5})}, F32({3}, {0, 5, 0}), 1e-6);
  ModelBuilder typed(17);
  typed.Input("x", {3}).Output("y").Initializer("size", Tensor::Scalar<int64_t>(-1));
  ExpectError(typed.Node("HannWindow", {"size"}, {"y"}), "input 0: found -1, wanted one in [0, 2^31)");
}

TEST(MelWeightMatrix, BeyondTheSpectrum) {
  ModelBuilder model(17);
  model.Input("x", {3}).Output("y");
  model.Initializer("bins", Tensor::Scalar<int64_t>(2)).Initializer("length", Tensor::Scalar<int64_t>(8));
  model.Initializer("rate", Tensor::Scalar<int64_t>(100)).Initializer("low", Tensor::Scalar(0.0f));
  model.Initializer("high", Tensor::Scalar(500.0f));
  model.Node("MelWeightMatrix", {"bins", "length", "rate", "low", "high"}, {"y"});
  ExpectError(model, "wanted less than 5");
}

// --- Before opset 7.

TEST(OldOpsets, BroadcastByAttributes) {
  ModelBuilder model = Model(6, {2, 3});
  model.Input("b", {2}).Node("Add", {"x", "b"}, {"y"}).Int("broadcast", 1).Int("axis", 0);
  ExpectOutput(model, {F32({2, 3}, {1, 2, 3, 4, 5, 6}), F32({2}, {10, 20})}, F32({2, 3}, {11, 12, 13, 24, 25, 26}));
  ModelBuilder beyond = Model(6, {2, 3});
  beyond.Input("b", {2}).Node("Mul", {"x", "b"}, {"y"}).Int("broadcast", 1).Int("axis", 2);
  ExpectError(beyond, "found f32[2] at axis 2 of f32[2,3], wanted it to fit");
  ModelBuilder newer = Model(7, {2, 3});
  ExpectError(newer.Node("Sub", {"x", "x"}, {"y"}).Int("broadcast", 1), "wanted none from opset 7 on");
}

TEST(OldOpsets, ASlopeForEachChannel) {
  ModelBuilder model = Model(6, {1, 2, 2});
  model.Initializer("slope", F32({2}, {2, 3})).Node("PRelu", {"x", "slope"}, {"y"});
  ExpectOutput(model, {F32({1, 2, 2}, {-1, 1, -1, -2})}, F32({1, 2, 2}, {-2, 1, -3, -6}));
}

TEST(OldOpsets, BatchNormalizationSaysThatItInfers) {
  ModelBuilder model = Model(6, {1, 1, 2});
  for (const char* name : {"scale", "bias", "mean", "var"}) model.Initializer(name, F32({1}, {1}));
  model.Node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"y"});
  ExpectError(model, "found is_test = 0, wanted inference");
  ExpectOutput(model.Int("is_test", 1).Float("epsilon", 0), {F32({1, 1, 2}, {2, 3})}, F32({1, 1, 2}, {2, 3}));
}

}  // namespace
}  // namespace fuselage::onnx
