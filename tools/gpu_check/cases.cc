#include "tools/gpu_check/cases.h"

#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/int8/conv2d/cuda/testing.h"
#include "kernels/int8/conv2d/testing/testing.h"
#include "kernels/int8/recurrent/recurrent_cases.h"

namespace fuselage::gpu_check {
namespace {

using Ints = std::vector<int64_t>;

TensorType Codes(DType dtype, Shape shape, float scale, int zero_point, Layout layout = Layout::kNhwc) {
  if (shape.size() != 4) layout = Layout::kRowMajor;
  return {dtype, std::move(shape), PerTensor(scale, zero_point), layout};
}

TensorType Floats(Shape shape, Layout layout = Layout::kRowMajor) {
  return {DType::kF32, std::move(shape), std::nullopt, layout};
}

// With the max pool `pool` behind it, unless that is null.
Case Conv(std::string name, const int8::conv2d::Case& shape, uint64_t seed, const kernels::PoolWindow* pool = nullptr) {
  auto instance = std::make_shared<const int8::conv2d::Instance>(shape, seed);
  Case c;
  c.name = std::move(name);
  c.macs = shape.macs();
  c.desc = pool == nullptr ? instance->Desc() : int8::conv2d::cuda::PooledDesc(*instance, *pool);
  const std::vector<uint8_t>* bytes[] = {&instance->input, &instance->residual};
  for (size_t i = 0; i < c.desc.inputs.size(); ++i) {
    c.inputs.emplace_back();
    if (!c.desc.inputs[i]) continue;
    c.inputs[i].emplace(*c.desc.inputs[i]);
    std::memcpy(c.inputs[i]->raw_data(), bytes[i]->data(), bytes[i]->size());
  }
  c.parameters = std::move(instance);
  return c;
}

// An operator without parameters, on seeded inputs.
Case Plain(std::string name, std::string op, std::vector<TensorType> inputs, TensorType output,
           AttributeMap attributes = {}) {
  Case c;
  c.name = std::move(name);
  c.desc.op = std::move(op);
  c.desc.attributes = std::move(attributes);
  uint64_t seed = 1;
  for (TensorType& input : inputs) {
    c.inputs.emplace_back(SeededTensor(input, ++seed));
    c.desc.inputs.emplace_back(std::move(input));
  }
  c.desc.outputs.push_back(std::move(output));
  return c;
}

Case Linear(std::string name, int64_t rows, int64_t depth, int64_t channels, DType output) {
  const TensorType y = output == DType::kF32 ? Floats({rows, channels}) : Codes(output, {rows, channels}, 0.05f, 7);
  Case c =
      Plain(std::move(name), "int8.linear", {Codes(DType::kU8, {rows, depth}, 0.02f, 3)}, y, {{"activation", "none"}});
  c.macs = rows * depth * channels;
  std::vector<float> scales;
  for (int64_t n = 0; n < channels; ++n) scales.push_back(0.001f + 0.0003f * static_cast<float>(n % 7));
  struct Parameters {
    Tensor weight, bias;
  };
  auto parameters = std::make_shared<Parameters>();
  parameters->weight =
      SeededTensor({DType::kI8, {channels, depth}, PerAxis(0, std::move(scales)), Layout::kRowMajor}, 3);
  parameters->bias = SeededTensor(Floats({channels}), 4);
  c.desc.parameters = {{"weight", &parameters->weight}, {"bias", &parameters->bias}};
  c.parameters = std::move(parameters);
  return c;
}

AttributeMap Window(int64_t kernel, int64_t stride, int64_t padding) {
  return {{"kernel_size", Ints{kernel, kernel}},
          {"stride", Ints{stride, stride}},
          {"padding", Ints(4, padding)},
          {"ceil_mode", false}};
}

Case MaxPool(std::string name, const Shape& in, DType dtype, int64_t kernel, int64_t stride, int64_t padding) {
  const auto size = [&](int64_t n) { return (n + 2 * padding - kernel) / stride + 1; };
  AttributeMap attributes = Window(kernel, stride, padding);
  attributes.emplace("dilation", Ints{1, 1});
  return Plain(std::move(name), "int8.max_pool2d", {Codes(dtype, in, 0.1f, 3)},
               Codes(dtype, {in[0], in[1], size(in[2]), size(in[3])}, 0.1f, 3), std::move(attributes));
}

Case AveragePool(std::string name, const Shape& in, int64_t kernel, int64_t stride, int64_t padding) {
  const auto size = [&](int64_t n) { return (n + 2 * padding - kernel) / stride + 1; };
  AttributeMap attributes = Window(kernel, stride, padding);
  attributes.emplace("count_include_pad", kernel % 2 == 0);
  return Plain(std::move(name), "int8.avg_pool2d", {Codes(DType::kU8, in, 0.1f, 3)},
               Codes(DType::kI8, {in[0], in[1], size(in[2]), size(in[3])}, 0.05f, -3), std::move(attributes));
}

Case GlobalAveragePool(std::string name, const Shape& in) {
  return Plain(std::move(name), "int8.global_avg_pool", {Codes(DType::kU8, in, 0.1f, 3)},
               Codes(DType::kU8, {in[0], in[1], 1, 1}, 0.05f, 5));
}

// The head of a ResNet: x is [n, c, h, w].
Case PoolLinear(std::string name, const Shape& x, int64_t channels, DType output) {
  Case c = Linear(std::move(name), x[0], x[1], channels, output);
  c.desc.op = "int8.global_avg_pool_linear";
  c.desc.attributes.insert({{"pool_out_dtype", DType::kU8}, {"pool_out_scale", 0.02}, {"pool_out_zero_point", 3}});
  const TensorType type = Codes(DType::kU8, x, 0.04f, 5);
  c.desc.inputs = {type};
  c.inputs.clear();
  c.inputs.emplace_back(SeededTensor(type, 5));
  return c;
}

Case Quantize(std::string name, const Shape& shape, DType dtype) {
  return Plain(std::move(name), "int8.quantize", {Floats(shape)},
               Codes(dtype, shape, 0.0078f, 114 - 128 * (dtype == DType::kI8)));
}

// Plain i8 codes, as they are where rows have scales of their own.
TensorType PlainCodes(Shape shape) { return {DType::kI8, std::move(shape), std::nullopt, Layout::kRowMajor}; }

void AddParameters(Case* c, std::vector<std::pair<std::string, Tensor>> parameters) {
  auto owned = std::make_shared<std::vector<std::pair<std::string, Tensor>>>(std::move(parameters));
  for (const auto& [name, tensor] : *owned) c->desc.parameters[name] = &tensor;
  c->parameters = std::move(owned);
}

// An image's bytes, each channel by a table of its own, in planes or in pixels.
Case Lookup(std::string name, const Shape& shape, Layout layout) {
  Case c = Plain(std::move(name), "int8.lookup", {{DType::kU8, shape, std::nullopt, layout}},
                 Codes(DType::kU8, shape, 0.0078f, 114));
  AddParameters(&c, {{"table", SeededTensor({DType::kU8, {shape[1], 256}, std::nullopt, Layout::kRowMajor}, 4)}});
  return c;
}

// In four groups, where channels are normalized in groups.
Case ImageNorm(const std::string& op, const Shape& shape, DType dtype, const char* activation) {
  Case c = Plain(absl::StrCat(op, " ", ToString(shape)), op, {Codes(dtype, shape, 0.02f, 5)},
                 Codes(DType::kU8, shape, 0.017f, 120), {{"eps", 1e-5}, {"activation", activation}});
  if (op == "int8.group_norm") c.desc.attributes.emplace("num_groups", int64_t{4});
  AddParameters(&c, {{"weight", SeededTensor(Floats({shape[1]}), 4)}, {"bias", SeededTensor(Floats({shape[1]}), 5)}});
  return c;
}

// What transformers are made of: `tokens` of `heads` times `depth` features.
struct Transformer {
  int64_t tokens, heads, depth;
  DType dtype;

