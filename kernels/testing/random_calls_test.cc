// Kernels against the reference evaluation of their ops, on shapes that nobody chose: bit for bit, in every layout, on
// every instruction set that this machine runs, on one thread and on three. int8.conv2d has tests of its own.
//   bazel test //kernels/testing:random_calls_test      100 seeds, for each a call of every family
//   bazel run //kernels/testing:random_calls_test -- --first=71 --seeds=10000
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/base/activation.h"
#include "ir/testing/random.h"
#include "kernels/core/testing/testing.h"
#include "kernels/register_all.h"
#include "kernels/testing/reference.h"

namespace fuselage::kernels {
namespace {

using ::fuselage::testing::Random;
using Ints = std::vector<int64_t>;

uint64_t first_seed = 0, num_seeds = 100;

// In [1, most], small ones as often as large ones.
int64_t Size(Random& random, int64_t most) {
  const double share = static_cast<double>(random.Between(0, 1 << 20)) / (1 << 20);
  const auto size = static_cast<int64_t>(std::exp(share * std::log(static_cast<double>(most) + 1)));
  return std::clamp<int64_t>(size, 1, most);
}

// Of `count` sizes up to `most` each, whose product is at most `product`.
Ints Sizes(Random& random, int count, int64_t most, int64_t product) {
  for (;;) {
    Ints sizes;
    int64_t all = 1;
    for (int i = 0; i < count; ++i) all *= sizes.emplace_back(Size(random, most));
    if (all <= product) return sizes;
  }
}

Shape AnyShape(Random& random, int rank) { return Sizes(random, rank, random.OneIn(3) ? 300 : 20, 20000); }
int Rank(Random& random) { return static_cast<int>(random.Between(1, 4)); }

Tensor Codes(Random& random, const Shape& shape) {
  const DType dtype = random.OneIn(2) ? DType::kU8 : DType::kI8;
  const auto zero_point = static_cast<int32_t>(random.From(Ints{0, 255, 128, 7, 3})) - (dtype == DType::kI8 ? 128 : 0);
  const float scale = random.From(std::vector<float>{0.02f, 0.1f, 0.003f});
  return SeededTensor(kernels::Codes(dtype, shape, scale, zero_point), random.Next());
}

Tensor Plain(Random& random, DType dtype, const Shape& shape) {
  return SeededTensor({dtype, shape, std::nullopt, Layout::kRowMajor}, random.Next());
}
Tensor Reals(Random& random, const Shape& shape) { return Plain(random, DType::kF32, shape); }

// i8, of all eight bits or of fewer.
Tensor Weight(Random& random, const Shape& shape, int channel_axis) {
  std::vector<float> scales;
  for (int64_t n = 0; n < shape[channel_axis]; ++n) scales.push_back(0.001f + 0.0003f * static_cast<float>(n % 7));
  const QuantParams params = random.OneIn(3) ? PerTensor(0.002f) : PerAxis(channel_axis, scales);
  Tensor weight = SeededTensor({DType::kI8, shape, params, Layout::kRowMajor}, random.Next());
  const int64_t most = random.From(Ints{128, 64, 30, 20});
  for (int64_t i = 0; i < weight.num_elements(); ++i) {
    weight.data<int8_t>()[i] = static_cast<int8_t>(weight.data<int8_t>()[i] * most / 128);
  }
  return weight;
}

std::string Function(Random& random) {
  return random.From(std::vector<std::string>{"none", "relu", "clamp(min=-0.5, max=1.5)", "hardswish", "hardsigmoid",
                                              "leaky_relu(negative_slope=0.1)", "sigmoid", "silu", "tanh", "gelu",
                                              "mish", "gelu(approximate=tanh)",
                                              "leaky_relu(negative_slope=0.1), clamp(min=-0.125, max=inf)"});
}

// Codes in steps of about `scale`, or floats where the op leaves them.
void SetResult(Random& random, double scale, bool may_be_float, OpCall& call) {
  const DType dtype = may_be_float && random.OneIn(3) ? DType::kF32 : random.OneIn(2) ? DType::kU8 : DType::kI8;
  call.attributes.insert_or_assign("out_dtype", dtype);
  if (dtype == DType::kF32) return;
  const double steps = scale * (0.3 + static_cast<double>(random.Between(0, 100)) / 70);
  call.attributes.insert_or_assign("out_scale", steps);
  call.attributes.insert_or_assign("out_zero_point", random.Between(0, 255) - (dtype == DType::kI8 ? 128 : 0));
}

double ScaleOf(const Tensor& codes) { return codes.type().quant->scale(); }

OpCall Linear(Random& random) {
  Ints sizes = Sizes(random, 3, 500, 1000000);  // Features, channels, rows.
  const int64_t features = sizes[0], channels = sizes[1];
  Shape input = {sizes[2], features};
  if (random.OneIn(4)) input.insert(input.begin(), random.Between(1, 3));
  const Tensor x = Codes(random, input);
  OpCall call{"int8.linear", {x, Weight(random, {channels, features}, 0), std::nullopt}, {}};
  if (!random.OneIn(3)) call.operands[2] = Reals(random, {channels});
  SetResult(random, ScaleOf(x) * 0.002 * std::sqrt(static_cast<double>(features)), true, call);
  const bool is_float = call.attributes.at("out_dtype").as_dtype() == DType::kF32;
  Activation activation = ParseActivation(Function(random)).value();
  if (is_float && !activation.is_relu()) activation = activation.without_bounds();  // Bounds are codes.
  call.attributes.insert_or_assign("activation", ToString(activation));
  return call;
}

// Weights of four bits, with zero points or without, of eight bits, and MXFP4's, with a scale for each group of
// features.
OpCall LinearGroups(Random& random) {
  const Ints sizes = Sizes(random, 3, 400, 1000000);  // Features, channels, rows.
  const bool mxfp4 = random.OneIn(4), four_bits = random.OneIn(2), zero_points = four_bits && random.OneIn(2);
  const int64_t features = sizes[0] * (random.OneIn(8) ? 8 : 1), channels = sizes[1], rows = sizes[2];
  const int64_t group = mxfp4 ? 32 : random.From(Ints{32, 64, 128}), groups = (features + group - 1) / group;
  Tensor weight = Plain(random, mxfp4 ? DType::kU8 : DType::kI8, {channels, features});
  const Tensor zero_point = Plain(random, DType::kI8, {channels, groups});
  for (int64_t i = 0; i < weight.num_elements() && (mxfp4 || four_bits); ++i) {
    const double zero = zero_point.At(i / features * groups + i % features / group);
    weight.Set(i, std::floor(weight.At(i) / 16) + (zero_points ? std::floor(zero / 16) : 0));
  }
  Tensor scale = Reals(random, {channels, groups});
  if (mxfp4) {
    Tensor exponents = Plain(random, DType::kU8, scale.shape());
    for (int64_t i = 0; i < exponents.num_elements(); ++i) exponents.Set(i, 110 + std::floor(exponents.At(i) / 8));
    scale = exponents;
  }
  return {
      "int8.linear_groups",
      {Plain(random, DType::kI8, {rows, features}), weight, scale, Reals(random, {rows, 1}), Reals(random, {channels})},
      {{"group_size", group}, {"activation", random.From(std::vector<std::string>{"none", "relu", "silu", "gelu"})}}};
}

OpCall Matmul(Random& random) {
  const Ints sizes = Sizes(random, 3, 300, 700000);  // Rows, depth, columns.
  Shape a = {sizes[0], sizes[1]}, b = {sizes[1], sizes[2]};
  if (random.OneIn(2)) {
    a.insert(a.begin(), random.Between(1, 4));
    if (random.OneIn(2)) b.insert(b.begin(), random.OneIn(2) ? a[0] : 1);
  }
  const Tensor left = Codes(random, a), right = Codes(random, b);
  OpCall call{"int8.matmul", {left, right}, {}};
  SetResult(random, ScaleOf(left) * ScaleOf(right) * 60 * std::sqrt(static_cast<double>(sizes[1])), true, call);
  return call;
}

OpCall Binary(Random& random) {
  Shape a = AnyShape(random, Rank(random)), b = a;
  for (int64_t& size : b) size = random.OneIn(3) ? 1 : size;
  for (int64_t& size : a) size = random.OneIn(6) ? 1 : size;
  if (random.OneIn(4)) b.erase(b.begin(), b.begin() + random.Between(0, static_cast<int64_t>(b.size()) - 1));
  if (random.OneIn(2)) std::swap(a, b);
  const std::string op = random.From(std::vector<std::string>{"int8.add", "int8.mul", "int8.sub", "int8.div"});
  OpCall call{op, {Codes(random, a), Codes(random, b)}, {}};
  SetResult(random, 0.05, false, call);
  return call;
}

OpCall Unary(Random& random) {
  const std::string op =
      random.From(std::vector<std::string>{"int8.hardswish", "int8.sigmoid", "int8.silu", "int8.tanh", "int8.gelu",
                                           "int8.relu", "int8.leaky_relu", "int8.hardsigmoid", "int8.clamp"});
  OpCall call{op, {Codes(random, AnyShape(random, Rank(random)))}, {}};
  SetResult(random, 0.02, false, call);
  return call;
}

OpCall Pool(Random& random) {
  const Shape input = AnyShape(random, 4);
  if (random.OneIn(4)) {
    OpCall call{"int8.global_avg_pool", {Codes(random, input)}, {}};
    SetResult(random, 0.03, false, call);
    return call;
  }
  const Ints kernel = {random.Between(1, std::min<int64_t>(input[2], 6)),
                       random.Between(1, std::min<int64_t>(input[3], 6))};
  Ints padding;
  for (int i = 0; i < 4; ++i) padding.push_back(random.OneIn(2) ? 0 : random.Between(0, kernel[i % 2] / 2));
  const bool max = random.OneIn(3);
  OpCall call{max ? "int8.max_pool2d" : "int8.avg_pool2d",
              {Codes(random, input)},
              {{"kernel_size", kernel},
               {"stride", Ints{random.Between(1, 3), random.Between(1, 3)}},
               {"padding", padding},
               {"ceil_mode", random.OneIn(3)}}};
  if (max) return call;
  call.attributes.insert_or_assign("count_include_pad", random.OneIn(2));
  SetResult(random, 0.03, false, call);
  return call;
}

OpCall Norm(Random& random) {
  if (random.OneIn(2)) {
    const Shape shape = AnyShape(random, 2);
    const bool rms = random.OneIn(2);
    OpCall call{rms ? "int8.rms_norm" : "int8.layer_norm",
                {Codes(random, shape), Reals(random, {shape[1]})},
                {{"normalized_shape", Ints{shape[1]}}}};
    if (!rms) call.operands.push_back(Reals(random, {shape[1]}));
    SetResult(random, 0.02, false, call);
    return call;
  }
  const Shape shape = AnyShape(random, 4);
  int64_t groups = random.Between(1, shape[1]);
  while (shape[1] % groups != 0) --groups;
  OpCall call{"int8.group_norm",
              {Codes(random, shape), Reals(random, {shape[1]}), Reals(random, {shape[1]})},
              {{"activation", Function(random)}, {"num_groups", groups}}};
  SetResult(random, 0.02, false, call);
  return call;
}

OpCall Quantize(Random& random) {
  const Shape shape = AnyShape(random, Rank(random));
  if (random.OneIn(2)) return {"int8.dequantize", {Codes(random, shape)}, {}};
  OpCall call{"int8.quantize", {Reals(random, shape)}, {}};
  SetResult(random, 0.01, false, call);
  return call;
}

// Of one token, of a few, and of many; a head of keys serves several of queries.
OpCall Attention(Random& random) {
  const int64_t batch = random.Between(1, 2), heads = random.Between(1, 4), key_heads = random.OneIn(3) ? 1 : heads;
  Ints sizes = Sizes(random, 4, 500, 20000000);  // Keys, queries, and the elements of both products.
  if (random.OneIn(2)) sizes[1] = random.Between(1, 4);
  while (sizes[0] * sizes[1] * (sizes[2] + sizes[3]) > 400000)
    sizes[0] = (sizes[0] + 1) / 2, sizes[1] = (sizes[1] + 1) / 2;
  const int64_t keys = sizes[0], queries = sizes[1], depth = sizes[2], width = sizes[3];
  OpCall call{"int8.attention",
              {Codes(random, {batch, heads, queries, depth}), Codes(random, {batch, key_heads, keys, depth}),
               Codes(random, {batch, key_heads, keys, width}), std::nullopt},
              {{"scale", (random.OneIn(3) ? 200 : 3) / std::sqrt(static_cast<double>(depth))},
               {"is_causal", random.OneIn(3)},
               {"softcap", random.OneIn(4) ? 1.5 : 0.0}}};
  if (random.OneIn(3)) {
    const std::vector<Shape> masks = {{queries, keys}, {batch, 1, queries, keys}, {1, 1, 1, keys}, {queries, 1}};
    call.operands[3] = Reals(random, random.From(masks));
  }
  SetResult(random, 0.015, true, call);
  return call;
}

OpCall Recurrent(Random& random) {
  const auto [op, gates] =
      random.From(std::vector<std::pair<std::string, int64_t>>{{"int8.rnn", 1}, {"int8.gru", 3}, {"int8.lstm", 4}});
  const int64_t inputs = Size(random, 60), units = Size(random, 90), rows = gates * units;
  const int64_t directions = random.Between(1, 2);
  OpCall call{op,
              {Codes(random, {random.Between(1, 6), Size(random, 12), inputs}),
               Weight(random, {directions, rows, inputs}, 1), Weight(random, {directions, rows, units}, 1)},
              {{"direction", directions == 2   ? "bidirectional"
                             : random.OneIn(3) ? "reverse"
                                               : "forward"}}};
  if (random.OneIn(2)) call.operands.push_back(Reals(random, {directions, 2 * rows}));
  return call;
}

OpCall Integer(Random& random) {
  const auto bytes = [&](const Shape& shape) {
    return Plain(random, random.OneIn(2) ? DType::kU8 : DType::kI8, shape);
  };
  if (random.OneIn(2)) {
    const Ints sizes = Sizes(random, 3, 300, 700000);
    return {"matmul_integer", {bytes({sizes[0], sizes[1]}), bytes({sizes[1], sizes[2]})}, {}};
  }
  const int64_t groups = random.OneIn(3) ? random.Between(2, 4) : 1, inputs = Size(random, 30),
                outputs = Size(random, 40);
  const Ints kernel = {random.Between(1, 4), random.Between(1, 4)};
  const Shape input = {1, groups * inputs, kernel[0] + random.Between(0, 9), kernel[1] + random.Between(0, 9)};
  return {"conv_integer2d",
          {bytes(input), bytes({groups * outputs, inputs, kernel[0], kernel[1]})},
          {{"groups", groups},
           {"stride", Ints{random.Between(1, 2), random.Between(1, 2)}},
           {"padding", Ints{random.Between(0, 2), random.Between(0, 2), random.Between(0, 2), random.Between(0, 2)}}}};
}

using Family = OpCall(Random& random);
const std::map<std::string, Family*>& Families() {
  static const auto& families = *new std::map<std::string, Family*>{
      {"attention", Attention},        {"binary", Binary},       {"integer", Integer}, {"linear", Linear},
      {"linear_groups", LinearGroups}, {"matmul", Matmul},       {"norm", Norm},       {"pool", Pool},
      {"quantize", Quantize},          {"recurrent", Recurrent}, {"unary", Unary}};
  return families;
}

std::string Text(const OpCall& call) {
  std::string text = call.op;
  for (const auto& operand : call.operands) absl::StrAppend(&text, " ", operand ? ToString(operand->type()) : "none");
  for (const auto& [name, value] : call.attributes) absl::StrAppend(&text, " ", name, "=", value.ToString());
  return text;
}

class RandomCallsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RandomCallsTest, EqualsReference) {
  KernelRegistry kernels;
  RegisterAll(kernels);
  for (uint64_t seed = first_seed; seed < first_seed + num_seeds; ++seed) {
    Random random(seed);
    const OpCall call = Families().at(GetParam())(random);
    ASSERT_EQ(DifferenceFromReference(kernels, call), "") << "seed " << seed << ": " << Text(call);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, RandomCallsTest, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& family : Families()) names.push_back(family.first);
                           return names;
                         }()),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace fuselage::kernels

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    uint64_t* const number = absl::ConsumePrefix(&argument, "--first=")   ? &fuselage::kernels::first_seed
                             : absl::ConsumePrefix(&argument, "--seeds=") ? &fuselage::kernels::num_seeds
                                                                          : nullptr;
    if (number == nullptr || !absl::SimpleAtoi(argument, number)) {
      std::cerr << argv[i] << ": wanted --first=SEED or --seeds=COUNT\n";
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
