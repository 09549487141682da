// Elementwise operators, reductions and norms: their forms by opset, and what the conformance data leaves out.
#include <cmath>
#include <string>

#include "frontend/onnx/testing.h"
#include "gtest/gtest.h"

namespace fuselage::onnx {
namespace {

TEST(Elementwise, NamesOfOtherOps) {
  const Tensor x = F32({3}, {-1, 2, 0});
  ModelBuilder greater(9);
  greater.Input("x", {3}).Output("y", DType::kBool).Initializer("k", Tensor::Scalar(0.0f));
  greater.Node("Greater", {"x", "k"}, {"g"}).Node("Not", {"g"}, {"y"});
  ExpectOutput(greater, {x}, Tensor::Of<bool>({3}, {true, false, true}));
  ModelBuilder bits(18);
  bits.Input("x", {2}, DType::kI32).Output("y", DType::kI32).Node("BitwiseNot", {"x"}, {"y"});
  ExpectOutput(bits, {Tensor::Of<int32_t>({2}, {0, 5})}, Tensor::Of<int32_t>({2}, {-1, -6}));
  ModelBuilder old = Model(17, {3});
  old.Node("BitwiseNot", {"x"}, {"y"});
  ExpectError(old, "BitwiseNot of opset 17 (supported from 18 on)");
}

TEST(Elementwise, GeluHasTwoForms) {
  ModelBuilder model = Model(20, {1});
  model.Node("Gelu", {"x"}, {"y"});
  ExpectOutput(model, {F32({1}, {1})}, F32({1}, {0.8413447f}), 1e-7);
  model.String("approximate", "tanh");
  ExpectOutput(model, {F32({1}, {1})}, F32({1}, {0.8411920f}), 1e-7);
}

// 1 / (1 + e^-1), and 1 / (1 + e^-2).
TEST(Elementwise, SwishOfAnyAlpha) {
  ModelBuilder model = Model(24, {1});
  model.Node("Swish", {"x"}, {"y"});
  ExpectOutput(model, {F32({1}, {1})}, F32({1}, {0.7310586f}), 1e-7);
  ExpectOutput(model.Float("alpha", 2), {F32({1}, {1})}, F32({1}, {0.8807971f}), 1e-7);
}

TEST(Nary, OneTwoThree) {
  const Tensor x = F32({2}, {3, -6});
  for (const char* op : {"Max", "Mean", "Min", "Sum"}) {
    ModelBuilder one = Model(8, {2});
    one.Node(op, {"x"}, {"y"});
    ExpectOutput(one, {x}, x);
  }
  const auto three = [](const std::string& op) {
    ModelBuilder model = Model(13, {2});
    model.Initializer("a", F32({1, 1}, {6})).Initializer("b", F32({2}, {0, -9})).Node(op, {"x", "a", "b"}, {"y"}, "n");
    return model;
  };
  ExpectOutput(three("Max"), {x}, F32({1, 2}, {6, 6}));
  ExpectOutput(three("Min"), {x}, F32({1, 2}, {0, -9}));
  ExpectOutput(three("Sum"), {x}, F32({1, 2}, {9, -9}));
  ExpectOutput(three("Mean"), {x}, F32({1, 2}, {3, -3}));
  ModelBuilder absent = Model(13, {2});
  absent.Node("Max", {"x", "", "x"}, {"y"}, "n");
  ExpectError(absent, "node 'n' (Max): found input 1 absent");
}

TEST(Clip, ComputedBounds) {
  ModelBuilder model = Model(13, {3});
  model.Input("lo", {}).Input("hi", {}).Node("Clip", {"x", "lo", "hi"}, {"y"});
  const Tensor x = F32({3}, {-5, 1, 5});
  ExpectOutput(model, {x, Tensor::Scalar(-1.0f), Tensor::Scalar(2.0f)}, F32({3}, {-1, 1, 2}));
  ExpectOutput(model, {x, Tensor::Scalar(9.0f), Tensor::Scalar(2.0f)}, F32({3}, {2, 2, 2}));  // The maximum wins.
  ModelBuilder low = Model(13, {3});
  low.Input("lo", {}).Node("Clip", {"x", "lo"}, {"y"});
  ExpectOutput(low, {x, Tensor::Scalar(0.0f)}, F32({3}, {0, 1, 5}));
  ModelBuilder high = Model(13, {3});
  high.Input("hi", {}).Node("Clip", {"x", "", "hi"}, {"y"});
  ExpectOutput(high, {x, Tensor::Scalar(0.0f)}, F32({3}, {-5, 0, 0}));
}

TEST(Pow, TheResultHasTheBasesType) {
  ModelBuilder model(15);
  model.Input("x", {2}, DType::kI64).Input("p", {}).Output("y", DType::kI64).Node("Pow", {"x", "p"}, {"y"});
  ExpectOutput(model, {I64({9, 4}), Tensor::Scalar(0.5f)}, I64({3, 2}));
  ModelBuilder whole(15);
  whole.Input("x", {2}).Input("p", {}, DType::kI32).Output("y").Node("Pow", {"x", "p"}, {"y"});
  ExpectOutput(whole, {F32({2}, {-2, 3}), Tensor::Scalar<int32_t>(3)}, F32({2}, {-8, 27}));
}

TEST(Pow, SquaresAndRoots) {
  const auto steps = [](float exponent) {
    ModelBuilder model = Model(15, {2});
    model.Initializer("p", Tensor::Scalar(exponent)).Node("Pow", {"x", "p"}, {"y"});
    const auto graph = Import(model);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? (*graph)->output()->operand(0)->op()->name : "";
  };
  EXPECT_EQ(steps(2), "mul");
  EXPECT_EQ(steps(0.5), "sqrt");
  EXPECT_EQ(steps(-1), "reciprocal");
  EXPECT_EQ(steps(3), "pow");
}

TEST(Mod, FloatsNeedFmod) {
  ModelBuilder model = Model(13, {2});
  model.Initializer("k", Tensor::Scalar(3.0f)).Node("Mod", {"x", "k"}, {"y"}, "m");
  ExpectError(model, "node 'm' (Mod): found fmod = 0 on f32[2], wanted integers or fmod = 1");
  model.Int("fmod", 1);
  ExpectOutput(model, {F32({2}, {-5, 5})}, F32({2}, {-2, 2}));
}

TEST(BitShift, Direction) {
  ModelBuilder model(11);
  model.Input("x", {2}, DType::kU8).Output("y", DType::kU8).Initializer("k", Tensor::Of<uint8_t>({1}, {2}));
  model.Node("BitShift", {"x", "k"}, {"y"}, "b");
  ExpectError(model, "node 'b' (BitShift): attribute 'direction': found '', wanted LEFT or RIGHT");
  model.String("direction", "RIGHT");
  ExpectOutput(model, {Tensor::Of<uint8_t>({2}, {255, 8})}, Tensor::Of<uint8_t>({2}, {63, 2}));
}

// Sums have their axes as an input from opset 13 on, all others from 18 on.
TEST(Reduce, AxesByOpset) {
  const Tensor x = F32({2, 3}, {1, -2, 3, 4, 5, -6});
  const auto by_attribute = [](const std::string& op, int opset) {
    ModelBuilder model = Model(opset, {2, 3});
    model.Node(op, {"x"}, {"y"}, "r").Ints("axes", {-1}).Int("keepdims", 0);
    return model;
  };
  const auto by_input = [](const std::string& op, int opset) {
    ModelBuilder model = Model(opset, {2, 3});
    model.Initializer("axes", I64({1})).Node(op, {"x", "axes"}, {"y"}, "r").Int("keepdims", 0);
    return model;
  };
  const struct {
    const char* op;
    float first, second;
  } cases[] = {{"ReduceL1", 6, 15},
               {"ReduceL2", std::sqrt(14.0f), std::sqrt(77.0f)},
               {"ReduceLogSum", std::log(2.0f), std::log(3.0f)},
               {"ReduceLogSumExp", std::log(std::exp(1.0f) + std::exp(-2.0f) + std::exp(3.0f)),
                std::log(std::exp(4.0f) + std::exp(5.0f) + std::exp(-6.0f))},
               {"ReduceMax", 3, 5},
               {"ReduceMean", 2.0f / 3, 1},
               {"ReduceMin", -2, -6},
               {"ReduceProd", -6, -120},
               {"ReduceSum", 2, 3},
               {"ReduceSumSquare", 14, 77}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.op);
    const Tensor wanted = F32({2}, {c.first, c.second});
    const bool sum = std::string(c.op) == "ReduceSum";
    ExpectOutput(by_attribute(c.op, sum ? 12 : 17), {x}, wanted, 1e-6);
    ExpectOutput(by_input(c.op, sum ? 13 : 18), {x}, wanted, 1e-6);
    ExpectError(by_attribute(c.op, sum ? 13 : 18), "found axes as an attribute");
    ExpectError(by_input(c.op, sum ? 12 : 17), "found axes as an input");
  }
}

TEST(Reduce, WithoutAxes) {
  const Tensor x = F32({2, 2}, {1, 2, 3, 4});
  ModelBuilder all = Model(13, {2, 2});
  all.Node("ReduceSum", {"x"}, {"y"});
  ExpectOutput(all, {x}, F32({1, 1}, {10}));
  all.Int("noop_with_empty_axes", 1);
  ExpectOutput(all, {x}, x);
}

// Before opset 13 over all dimensions from the axis on.
TEST(Softmax, OldOnesFlatten) {
  const Tensor x = F32({1, 2, 2}, {0, 1, 2, 2});
  for (const int opset : {11, 13}) {
    ModelBuilder hard = Model(opset, {1, 2, 2});
    hard.Node("Hardmax", {"x"}, {"y"}).Int("axis", 1);
    ExpectOutput(hard, {x}, opset == 11 ? F32({1, 2, 2}, {0, 0, 1, 0}) : F32({1, 2, 2}, {0, 0, 1, 1}));
  }
  ModelBuilder log = Model(11, {1, 2, 2});
  log.Node("LogSoftmax", {"x"}, {"y"});
  const float all = std::log(std::exp(0.0f) + std::exp(1.0f) + 2 * std::exp(2.0f));
  ExpectOutput(log, {x}, F32({1, 2, 2}, {-all, 1 - all, 2 - all, 2 - all}), 1e-6);
}

TEST(LayerNormalization, ScalesBroadcastAndStatistics) {
  ModelBuilder model(17);
  model.Input("x", {2, 2}).Initializer("s", F32({1}, {2}));
  model.Node("LayerNormalization", {"x", "s"}, {"y", "mean", "inverse"}, "ln").Float("epsilon", 0);
  model.Output("y").Output("mean").Output("inverse");
  const Tensor x = F32({2, 2}, {1, 3, 10, 30});
  ExpectOutput(model, {x}, F32({2, 2}, {-2, 2, -2, 2}));
  const std::vector<Tensor> all = Outputs(model, {x});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].shape(), (Shape{2, 1}));
  EXPECT_EQ(ToDoubles(all[1]), (std::vector<double>{2, 20}));
  EXPECT_EQ(ToDoubles(all[2]), (std::vector<double>{1, static_cast<double>(0.1f)}));
  model.Int("stash_type", 11);
  ExpectError(model, "node 'ln' (LayerNormalization): found stash_type 11, wanted 1 (float)");
}

