#include "kernels/int8/conv2d/testing/testing.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace fuselage::int8::conv2d {
namespace {

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  float Uniform(float lo, float hi) { return lo + (hi - lo) * static_cast<float>(Next() >> 40) * 0x1p-24f; }

 private:
  uint64_t state_;
};

TensorType Codes(DType dtype, Shape shape, float scale, int zero_point) {
  return TensorType{dtype, std::move(shape), PerTensor(scale, zero_point), Layout::kNhwc};
}

}  // namespace

std::string Case::ToString() const {
  return absl::StrCat("batch ", batch, " ic ", in_channels, " ", height, "x", width, " oc ", out_channels, " kernel ",
                      kernel_height, "x", kernel_width, " stride ", stride_y, ",", stride_x, " pad ", top, ",", left,
                      ",", bottom) +
         absl::StrCat(",", right, " dilation ", dilation_y, ",", dilation_x, " groups ", groups, " ",
                      fuselage::ToString(activation), post ? ", scaled" : "", per_channel ? "" : " per-tensor",
                      " bias ", DTypeName(bias), " in ", DTypeName(input_type)) +
         absl::StrCat(" zp ", input_zero_point, " out ", DTypeName(output_type), " zp ", output_zero_point) +
         (residual_type ? absl::StrCat(" residual ", DTypeName(*residual_type), " zp ", residual_zero_point) : "") +
         absl::StrCat(" fill ", static_cast<int>(fill), " to ", max_weight, " gain ", gain, " threads ", threads,
                      ", input ", PlacementText(input_placement), ", residual ", PlacementText(residual_placement),
                      ", output ", PlacementText(output_placement));
}

Instance::Instance(const Case& c, uint64_t seed) : shape(c) {
  Random random(seed);
  const auto fill_codes = [&](DType dtype, int64_t count, std::vector<uint8_t>* codes) {
    codes->resize(count);
    const uint8_t largest = dtype == DType::kU8 ? 255 : 127, smallest = dtype == DType::kU8 ? 0 : 128;
    for (int64_t i = 0; i < count; ++i) {
      (*codes)[i] = c.fill == Fill::kRandom      ? static_cast<uint8_t>(random.Next())
                    : c.fill == Fill::kSaturated ? largest
                    : random.Next() % 2          ? largest
                                                 : smallest;
    }
  };
  fill_codes(c.input_type, int64_t{1} * c.batch * c.height * c.width * c.in_channels, &input);
  if (c.residual_type) {
    fill_codes(*c.residual_type, int64_t{1} * c.batch * c.out_height() * c.out_width() * c.out_channels, &residual);
  }
  const int inner = c.in_channels / c.groups * c.kernel_height * c.kernel_width;
  weight = Tensor(DType::kI8, {c.out_channels, c.in_channels / c.groups, c.kernel_height, c.kernel_width});
  int8_t* w = weight.data<int8_t>();
  for (int64_t i = 0; i < weight.num_elements(); ++i) {
    if (c.fill == Fill::kRandom) {
      // A sum of uniforms is bell-shaped; one in 64 uses the whole range.
      const int bell = static_cast<int>(random.Next() % 49 + random.Next() % 49 + random.Next() % 49) - 72;
      w[i] = static_cast<int8_t>(random.Next() % 64 == 0 ? static_cast<int>(random.Next() % 256) - 128 : bell);
    } else {
      w[i] = c.fill == Fill::kSaturated ? -127 : random.Next() % 2 ? -128 : 127;
    }
    w[i] = static_cast<int8_t>(std::clamp<int>(w[i], -c.max_weight, c.max_weight));
  }
  std::vector<float> scales(c.per_channel ? c.out_channels : 1);
  for (float& scale : scales) scale = random.Uniform(0.002f, 0.02f);
  TensorType weight_type = weight.type();
  weight_type.quant = c.per_channel ? PerAxis(0, scales) : PerTensor(scales[0]);
  weight.set_type(weight_type);

  input_scale = random.Uniform(0.01f, 0.1f);
  residual_scale = random.Uniform(0.01f, 0.1f);
  output_scale = input_scale * 0.01f * 73.0f * 25.0f * std::sqrt(static_cast<float>(inner)) / 64.0f / c.gain;
  if (c.bias == DType::kF32) {
    bias = Tensor(DType::kF32, {c.out_channels});
    for (int i = 0; i < c.out_channels; ++i) bias.data<float>()[i] = random.Uniform(-10.0f, 10.0f) * output_scale;
  } else if (c.bias == DType::kI32) {
    bias = Tensor(DType::kI32, {c.out_channels});
    for (int i = 0; i < c.out_channels; ++i) {
      bias.data<int32_t>()[i] = static_cast<int32_t>(random.Next() % 20001) - 10000;
    }
  }
  if (!c.post) return;
  post_scale = post_shift = Tensor(DType::kF32, {c.out_channels});
  for (int i = 0; i < c.out_channels; ++i) {
    post_scale.data<float>()[i] = random.Next() % 8 == 0 ? 0 : random.Uniform(-2.0f, 2.0f);
    post_shift.data<float>()[i] = random.Next() % 8 == 0 ? 0 : random.Uniform(-50.0f, 50.0f) * output_scale;
  }
}

