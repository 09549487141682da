// com.microsoft's operators against the same function in ONNX's own, or against numbers worked out by hand.
#include <cmath>
#include <string>
#include <vector>

#include "frontend/onnx/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fuselage::onnx {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

constexpr char kMicrosoft[] = "com.microsoft";

// Seeded values for the models' inputs.
void ExpectSame(const ModelBuilder& model, const ModelBuilder& wanted, double tolerance = 0) {
  const auto graph = Parse(wanted.Bytes(), "wanted.onnx", Ops());
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<Tensor> inputs;
  for (const ir::Node* placeholder : (*graph)->placeholders()) {
    inputs.push_back(SeededTensor(placeholder->tensor_type(), 3 + inputs.size()));
  }
  const std::vector<Tensor> a = Outputs(model, inputs), b = Outputs(wanted, inputs);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].type(), b[i].type());
    EXPECT_THAT(ToDoubles(a[i]), Pointwise(DoubleNear(tolerance), ToDoubles(b[i]))) << "output " << i;
  }
}

// Inputs x and y in codes, with scales and zero points: x_scale, x_zero_point, ..., and those of the result z.
ModelBuilder Quantized(std::vector<Dim> dims) {
  ModelBuilder model;
  model.Input("x", dims, DType::kU8).Input("y", std::move(dims), DType::kU8).Output("z", DType::kU8);
  const float scales[] = {0.5f, 0.25f, 0.75f};
  const uint8_t zero_points[] = {100, 7, 130};
  for (int i = 0; i < 3; ++i) {
    const std::string name(1, "xyz"[i]);
    model.Initializer(name + "_scale", Tensor::Scalar(scales[i]));
    model.Initializer(name + "_zero_point", Tensor::Scalar(zero_points[i]));
  }
  return model;
}

// The same in QDQ form: dequantized xr and yr, and z from zr.
ModelBuilder Reals(std::vector<Dim> dims) {
  ModelBuilder model = Quantized(std::move(dims));
  model.Node("DequantizeLinear", {"x", "x_scale", "x_zero_point"}, {"xr"});
  model.Node("DequantizeLinear", {"y", "y_scale", "y_zero_point"}, {"yr"});
  model.Node("QuantizeLinear", {"zr", "z_scale", "z_zero_point"}, {"z"});
  return model;
}

const std::vector<std::string> kX = {"x", "x_scale", "x_zero_point", "z_scale", "z_zero_point"};

TEST(QLinear, AddAndMul) {
  for (const char* op : {"Add", "Mul"}) {
    ModelBuilder model = Quantized({2, 40}), wanted = Reals({2, 40});
    model.Node(std::string("QLinear") + op,
               {"x", "x_scale", "x_zero_point", "y", "y_scale", "y_zero_point", "z_scale", "z_zero_point"}, {"z"});
    ExpectSame(model.Domain(kMicrosoft), wanted.Node(op, {"xr", "yr"}, {"zr"}));
  }
}

// What `lower` looks for: float ops between dequantize and quantize.
TEST(QLinear, IsImportedInQdqForm) {
  ModelBuilder model = Quantized({2, 4});
  model.Node("QLinearAdd", {"x", "x_scale", "", "y", "y_scale", "", "z_scale"}, {"z"}, "sum").Domain(kMicrosoft);
  const auto graph = Parse(model.Bytes(), "m.onnx", Ops());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const ir::Node* quantize = (*graph)->FindNodeOrNull("sum");
  ASSERT_TRUE(quantize->IsOp("quantize"));
  ASSERT_TRUE(quantize->operand(0)->IsOp("add"));
  EXPECT_TRUE(quantize->operand(0)->operand(1)->IsOp("dequantize"));
  EXPECT_EQ(quantize->tensor_type().quant, PerTensor(0.75f));
}

TEST(QLinear, UnaryOnes) {
  ModelBuilder sigmoid = Quantized({2, 40}), leaky = sigmoid, softmax = sigmoid;
  ExpectSame(sigmoid.Node("QLinearSigmoid", kX, {"z"}).Domain(kMicrosoft),
             Reals({2, 40}).Node("Sigmoid", {"xr"}, {"zr"}));
  ExpectSame(leaky.Node("QLinearLeakyRelu", kX, {"z"}).Float("alpha", 0.5f).Domain(kMicrosoft),
             Reals({2, 40}).Node("LeakyRelu", {"xr"}, {"zr"}).Float("alpha", 0.5f));
  ExpectSame(softmax.Node("QLinearSoftmax", kX, {"z"}).Int("axis", 0).Int("opset", 13).Domain(kMicrosoft),
             Reals({2, 40}).Node("Softmax", {"xr"}, {"zr"}).Int("axis", 0));
}