// onnxruntime's optimizer writes both into files of older opsets than the standard's.
TEST(LayerNormalization, OfEachOpset) {
  const Tensor x = F32({1, 2}, {1, 7});
  ModelBuilder model = Model(9, {1, 2});
  model.Initializer("s", F32({2}, {2, 1})).Initializer("b", F32({2}, {0, 1}));
  model.Node("LayerNormalization", {"x", "s", "b"}, {"y"}).Float("epsilon", 0);
  ExpectOutput(model, {x}, F32({1, 2}, {-2, 2}));
  ModelBuilder simplified = Model(14, {1, 2});
  simplified.Initializer("s", F32({2}, {2, 1}));
  simplified.Node("SimplifiedLayerNormalization", {"x", "s"}, {"y", "inverse"}, "ln").Float("epsilon", 0);
  ExpectOutput(simplified, {x}, F32({1, 2}, {0.4f, 1.4f}), 1e-6);
  simplified.Output("inverse");
  ExpectError(simplified, "node 'ln' (SimplifiedLayerNormalization): found output 1 'inverse' in use");
}

// By group in opset 18, by channel in 21.
TEST(GroupNormalization, ScaleByOpset) {
  const Tensor x = F32({1, 4, 1}, {1, 3, 10, 30});
  const auto model = [](int opset, std::vector<float> scale) {
    ModelBuilder built = Model(opset, {1, 4, 1});
    const int64_t n = static_cast<int64_t>(scale.size());
    built.Initializer("s", F32({n}, std::move(scale))).Initializer("b", F32({n}, std::vector<float>(n, 0.5f)));
    built.Node("GroupNormalization", {"x", "s", "b"}, {"y"}, "g").Int("num_groups", 2).Float("epsilon", 0);
    return built;
  };
  ExpectOutput(model(18, {1, 2}), {x}, F32({1, 4, 1}, {-0.5, 1.5, -1.5, 2.5}));
  ExpectOutput(model(21, {1, 2, 3, 4}), {x}, F32({1, 4, 1}, {-0.5, 2.5, -2.5, 4.5}));
  ModelBuilder wrong = model(18, {1, 2});
  wrong.last_node().mutable_attribute(0)->set_i(3);
  ExpectError(wrong, "node 'g' (GroupNormalization): attribute 'num_groups': found 3");
}

