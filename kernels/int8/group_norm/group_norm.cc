#include "kernels/int8/group_norm/group_norm.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "kernels/core/float_operands.h"
#include "kernels/core/requantize.h"
#include "kernels/int8/group_norm/rows.h"
#include "kernels/int8/quantize/quantize.h"

namespace fuselage::int8::group_norm {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, {scalar::Add, scalar::Scale}},
    {"avx2", Isa::kAvx2, {avx2::Add, avx2::Scale}},
    {"avx512_vnni", Isa::kAvx512Vnni, {avx512_vnni::Add, avx512_vnni::Scale}},
};

constexpr int64_t kTile = 1 << 11;   // Floats between a norm and its codes: they stay in a core's first cache.
constexpr int64_t kGrain = 1 << 13;  // Elements that are worth a thread's while.

// How many neighbouring pixels of an image's are taken as one, whose channels fill vectors.
int64_t PixelsTogether(int64_t channels, int64_t all) {
  constexpr int64_t kLanes = 16, kEnough = 128;
  int64_t pixels = 1;
  const auto is_enough = [&](int64_t wide) { return wide % kLanes == 0 && wide >= kEnough; };
  while (!is_enough(pixels * channels) && 2 * pixels * channels <= kTile && 2 * pixels <= all) pixels *= 2;
  return pixels;
}

class GroupNorm final : public kernels::UnaryKernel {
 public:
  GroupNorm(const KernelDesc& desc, Form form)
      : UnaryKernel(desc),
        form_(std::move(form)),
        x_scale_(desc.input(0).quant->scale()),
        functions_(kernels::BestVariant(Variants(), desc.isa).functions),
        together_(form_.channels_last ? PixelsTogether(form_.channels, form_.pixels) : 1),
        wide_channels_(form_.channels * together_),
        tile_((std::max(kTile, form_.channels_last ? form_.channels : 1) + 15) / 16 * 16) {
    const kernels::UnsignedForm x = kernels::UnsignedFormOf(desc.input(0)), y = kernels::UnsignedFormOf(desc.output());
    x_.flip = x.flip;
    x_.zero_point = x.zero_point;
    x_.channels = form_.channels_last ? form_.channels : 1;
    to_.pixels = tile_;
    to_.scale = desc.output().quant->scale();
    to_.flip = y.flip;
    to_.zero_point = y.zero_point;
    const Activation activation = *ParseActivation(desc.GetString("activation"));
    const kernels::CodeRange range = kernels::CodeRangeOf(DType::kU8, y.zero_point, to_.scale, activation);
    to_.lo = range.lo;
    to_.hi = range.hi;
    quantize_ = kernels::BestVariant(quantize::Variants(), desc.isa, to_).run;
    set_variant(kernels::BestVariant(Variants(), desc.isa).name);
    const int64_t threads = std::max(desc.threads, 1);
    parts_ = std::clamp<int64_t>(threads / form_.images, 1, std::max<int64_t>(1, ImageElements() / kGrain));
    set_scratch_bytes(SumsBytes() + ChannelsBytes() + threads * tile_ * static_cast<int64_t>(sizeof(float)));
  }