TEST(QLinear, Pools) {
  ModelBuilder global = Quantized({1, 3, 4, 5}), pool = global;
  ExpectSame(global.Node("QLinearGlobalAveragePool", kX, {"z"}).Domain(kMicrosoft),
             Reals({1, 3, 4, 5}).Node("GlobalAveragePool", {"xr"}, {"zr"}));
  ExpectSame(pool.Node("QLinearAveragePool", kX, {"z"}).Ints("kernel_shape", {2, 3}).Domain(kMicrosoft),
             Reals({1, 3, 4, 5}).Node("AveragePool", {"xr"}, {"zr"}).Ints("kernel_shape", {2, 3}));
  ModelBuilder last = Quantized({1, 4, 5, 3}), wanted = Reals({1, 4, 5, 3});
  last.Node("QLinearAveragePool", kX, {"z"}).Ints("kernel_shape", {2, 3}).Int("channels_last", 1).Domain(kMicrosoft);
  wanted.Node("Transpose", {"xr"}, {"xt"}).Ints("perm", {0, 3, 1, 2});
  wanted.Node("AveragePool", {"xt"}, {"zt"}).Ints("kernel_shape", {2, 3});
  ExpectSame(last, wanted.Node("Transpose", {"zt"}, {"zr"}).Ints("perm", {0, 2, 3, 1}));
}

TEST(QLinear, Concat) {
  ModelBuilder model = Quantized({2, 4});
  model.Node("QLinearConcat",
             {"z_scale", "z_zero_point", "x", "x_scale", "x_zero_point", "y", "y_scale", "y_zero_point"}, {"z"});
  ExpectSame(model.Int("axis", 1).Domain(kMicrosoft),
             Reals({2, 4}).Node("Concat", {"xr", "yr"}, {"zr"}).Int("axis", 1));
  ModelBuilder two = Quantized({2, 4});
  two.Node("QLinearConcat", {"z_scale", "z_zero_point", "x", "x_scale"}, {"z"}, "cat").Domain(kMicrosoft);
  ExpectError(two, "node 'cat' (QLinearConcat): found 4 inputs, wanted 2 and 3 for each part");
}

TEST(QLinear, GemmWithWeightsInEitherOrder) {
  for (int trans_b : {0, 1}) {
    ModelBuilder model = Quantized({2, 4});
    model.Initializer("w", Seeded(trans_b ? Shape{3, 4} : Shape{4, 3}, 5, DType::kI8));
    model.Initializer("ws", F32({3}, {0.5, 0.25, 0.125})).Initializer("wz", Tensor(DType::kI8, {3}));
    ModelBuilder wanted = model;
    model.Initializer("b", Tensor::Of<int32_t>({3}, {40, -80, 160}));
    model.Node("QGemm", {"x", "x_scale", "x_zero_point", "w", "ws", "wz", "b", "z_scale", "z_zero_point"}, {"z"}, "fc");
    model.Int("transB", trans_b).Domain(kMicrosoft);
    wanted.Initializer("b", F32({3}, {10, -10, 10}));  // Scale 0.5 * ws.
    wanted.Node("DequantizeLinear", {"x", "x_scale", "x_zero_point"}, {"xr"});
    wanted.Node("DequantizeLinear", {"w", "ws", "wz"}, {"wr"}).Int("axis", trans_b ? 0 : 1);
    wanted.Node("Gemm", {"xr", "wr", "b"}, {"zr"}).Int("transB", trans_b);
    ExpectSame(model, wanted.Node("QuantizeLinear", {"zr", "z_scale", "z_zero_point"}, {"z"}));
    const auto graph = Parse(model.Bytes(), "m.onnx", Ops());
    EXPECT_NE((*graph)->FindNodeOrNull("fc.linear"), nullptr);
  }
}