  int64_t width() const { return heads * depth; }
  Shape rows() const { return {2, tokens, width()}; }
  Shape split() const { return {2, heads, tokens, depth}; }
  std::string text() const { return absl::StrCat(tokens, "x", heads, "x", depth); }
  int zero_point() const { return dtype == DType::kI8 ? 117 - 128 : 117; }
  TensorType codes() const { return Codes(dtype, split(), 0.02f, zero_point(), Layout::kRowMajor); }
};

void AddAttention(const Transformer& t, std::vector<Case>* cases) {
  const int64_t tokens = t.tokens, heads = t.heads, depth = t.depth;
  const Shape split = t.split();
  const std::string text = t.text();
  const bool causal = tokens % 2 == 0;
  const TensorType codes = t.codes();
  const AttributeMap attention = {{"scale", 3.0 / depth}, {"is_causal", causal}, {"softcap", causal ? 0.0 : 4.0}};
  cases->push_back(Plain("attention " + text, "int8.attention", {codes, codes, codes}, codes, attention));
  cases->push_back(Plain("float attention " + text, "scaled_dot_product_attention",
                         std::vector<TensorType>(3, Floats(split)), Floats(split), attention));
  // Scores, with keys that both images share, and mixtures.
  const Shape square = {2, heads, tokens, tokens};
  cases->push_back(Plain("scores " + text, "int8.matmul",
                         {codes, Codes(DType::kU8, {heads, depth, tokens}, 0.03f, 9, Layout::kRowMajor)},
                         Floats(square)));
  cases->push_back(Plain("mixtures " + text, "int8.matmul",
                         {Codes(DType::kU8, square, 1.0f / 255, 0, Layout::kRowMajor), codes}, codes));
}

void AddNorms(const Transformer& t, std::vector<Case>* cases) {
  const int64_t tokens = t.tokens, width = t.width();
  const Shape rows = t.rows(), scales = {2, tokens, 1}, split = t.split();
  const std::string text = t.text();
  const DType dtype = t.dtype;
  // From codes to codes, and from a sum to codes with a scale for each row.
  for (const bool adds : {false, true}) {
    const TensorType x = adds ? Floats(rows) : Codes(dtype, rows, 0.02f, t.zero_point());
    const std::string op = adds ? "int8.rms_norm" : "int8.layer_norm";
    Case c = Plain(op + " " + text, op, {x}, adds ? PlainCodes(rows) : Codes(dtype, rows, 0.04f, 3),
                   {{"normalized_shape", Ints{width}}, {"eps", 1e-5}});
    if (adds) {
      c.inputs.emplace_back(SeededTensor(x, 9));
      c.desc.inputs.emplace_back(x);
      c.desc.outputs.insert(c.desc.outputs.end(), {Floats(scales), Floats(rows)});
    }
    AddParameters(&c, {{"weight", SeededTensor(Floats({width}), 4)}});
    cases->push_back(std::move(c));
  }
  Case quantize = Plain("dynamic quantize " + text, "dynamic_quantize_symmetric", {Floats(split)}, PlainCodes(split));
  quantize.desc.outputs.push_back(Floats({2, 1, tokens, 1}));
  cases->push_back(std::move(quantize));
}

// By scales of rows: weights of eight bits, and of four in two formats.
void AddLinears(const Transformer& t, std::vector<Case>* cases) {
  const int64_t tokens = t.tokens, width = t.width(), channels = 3 * width + 1, groups = (width + 31) / 32;
  const Shape rows = t.rows(), scales = {2, tokens, 1};
  const std::string text = t.text();
  Case per_token = Plain("linear per token " + text, "int8.linear", {PlainCodes(rows), Floats(scales)},
                         Floats({2, tokens, channels}), {{"activation", "silu"}});
  AddParameters(&per_token,
                {{"weight", SeededTensor({DType::kI8, {channels, width}, PerTensor(0.01f), Layout::kRowMajor}, 3)}});
  cases->push_back(std::move(per_token));
  Case mxfp4 = Plain("linear_groups " + text, "int8.linear_groups", {PlainCodes(rows), Floats(scales)},
                     Floats({2, tokens, channels}), {{"activation", "none"}, {"group_size", int64_t{32}}});
  Tensor weight = SeededTensor({DType::kU8, {channels, width}, std::nullopt, Layout::kRowMajor}, 3);
  Tensor exponents = SeededTensor({DType::kU8, {channels, groups}, std::nullopt, Layout::kRowMajor}, 4);
  for (int64_t i = 0; i < weight.num_elements(); ++i) weight.data<uint8_t>()[i] %= 16;
  for (int64_t i = 0; i < exponents.num_elements(); ++i) {
    exponents.data<uint8_t>()[i] = static_cast<uint8_t>(115 + exponents.data<uint8_t>()[i] % 9);
  }
  AddParameters(&mxfp4, {{"weight", std::move(weight)},
                         {"weight_scale", std::move(exponents)},
                         {"bias", SeededTensor(Floats({channels}), 5)}});
  cases->push_back(std::move(mxfp4));
  // Of 64 features, each with a zero point of its own.
  const int64_t group = 64, int4_groups = (width + group - 1) / group;
  Case int4 = Plain("linear_groups, zero points " + text, "int8.linear_groups", {PlainCodes(rows), Floats(scales)},
                    Floats({2, tokens, channels}), {{"activation", "none"}, {"group_size", group}});
  Tensor codes = SeededTensor({DType::kI8, {channels, width}, std::nullopt, Layout::kRowMajor}, 3);
  for (int64_t i = 0; i < codes.num_elements(); ++i) {
    codes.data<int8_t>()[i] = static_cast<int8_t>((codes.data<int8_t>()[i] & 15) - i % width / group % 16);
  }
  AddParameters(&int4,
                {{"weight", std::move(codes)}, {"weight_scale", SeededTensor(Floats({channels, int4_groups}), 4)}});
  cases->push_back(std::move(int4));
}

// A rotary embedding, on floats and on codes, and one by a table.
void AddEmbeddings(const Transformer& t, std::vector<Case>* cases) {
  const int64_t tokens = t.tokens, width = t.width();
  const Shape split = t.split();
  const std::string text = t.text();
  const TensorType codes = t.codes();
  const Attribute steps(std::vector<std::string>{"mul(0, 1)", "mul(2, 3)", "add(4, 5)"});
  const Shape table = {tokens, t.depth};
  cases->push_back(Plain("rotate floats " + text, "fused_elementwise",
                         {Floats(split), Floats(table), Floats(split), Floats(table)}, Floats(split),
                         {{"steps", steps}}));
  cases->push_back(Plain("rotate codes " + text, "int8.fused_elementwise",
                         {codes, Codes(DType::kU8, table, 0.008f, 127), codes, Codes(DType::kU8, table, 0.008f, 127)},
                         codes, {{"steps", steps}}));
  Case select =
      Plain("select " + text, "index_select", {Floats({256, width}), {DType::kI64, {2, tokens}, std::nullopt}},
            Floats(t.rows()), {{"dim", int64_t{0}}});
  for (int64_t i = 0; i < 2 * tokens; ++i) select.inputs[1]->data<int64_t>()[i] = 37 * i % 256;
  cases->push_back(std::move(select));
}

void AddTransformer(const Transformer& t, std::vector<Case>* cases) {
  AddAttention(t, cases);
  AddNorms(t, cases);
  AddLinears(t, cases);
  AddEmbeddings(t, cases);
}

// With all operands that may be absent, and i8 codes, if `full`.
Case Recurrent(const std::string& op, const int8::recurrent::Sizes& s, bool full, AttributeMap attributes = {}) {
  auto call = std::make_shared<kernels::OpCall>(int8::recurrent::Layer(op, s, full, std::move(attributes)));
  Case c;
  c.name = absl::StrCat(op, " ", s.inputs, " -> ", s.units, ", ", s.steps, " steps",
                        s.directions == 2 ? ", both ways" : "", full ? ", all operands" : "");
  c.desc = DescOf(*call, Layout::kRowMajor, Layout::kRowMajor);
  const int64_t rows = call->operands[1]->dim(1);
  c.macs = s.directions * s.steps * s.sequences * rows * (s.inputs + s.units);
  c.inputs.push_back(call->operands[0]);
  for (size_t i = 4; i < 3 + c.desc.inputs.size(); ++i) c.inputs.push_back(call->operands[i]);
  c.parameters = std::move(call);
  return c;
}

}  // namespace

std::vector<Case> ResNet18(int batch) {
  std::vector<Case> cases;
  const auto add = [&](Case c, int repetitions = 1) {
    c.repetitions = repetitions;
    cases.push_back(std::move(c));
  };
  const auto conv = [&](int in, int size, int out, int kernel, int stride, bool relu, bool residual) {
    int8::conv2d::Case c = int8::conv2d::SquareCase(in, size, out, kernel, stride);
    c.batch = batch;
    if (relu) c.activation = Activation::Relu();
    if (in == 3) c.input_zero_point = 114;
    if (residual) c.residual_type = DType::kU8;
    const bool stem = in == 3;
    const kernels::PoolWindow pool = int8::conv2d::cuda::SquarePool(c, /*kernel=*/3, /*stride=*/2, /*padding=*/1);
    const std::string name =
        absl::StrCat(in, "x", size, "x", size, " -> ", out, ", ", kernel, "x", kernel, "/", stride,
                     residual ? " + residual" : "", relu ? ", relu" : "", stem ? ", max pool" : "");
    return Conv(name, c, 1, stem ? &pool : nullptr);
  };
  add(Quantize("quantize", {batch, 3, 224, 224}, DType::kU8));
  add(conv(3, 224, 64, 7, 2, true, false));
  add(conv(64, 56, 64, 3, 1, true, false), 2);
  add(conv(64, 56, 64, 3, 1, true, true), 2);
  int size = 56;
  for (int out : {128, 256, 512}) {
    add(conv(out / 2, size, out, 3, 2, true, false));
    add(conv(out / 2, size, out, 1, 2, false, false));
    size /= 2;
    add(conv(out, size, out, 3, 1, true, false));
    add(conv(out, size, out, 3, 1, true, true), 2);
  }
  add(PoolLinear("average pool and linear 512 -> 1000", {batch, 512, 7, 7}, 1000, DType::kF32));
  return cases;
}

std::vector<Case> OtherLayers(int batch) {
  std::vector<Case> cases;
  const auto conv = [&](const char* what, int channels, int size, int groups, int kernel, int stride) {
    int8::conv2d::Case c = int8::conv2d::SquareCase(channels, size, channels, kernel, stride);
    c.batch = batch;
    c.groups = groups;
    c.activation = Activation::Relu();
    cases.push_back(Conv(absl::StrCat(what, " ", channels, "x", size, "x", size, ", ", groups, " groups, ", kernel, "x",
                                      kernel, "/", stride),
                         c, 1));
  };
  for (const int n : {1, 2, 4, 8}) conv("ResNeXt", 128 * n, 56 / n, 32, 3, 1);
  conv("ResNeXt", 256, 56, 32, 3, 2);
  conv("RegNet", 336, 28, 14, 3, 1);
  conv("depthwise", 32, 112, 32, 3, 1);
  conv("depthwise", 96, 112, 96, 3, 2);
  conv("depthwise", 144, 56, 144, 3, 1);
  conv("depthwise", 384, 14, 384, 3, 1);
  conv("depthwise", 960, 7, 960, 5, 1);

  cases.push_back(Lookup("lookup of planes", {batch, 3, 224, 224}, Layout::kRowMajor));
  cases.push_back(Lookup("lookup of pixels", {batch, 3, 224, 224}, Layout::kNhwc));

  constexpr int64_t kHeads = 6, kTokens = 197, kDepth = 64;
  const TensorType rows = Codes(DType::kU8, {batch, kHeads, kTokens, kDepth}, 0.02f, 117, Layout::kRowMajor);
  const TensorType columns = Codes(DType::kU8, {batch, kHeads, kDepth, kTokens}, 0.02f, 117, Layout::kRowMajor);
  const TensorType square = Codes(DType::kU8, {batch, kHeads, kTokens, kTokens}, 1.0f / 255, 0, Layout::kRowMajor);
  const int64_t macs = batch * kHeads * kTokens * kTokens * kDepth;
  cases.push_back(Plain("ViT-S attention", "int8.attention", {rows, rows, rows}, rows,
                        {{"scale", 0.125}, {"is_causal", false}, {"softcap", 0.0}}));
  cases.back().macs = 2 * macs;
  cases.push_back(Plain("ViT-S scores", "int8.matmul", {rows, columns}, square));
  cases.back().macs = macs;
  cases.push_back(Plain("ViT-S mixtures", "int8.matmul", {square, rows}, rows));
  cases.back().macs = macs;

  for (const int units : {512, 1024}) {
    cases.push_back(Recurrent("lstm", {/*steps=*/64, batch, units, units, /*directions=*/1}, /*full=*/false));
  }
  cases.push_back(Recurrent("gru", {64, batch, 512, 512, 1}, false, {{"linear_before_reset", true}}));
  return cases;
}

std::vector<Case> RandomCases(int count) {
  std::vector<Case> cases;
  std::mt19937 random(1);
  const auto pick = [&](int low, int high) { return low + static_cast<int>(random() % (high - low + 1)); };
  for (int i = 0; i < count; ++i) {
    int8::conv2d::Case conv = int8::conv2d::cuda::RandomCase(i, i % 2 ? 1 : 16, /*groups=*/i % 8 == 7);
    if (i % 8 == 3) conv.in_channels = 1 + i / 8 % 4;
    if (i % 8 == 6) conv = int8::conv2d::cuda::RandomGroupedCase(i / 8);
    if (i % 8 == 2) conv = int8::conv2d::cuda::RandomDepthwiseCase(i / 8);
    cases.push_back(Conv(conv.ToString(), conv, i));
    if (i % 8 == 3 && !conv.residual_type && conv.output_type != DType::kF32) {
      const kernels::PoolWindow pool = int8::conv2d::cuda::RandomPool(i, conv);
      cases.push_back(Conv("pooled " + conv.ToString(), conv, i, &pool));
    }
    if (i % 8 == 5) {
      const auto stem = int8::conv2d::cuda::RandomPooledStem(i, i % 16 == 5 ? 3 : 7);
      cases.push_back(Conv("stem " + stem.conv.ToString(), stem.conv, i, &stem.pool));
    }
    const Shape shape = {pick(1, 3), pick(1, 130), pick(1, 20), pick(1, 20)};
    const std::string text = absl::StrCat(shape[0], "x", shape[1], "x", shape[2], "x", shape[3]);
    const DType dtype = i % 2 ? DType::kI8 : DType::kU8;
    if (i % 16 == 5) AddTransformer({pick(1, 70), pick(1, 4), pick(1, 4) * (i % 32 == 5 ? 16 : 5), dtype}, &cases);
    if (i % 16 == 9) {
      for (const char* op : {"rnn", "gru", "lstm"}) {
        const int8::recurrent::Sizes sizes{pick(1, 9), pick(1, 40), pick(1, 200), pick(1, 700), pick(1, 2)};
        cases.push_back(Recurrent(op, sizes, /*full=*/i % 32 == 9));
      }
      cases.push_back(Recurrent("gru", {pick(1, 9), pick(1, 40), pick(1, 200), pick(1, 700), pick(1, 2)},
                                /*full=*/i % 32 == 9, {{"linear_before_reset", true}}));
    }
    switch (i % 7) {
      case 0:
        cases.push_back(Quantize("quantize " + text, shape, dtype));
        cases.push_back(Lookup("lookup " + text, shape, i % 2 ? Layout::kNhwc : Layout::kRowMajor));
        break;
      case 1: cases.push_back(MaxPool("max pool " + text, shape, dtype, 3, pick(1, 2), 1)); break;
      case 2: cases.push_back(AveragePool("average pool " + text, shape, 3, pick(1, 2), 1)); break;
      case 3:
        cases.push_back(GlobalAveragePool("global average pool " + text, shape));
        cases.push_back(PoolLinear(absl::StrCat("average pool and linear ", text), shape, 7 * i + 1,
                                   i % 2 ? DType::kI8 : DType::kF32));
        break;
      case 4:
        // The second operand may be of one image, or one pixel of each.
        for (const Shape& other : {shape, Shape{1, shape[1], shape[2], shape[3]}, Shape{shape[0], shape[1], 1, 1}}) {
          cases.push_back(Plain(absl::StrCat("add ", text, " and ", ToString(other)), "int8.add",
                                {Codes(dtype, shape, 0.03f, 5), Codes(DType::kU8, other, 0.02f, 100)},
                                Codes(dtype, shape, 0.04f, -3 * (i % 2)),
                                {{"alpha", 1.0}, {"activation", i % 3 ? "relu" : "none"}}));
        }
        break;
      case 5:
        cases.push_back(ImageNorm("int8.group_norm", {shape[0], 4 * shape[1], shape[2], shape[3]}, dtype, "silu"));
        cases.push_back(ImageNorm("int8.instance_norm", shape, dtype, "relu"));
        cases.push_back(
            Plain("relu " + text, "int8.relu", {Codes(dtype, shape, 0.03f, 5)}, Codes(dtype, shape, 0.02f, 0)));
        break;
      default:
        cases.push_back(Linear(absl::StrCat("linear ", text), shape[0] * shape[2], shape[1] * 4, shape[3] * 13,
                               i % 3 ? DType::kI8 : DType::kF32));
        cases.push_back(Plain("dequantize " + text, "int8.dequantize", {Codes(dtype, shape, 0.03f, 5)},
                              Floats(shape, i % 2 ? Layout::kNhwc : Layout::kRowMajor)));
    }
  }
  return cases;
}

}  // namespace fuselage::gpu_check