kernels::KernelDesc Instance::Desc() const {
  const Case& c = shape;
  kernels::KernelDesc desc;
  desc.op = "int8.conv2d";
  desc.attributes.emplace("stride", std::vector<int64_t>{c.stride_y, c.stride_x});
  desc.attributes.emplace("padding", std::vector<int64_t>{c.top, c.left, c.bottom, c.right});
  desc.attributes.emplace("dilation", std::vector<int64_t>{c.dilation_y, c.dilation_x});
  desc.attributes.emplace("groups", c.groups);
  desc.attributes.emplace("activation", ToString(c.activation));
  desc.inputs.push_back(
      Codes(c.input_type, {c.batch, c.in_channels, c.height, c.width}, input_scale, c.input_zero_point));
  const Shape out = {c.batch, c.out_channels, c.out_height(), c.out_width()};
  desc.inputs.push_back(std::nullopt);
  if (c.residual_type) desc.inputs[1] = Codes(*c.residual_type, out, residual_scale, c.residual_zero_point);
  desc.outputs.push_back(c.output_type == DType::kF32 ? TensorType{DType::kF32, out, std::nullopt, Layout::kNhwc}
                                                      : Codes(c.output_type, out, output_scale, c.output_zero_point));
  desc.parameters["weight"] = &weight;
  if (c.bias != DType::kBool) desc.parameters["bias"] = &bias;
  if (c.post) {
    desc.parameters["post_scale"] = &post_scale;
    desc.parameters["post_shift"] = &post_shift;
  }
  desc.threads = c.threads;
  desc.input_placements = {c.input_placement, c.residual_placement};
  desc.output_placement = c.output_placement;
  return desc;
}

std::vector<uint8_t> Place(const std::vector<uint8_t>& dense, const kernels::PlacedTensor& placed, uint8_t padding,
                           uint8_t undefined) {
  if (placed.placement.dense()) return dense;
  std::vector<uint8_t> result(placed.bytes, undefined);
  const uint8_t* from = dense.data();
  for (int64_t n = 0; n < placed.batch; ++n) {
    placed.FillHalo(result.data(), padding, n, 0, placed.height);
    for (int64_t y = 0; y < placed.height; ++y) {
      for (int64_t x = 0; x < placed.width; ++x, from += placed.channels) {
        std::memcpy(result.data() + placed.Offset(n, y, x), from, placed.channels);
      }
    }
  }
  return result;
}

Case SquareCase(int in_channels, int size, int out_channels, int kernel, int stride) {
  Case c;
  c.in_channels = in_channels, c.out_channels = out_channels;
  c.height = c.width = size;
  c.kernel_height = c.kernel_width = kernel;
  c.stride_y = c.stride_x = stride;
  c.top = c.left = c.bottom = c.right = kernel / 2;
  c.activation = Activation::Relu();
  return c;
}

void PickOperands(Picker& pick, Case* c) {
  const DType codes[] = {DType::kU8, DType::kI8};
  const auto zero_point = [&](DType dtype) {
    const int lo = dtype == DType::kU8 ? 0 : -128;
    const int choices[] = {lo, lo + 255, lo + 128, lo + 3};
    return choices[pick(4)];
  };
  c->activation = pick(2) == 0 ? Activation::Relu() : Activation();
  c->per_channel = pick(4) != 0;
  const DType biases[] = {DType::kF32, DType::kI32, DType::kBool};
  c->bias = biases[pick(3)];
  c->input_type = codes[pick(2)];
  c->input_zero_point = zero_point(c->input_type);
  c->output_type = pick(6) == 0 ? DType::kF32 : codes[pick(2)];
  if (c->output_type != DType::kF32) {
    c->output_zero_point = zero_point(c->output_type);
    if (pick(4) == 0) c->activation = {pick(2) == 0 ? 0.0f : -0.7f, 1.3f};
    if (pick(3) == 0) {
      c->residual_type = codes[pick(2)];
      c->residual_zero_point = zero_point(*c->residual_type);
    }
  }
  const Fill fills[] = {Fill::kRandom, Fill::kRandom, Fill::kRandom, Fill::kSaturated, Fill::kAlternating};
  c->fill = fills[pick(5)];
  c->max_weight = pick(2) == 0 ? 64 : 128;
  if (pick(3) == 0) {
    const char* functions[] = {"hardswish", "hardsigmoid", "leaky_relu(negative_slope=0.1)", "sigmoid", "silu", "tanh",
                               "gelu",      "mish",        "gelu(approximate=tanh)"};
    c->activation = ParseActivation(functions[pick(9)]).value();
    if (pick(2) == 0) c->gain = 50;  // Of values near 0 too.
    c->post = pick(2) == 0;
    if (!c->post && c->output_type != DType::kF32 && pick(2) == 0) c->activation = c->activation.Then({-0.05f, 1.1f});
  }
}

bool Supports(const Variant& variant, const kernels::KernelDesc& desc) {
  absl::StatusOr<Problem> problem = ProblemOf(desc);
  return problem.ok() && (variant.supports == nullptr || variant.supports(std::move(*problem).ColumnAsRow()));
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(kernels::KernelDesc desc, Variant variant) {
  desc.isa = kernels::BestIsa();
  variant.worthwhile = nullptr;
  return EntryOf({&variant, 1}).create(desc);
}

kernels::Placement PreferredInputPlacement(const Variant& variant, const kernels::KernelDesc& desc) {
  const absl::StatusOr<Problem> problem = ProblemOf(desc);
  return problem.ok() && variant.preferred_input_placement != nullptr ? variant.preferred_input_placement(*problem)
                                                                      : kernels::Placement();
}

}  // namespace fuselage::int8::conv2d