TEST(QLinear, AbsentInputsAreErrors) {
  ModelBuilder model = Quantized({2, 4});
  model.Node("QLinearAdd", {"x", "x_scale", "x_zero_point", "y"}, {"z"}, "sum").Domain(kMicrosoft);
  ExpectError(model, "node 'sum' (QLinearAdd): found input 4 absent, wanted it");
  ModelBuilder gemm = Quantized({2, 4});
  gemm.Node("QGemm", {"x", "x_scale"}, {"z"}, "fc").Domain(kMicrosoft);
  ExpectError(gemm, "node 'fc' (QGemm): found input 3 absent, wanted it");
}

ModelBuilder Float(std::vector<Dim> dims) {
  ModelBuilder model;
  model.Input("x", std::move(dims)).Output("z");
  return model;
}

TEST(Fused, Conv) {
  const auto model = [] {
    ModelBuilder made = Float({1, 2, 5, 5});
    made.Input("r", {1, 3, 3, 3}).Initializer("w", Seeded({3, 2, 3, 3}, 1)).Initializer("b", Seeded({3}, 2));
    return made;
  };
  struct Case {
    const char* activation;
    std::vector<float> parameters;
  };
  for (const Case& c : {Case{"Relu", {}}, Case{"Tanh", {}}, Case{"Sigmoid", {}}, Case{"LeakyRelu", {0.25f}},
                        Case{"HardSigmoid", {0.3f, 0.4f}}}) {
    ModelBuilder fused = model(), wanted = model();
    fused.Node("FusedConv", {"x", "w", "b", "r"}, {"z"}).String("activation", c.activation).Domain(kMicrosoft);
    if (!c.parameters.empty()) fused.Floats("activation_params", c.parameters);
    wanted.Node("Conv", {"x", "w", "b"}, {"c"}).Node("Add", {"c", "r"}, {"s"}).Node(c.activation, {"s"}, {"z"});
    if (c.parameters.size() > 0) wanted.Float("alpha", c.parameters[0]);
    if (c.parameters.size() > 1) wanted.Float("beta", c.parameters[1]);
    ExpectSame(fused, wanted);
  }
  ModelBuilder clip = model(), wanted = model();
  clip.Node("FusedConv", {"x", "w"}, {"z"}).String("activation", "Clip").Floats("activation_params", {-1, 1});
  wanted.Initializer("low", Tensor::Scalar(-1.0f)).Initializer("high", Tensor::Scalar(1.0f));
  wanted.Node("Conv", {"x", "w"}, {"c"}).Node("Clip", {"c", "low", "high"}, {"z"});
  ExpectSame(clip.Domain(kMicrosoft), wanted);
  ModelBuilder unknown = model();
  unknown.Node("FusedConv", {"x", "w"}, {"z"}, "c").String("activation", "Softplus").Domain(kMicrosoft);
  ExpectError(unknown, "node 'c' (FusedConv): attribute 'activation': found 'Softplus', wanted Clip");
}

TEST(Fused, GemmAndMatMul) {
  ModelBuilder gemm = Float({2, 4}), wanted = gemm;
  gemm.Initializer("w", Seeded({3, 4}, 1)).Node("FusedGemm", {"x", "w"}, {"z"}).Int("transB", 1).Float("alpha", 0.5f);
  gemm.String("activation", "LeakyRelu").Float("activation_alpha", 0.25f).Domain(kMicrosoft);
  wanted.Initializer("w", Seeded({3, 4}, 1)).Node("Gemm", {"x", "w"}, {"g"}).Int("transB", 1).Float("alpha", 0.5f);
  ExpectSame(gemm, wanted.Node("LeakyRelu", {"g"}, {"z"}).Float("alpha", 0.25f));

  ModelBuilder matmul = Float({2, 3, 4}), product = matmul;
  matmul.Initializer("w", Seeded({5, 3}, 1)).Node("FusedMatMul", {"x", "w"}, {"z"}).Int("transA", 1).Int("transB", 1);
  matmul.Float("alpha", 2).Domain(kMicrosoft);
  product.Initializer("w", Seeded({5, 3}, 1)).Initializer("two", Tensor::Scalar(2.0f));
  product.Node("Transpose", {"x"}, {"xt"}).Ints("perm", {0, 2, 1}).Node("Transpose", {"w"}, {"wt"});
  ExpectSame(matmul, product.Node("MatMul", {"xt", "wt"}, {"p"}).Node("Mul", {"p", "two"}, {"z"}));
}