 private:
  int64_t ImageElements() const { return form_.channels * form_.pixels; }
  int64_t SumsBytes() const { return form_.images * parts_ * wide_channels_ * static_cast<int64_t>(sizeof(Sums)); }
  int64_t ChannelsBytes() const { return 2 * form_.images * wide_channels_ * static_cast<int64_t>(sizeof(float)); }

  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    const uint8_t* from = static_cast<const uint8_t*>(x);
    uint8_t* to = static_cast<uint8_t*>(y);
    auto* const sums = static_cast<Sums*>(context.scratch.data);
    auto* const gains = reinterpret_cast<float*>(static_cast<char*>(context.scratch.data) + SumsBytes());
    float *const offsets = gains + form_.images * wide_channels_, *const tiles =
                                                                      offsets + form_.images * wide_channels_;
    const int tasks = static_cast<int>(form_.images * parts_);
    context.parallel->For(tasks, [&](int task, int) {
      Sums* own = sums + task * wide_channels_;
      std::fill_n(own, wide_channels_, Sums{});
      ForRows(task, [&](int64_t channel, int64_t at, int64_t pixels) {
        ForTogether(from + at, pixels, [&](const Pixels& x) { functions_.add(x, own + channel); });
      });
    });
    for (int64_t image = 0; image < form_.images; ++image) {
      const int64_t at = image * wide_channels_;
      FindChannels(sums + at * parts_, gains + at, offsets + at);
    }
    context.parallel->For(tasks, [&](int task, int thread) {
      float* const tile = tiles + thread * tile_;
      const int64_t step = tile_ / (x_.channels * together_) * together_, image = task / parts_ * wide_channels_;
      ForRows(task, [&](int64_t channel, int64_t at, int64_t pixels) {
        for (int64_t done = 0, n; done < pixels; done += n, at += n * x_.channels) {
          n = std::min(step, pixels - done);
          float* values = tile;
          ForTogether(from + at, n, [&](const Pixels& x) {
            functions_.scale(x, gains + image + channel, offsets + image + channel,
                             form_.function ? &*form_.function : nullptr, values);
            values += x.pixels * x.channels;
          });
          quantize_(to_, tile, to + at, 0, n * x_.channels);
        }
      });
    });
  }

  // each(pixels) of those that are taken together, and of those that are left.
  template <typename Each>
  void ForTogether(const uint8_t* x, int64_t pixels, Each each) const {
    Pixels part = x_;
    part.x = x;
    part.pixels = pixels / together_;
    part.channels *= together_;
    if (part.pixels > 0) each(part);
    part.x += part.pixels * part.channels;
    part.pixels = pixels % together_;
    part.channels = x_.channels;
    if (part.pixels > 0) each(part);
  }

  // each(channel, at, pixels) of a task's share of an image: all channels at once, or one after the other.
  template <typename Each>
  void ForRows(int task, Each each) const {
    const int64_t image = task / parts_ * ImageElements(), part = task % parts_;
    const int64_t begin = form_.pixels * part / parts_, pixels = form_.pixels * (part + 1) / parts_ - begin;
    if (form_.channels_last) return each(0, image + begin * form_.channels, pixels);
    for (int64_t channel = 0; channel < form_.channels; ++channel) {
      each(channel, image + channel * form_.pixels + begin, pixels);
    }
  }

  // Of an image, from the sums of its parts; both for pixels that are taken together.
  void FindChannels(const Sums* sums, float* gains, float* offsets) const {
    for (int64_t first = 0; first < form_.channels; first += form_.group_channels) {
      Sums group{};
      for (int64_t part = 0; part < parts_; ++part) {
        for (int64_t c = 0; c < form_.group_channels; ++c) {
          for (int64_t i = first + c; i < wide_channels_; i += form_.channels) {
            const Sums& own = sums[part * wide_channels_ + i];
            group.codes += own.codes;
            group.squares += own.squares;
          }
        }
      }
      const Group found = GroupOf(form_.group_channels * form_.pixels, group, x_.zero_point, x_scale_, form_.eps);
      for (int64_t c = first; c < first + form_.group_channels; ++c) {
        const Channel channel = ChannelOf(found, x_scale_, form_.weight[c], form_.bias[c]);
        for (int64_t i = c; i < wide_channels_; i += form_.channels) {
          gains[i] = channel.gain;
          offsets[i] = channel.offset;
        }
      }
    }
  }

  const Form form_;
  const float x_scale_;
  const Functions functions_;
  const int64_t together_, wide_channels_;  // Pixels, and their channels.
  const int64_t tile_;
  Pixels x_;  // Without its place.
  quantize::Params to_;
  quantize::Function* quantize_ = nullptr;
  int64_t parts_ = 1;  // Of an image's pixels, each for a thread.
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<Form> FormOf(const KernelDesc& desc) {
  if (!desc.has_input(0)) return absl::InvalidArgumentError(absl::StrCat(desc.op, ": wanted an operand"));
  const TensorType &x = desc.input(0), &y = desc.output();
  RETURN_IF_ERROR(kernels::CheckCodes(x, "input"));
  RETURN_IF_ERROR(kernels::CheckCodes(y, "output"));
  if (x.shape != y.shape || x.layout != y.layout || x.rank() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(desc.op, ": ", ToString(x), " to ", ToString(y), ", wanted one shape and layout"));
  }
  if (x.num_elements() == 0) return absl::UnimplementedError(absl::StrCat("operand ", ToString(x), " is empty"));
  Form form;
  form.images = x.shape[0];
  form.channels = x.shape[1];
  form.pixels = x.num_elements() / (form.images * form.channels);
  if (desc.attributes.count("num_groups") > 0) form.group_channels = form.channels / desc.GetInt("num_groups");
  form.channels_last = x.layout == Layout::kNhwc || form.pixels == 1;
  form.eps = desc.GetFloat("eps");
  ASSIGN_OR_RETURN(form.weight, kernels::FloatsOr(desc, "weight", form.channels, 1.0f));
  ASSIGN_OR_RETURN(form.bias, kernels::FloatsOr(desc, "bias", form.channels, 0.0f));
  ASSIGN_OR_RETURN(const Activation activation, ParseActivation(desc.GetString("activation")));
  if (activation.function) form.function = elementwise::ForCodes(*activation.function);
  return form;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(Form form, FormOf(desc));
  return std::make_unique<GroupNorm>(desc, std::move(form));
}

void Register(kernels::KernelRegistry& registry) {
  for (const char* op : {"int8.group_norm", "int8.instance_norm"}) {
    registry.Register({op, kernels::LayoutRule::kSame, Create});
  }
}

void scalar::Add(const Pixels& pixels, Sums* sums) { AddPixels(pixels, sums); }

void scalar::Scale(const Pixels& pixels, const float* gains, const float* offsets,
                   const ElementwiseInstruction* function, float* y) {
  ScalePixels(pixels, gains, offsets, function, y, [](const ElementwiseInstruction& step, float* values, int64_t size) {
    for (int64_t i = 0; i < size; ++i) values[i] = elementwise::Activated(step, values[i]);
  });
}

}  // namespace fuselage::int8::group_norm