TEST(Norms, LpAndLrnAndPools) {
  ModelBuilder lp = Model(13, {1, 2});
  lp.Node("LpNormalization", {"x"}, {"y"});
  ExpectOutput(lp, {F32({1, 2}, {3, -4})}, F32({1, 2}, {0.6f, -0.8f}), 1e-7);
  lp.Int("p", 1);
  ExpectOutput(lp, {F32({1, 2}, {3, -5})}, F32({1, 2}, {0.375, -0.625}));
  lp.last_node().mutable_attribute(0)->set_i(3);
  ExpectError(lp, "attribute 'p': found 3, wanted 1 or 2");

  // Size 2: each channel and the next.
  ModelBuilder lrn = Model(13, {1, 3, 1});
  lrn.Node("LRN", {"x"}, {"y"}).Int("size", 2).Float("alpha", 2).Float("beta", 1).Float("bias", 3);
  ExpectOutput(lrn, {F32({1, 3, 1}, {1, 2, 3})}, F32({1, 3, 1}, {1.0f / 8, 2.0f / 16, 3.0f / 12}), 1e-7);

  ModelBuilder pool = Model(18, {1, 1, 4});
  pool.Node("LpPool", {"x"}, {"y"}, "p")
      .Ints("kernel_shape", {2})
      .Ints("pads", {1, 1})
      .Ints("strides", {2})
      .Int("p", 1);
  ExpectOutput(pool, {F32({1, 1, 4}, {1, -2, 3, 4})}, F32({1, 1, 3}, {1, 5, 4}));
  pool.Int("ceil_mode", 1);
  ExpectError(pool, "node 'p' (LpPool): found ceil_mode = 1, wanted 0");
  ModelBuilder global = Model(13, {1, 1, 2, 2});
  global.Node("GlobalLpPool", {"x"}, {"y"}).Int("p", 3);
  ExpectOutput(global, {F32({1, 1, 2, 2}, {1, -2, 2, 2})}, F32({1, 1, 1, 1}, {2.9240177f}), 1e-5);
}