// The first axis is the rows', as attention of [tokens, sequences, elements] has it.
TEST(FusedMatMul, BatchesBehindRows) {
  const auto model = [](Shape w) { return Float({5, 2, 4}).Initializer("w", Seeded(std::move(w), 1)); };
  ModelBuilder fused = model({6, 2, 4}), wanted = model({6, 2, 4});
  fused.Node("FusedMatMul", {"x", "w"}, {"z"}).Int("transBatchA", 1).Int("transBatchB", 1).Int("transB", 1);
  wanted.Node("Transpose", {"x"}, {"xt"}).Ints("perm", {1, 0, 2}).Node("Transpose", {"w"}, {"wt"});
  wanted.Ints("perm", {1, 2, 0}).Node("MatMul", {"xt", "wt"}, {"z"});
  ExpectSame(fused.Domain(kMicrosoft), wanted);
  ModelBuilder one = model({2, 4, 6}), product = model({2, 4, 6});
  one.Node("FusedMatMul", {"x", "w"}, {"z"}).Int("transBatchA", 1);
  product.Node("Transpose", {"x"}, {"xt"}).Ints("perm", {1, 0, 2}).Node("MatMul", {"xt", "w"}, {"z"});
  ExpectSame(one.Domain(kMicrosoft), product);
}

TEST(Gelu, EachSpelling) {
  const double x[] = {-1.5, 0.25, 2};
  const std::vector<Tensor> input = {F32({3}, {-1.5, 0.25, 2})};
  const auto check = [&](ModelBuilder model, double (*f)(double)) {
    const std::vector<Tensor> found = Outputs(model.Domain(kMicrosoft), input);
    ASSERT_EQ(found.size(), 1);
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(found[0].At(i), f(x[i]), 1e-6);
  };
  const auto erf = [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); };
  check(Float({3}).Node("Gelu", {"x"}, {"z"}), erf);
  check(Float({3}).Initializer("b", F32({3}, {0, 0, 0})).Node("BiasGelu", {"x", "b"}, {"z"}), erf);
  check(Float({3}).Node("FastGelu", {"x"}, {"z"}),
        [](double v) { return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); });
  check(Float({3}).Node("QuickGelu", {"x"}, {"z"}), [](double v) { return v / (1 + std::exp(-1.702 * v)); });
}

TEST(SkipLayerNormalization, SumsFirst) {
  ModelBuilder model = Float({1, 2});
  model.Output("sum").Initializer("skip", F32({1, 2}, {1, 2})).Initializer("gamma", F32({2}, {2, 3}));
  model.Initializer("beta", F32({2}, {10, 20})).Initializer("bias", F32({2}, {0.5, 1}));
  model.Node("SkipLayerNormalization", {"x", "skip", "gamma", "beta", "bias"}, {"z", "", "", "sum"}, "ln");
  model.Float("epsilon", 0).Domain(kMicrosoft);
  const std::vector<Tensor> found = Outputs(model, {F32({1, 2}, {0.5, 3})});  // Sum: 2, 6.
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(ToDoubles(found[0]), (std::vector<double>{8, 23}));
  EXPECT_EQ(ToDoubles(found[1]), (std::vector<double>{2, 6}));
  model.Output("mean").last_node().set_output(1, "mean");
  ExpectError(model, "found output 1 'mean' in use, wanted it unused");
}

TEST(SkipSimplifiedLayerNormalization, SumsFirst) {
  ModelBuilder model = Float({1, 2});
  model.Output("sum").Initializer("skip", F32({1, 2}, {0, -2})).Initializer("gamma", F32({2}, {5, 10}));
  model.Initializer("bias", F32({2}, {0.5, 6}));
  model.Node("SkipSimplifiedLayerNormalization", {"x", "skip", "gamma", "bias"}, {"z", "", "", "sum"});
  model.Float("epsilon", 0).Domain(kMicrosoft);
  const std::vector<Tensor> found = Outputs(model, {F32({1, 2}, {0.5, 3})});  // Sum: 1, 7; its root mean square: 5.
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(ToDoubles(found[0]), (std::vector<double>{1, 14}));
  EXPECT_EQ(ToDoubles(found[1]), (std::vector<double>{1, 7}));
}

// Integer products of dynamically quantized values, as ONNX's own three operators have them.
TEST(Dynamic, QuantizeMatMul) {
  const auto model = [] {
    ModelBuilder made = Float({3, 4});
    made.Initializer("w", Seeded({4, 2}, 1, DType::kI8)).Initializer("ws", F32({2}, {0.5, 0.25}));
    made.Initializer("wz", Tensor::Of<int8_t>({2}, {3, -4})).Initializer("b", F32({2}, {1, 2}));
    return made;
  };
  ModelBuilder fused = model(), wanted = model(), halves = model();
  fused.Node("DynamicQuantizeMatMul", {"x", "w", "ws", "wz", "b"}, {"z"}).Domain(kMicrosoft);
  wanted.Node("DynamicQuantizeLinear", {"x"}, {"q", "qs", "qz"});
  halves = wanted;
  wanted.Node("MatMulInteger", {"q", "w", "qz", "wz"}, {"p"}).Node("Cast", {"p"}, {"r"}).Int("to", 1);
  wanted.Node("Mul", {"qs", "ws"}, {"s"}).Node("Mul", {"r", "s"}, {"m"}).Node("Add", {"m", "b"}, {"z"});
  ExpectSame(fused, wanted);
  halves.Node("MatMulIntegerToFloat", {"q", "w", "qs", "ws", "qz", "wz", "b"}, {"z"}).Domain(kMicrosoft);
  ExpectSame(halves, wanted);
}

// An LSTM of the values of its codes.
TEST(Dynamic, QuantizeLstm) {
  const auto model = [] {
    ModelBuilder made;
    made.Input("x", {5, 2, 3}).Output("y").Initializer("b", Seeded({2, 32}, 7));
    return made;
  };
  const Tensor w = Seeded({2, 3, 16}, 1, DType::kI8), r = Seeded({2, 4, 16}, 2, DType::kI8);
  for (const bool columns : {false, true}) {
    const Shape shape = columns ? Shape{2, 16} : Shape{2};
    const Tensor scale = Seeded(shape, 3), zero_point = Seeded(shape, 4, DType::kI8);
    const auto real = [&](const Tensor& codes) {
      Tensor all(DType::kF32, {2, 16, codes.dim(1)});
      for (int64_t i = 0; i < codes.num_elements(); ++i) {
        const int64_t column = i % 16, row = i / 16 % codes.dim(1), direction = i / 16 / codes.dim(1);
        const int64_t of = columns ? direction * 16 + column : direction;
        const auto moved = static_cast<float>(codes.At(i) - zero_point.At(of));
        all.Set((direction * 16 + column) * codes.dim(1) + row, moved * static_cast<float>(scale.At(of)));
      }
      return all;
    };
    ModelBuilder quantized = model(), wanted = model();
    for (const auto& [name, tensor] : {std::pair("w", w), {"r", r}, {"s", scale}, {"z", zero_point}}) {
      quantized.Initializer(name, tensor);
    }
    quantized.Node("DynamicQuantizeLSTM", {"x", "w", "r", "b", "", "", "", "", "s", "z", "s", "z"}, {"y"});
    quantized.String("direction", "bidirectional").Int("hidden_size", 4).Domain(kMicrosoft);
    wanted.Initializer("w", real(w)).Initializer("r", real(r)).Node("LSTM", {"x", "w", "r", "b"}, {"y"});
    wanted.String("direction", "bidirectional").Int("hidden_size", 4);
    ExpectSame(quantized, wanted);
  }
}

TEST(Microsoft, QuantizeLinear) {
  ModelBuilder model = Quantized({2, 4});
  model.Node("DequantizeLinear", {"x", "x_scale", "x_zero_point"}, {"xr"}).Domain(kMicrosoft);
  model.Node("QuantizeLinear", {"xr", "z_scale", "z_zero_point"}, {"z"}).Domain(kMicrosoft);
  ModelBuilder wanted = Quantized({2, 4});
  wanted.Node("DequantizeLinear", {"x", "x_scale", "x_zero_point"}, {"xr"});
  ExpectSame(model, wanted.Node("QuantizeLinear", {"xr", "z_scale", "z_zero_point"}, {"z"}));
}

// A model of these operators alone need not say which opset of the default domain it does not use.
TEST(Microsoft, NeedsNoDefaultDomain) {
  ModelBuilder model = Float({3});
  model.Node("Gelu", {"x"}, {"z"}).Domain(kMicrosoft);
  model.proto().mutable_opset_import()->DeleteSubrange(0, 1);
  EXPECT_EQ(Outputs(model, {F32({3}, {0, 0, 0})}).size(), 1);
}

}  // namespace
}  // namespace fuselage::onnx