TEST(Einsum, Forms) {
  const Tensor a = F32({2, 3}, {1, 2, 3, 4, 5, 6}), b = F32({3, 2}, {1, -1, 2, 0, 0, 3}), v = F32({3}, {1, 2, 3});
  const auto expect = [](const std::string& equation, std::vector<Tensor> inputs, const Tensor& wanted) {
    SCOPED_TRACE(equation);
    ModelBuilder model(12);
    std::vector<std::string> names;
    for (size_t i = 0; i < inputs.size(); ++i) {
      names.push_back("x" + std::to_string(i));
      model.Input(names.back(), std::vector<Dim>(inputs[i].shape().begin(), inputs[i].shape().end()));
    }
    model.Output("y").Node("Einsum", names, {"y"}).String("equation", equation);
    ExpectOutput(model, inputs, wanted);
  };
  expect("ij->ji", {a}, F32({3, 2}, {1, 4, 2, 5, 3, 6}));
  expect("ij", {a}, a);
  expect("ba", {a}, F32({3, 2}, {1, 4, 2, 5, 3, 6}));  // In alphabetical order.
  expect("ij->", {a}, F32({}, {21}));
  expect("ij -> i", {a}, F32({2}, {6, 15}));
  expect("ij,jk->ik", {a, b}, F32({2, 2}, {5, 8, 14, 14}));
  expect("ij,jk", {a, b}, F32({2, 2}, {5, 8, 14, 14}));
  expect("ij,jk->ki", {a, b}, F32({2, 2}, {5, 14, 8, 14}));
  expect("ij,j->i", {a, v}, F32({2}, {14, 32}));
  expect("ij,j->ij", {a, v}, F32({2, 3}, {1, 4, 9, 4, 10, 18}));
  expect("i,j->ij", {F32({2}, {1, 2}), v}, F32({2, 3}, {1, 2, 3, 2, 4, 6}));
  expect("i,i->", {v, v}, F32({}, {14}));
  expect("ij,jk,k->i", {a, b, F32({2}, {1, 10})}, F32({2}, {85, 154}));
  expect("bij,bjk->bik", {F32({2, 1, 2}, {1, 2, 3, 4}), F32({2, 2, 1}, {1, 1, 2, -1})}, F32({2, 1, 1}, {3, 2}));
  expect("...ij,...jk->...ik", {F32({2, 1, 2}, {1, 2, 3, 4}), F32({2, 1}, {1, -1})}, F32({2, 1, 1}, {-1, -1}));
  expect("...i,...i->...", {a, F32({1, 3}, {1, 0, 1})}, F32({2}, {4, 10}));
  expect("ii->i", {F32({2, 2}, {1, 2, 3, 4})}, F32({2}, {1, 4}));
  expect("ii", {F32({2, 2}, {1, 2, 3, 4})}, F32({}, {5}));
  expect("iji->j", {F32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}, F32({2}, {7, 11}));
  expect("ik,jk->ij", {a, a}, F32({2, 2}, {14, 32, 32, 77}));
  expect("bhwc,hkc->bhwk", {F32({1, 1, 2, 2}, {1, 2, 3, 4}), F32({1, 1, 2}, {1, 10})}, F32({1, 1, 2, 1}, {21, 43}));
}

TEST(Einsum, Errors) {
  const auto expect = [](const std::string& equation, const std::string& error) {
    ModelBuilder model = Model(12, {2, 3});
    model.Node("Einsum", {"x"}, {"y"}, "e").String("equation", equation);
    ExpectError(model, "node 'e' (Einsum): attribute 'equation' '" + equation + "': " + error);
  };
  expect("ijk->i", "found 'ijk' for a tensor of rank 2");
  expect("ij,jk->ik", "found 2 terms for 1 operands, wanted as many");
  expect("i1->i", "found 'i1', wanted letters and at most one '...'");
  expect("ij->ik", "found the output 'ik', wanted labels of the operands, each once");
  expect("ii->i", "found a label with the sizes 2 and 3, wanted one");
}

}  // namespace
}  // namespace fuselage::onnx
