#include "kernels/int8/lookup/lookup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/int8/quantize/pixel_codes.h"

namespace fuselage::int8::lookup {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

// kChannels: 0 for any number. What is stored may be any memory, so `p` is a copy.
template <int kChannels>
void RunPixels(const Params p, const uint8_t* tables, const uint8_t* x, uint8_t* y, int64_t count) {
  const int64_t channels = kChannels > 0 ? kChannels : p.channels, table_stride = p.tables > 1 ? kTableBytes : 0;
  for (int64_t i = 0; i < count; ++i, x += p.pixel_stride, y += channels) {
#pragma GCC unroll 3
    for (int64_t c = 0; c < channels; ++c) y[c] = tables[c * table_stride + x[c * p.channel_stride]];
  }
}

class Loop final : public quantize::PixelLoop {
 public:
  Loop(const Params& params, Function* run, const uint8_t* tables)
      : PixelLoop(params.images * params.pixels, params.channels), params_(params), run_(run), tables_(tables) {}

  void Run(const void* x, uint8_t* y, int64_t begin, int64_t end) const override {
    run_(params_, tables_, static_cast<const uint8_t*>(x), y, begin, end);
  }

 private:
  const Params params_;
  Function* const run_;
  const uint8_t* const tables_;
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<Params> MakeParams(const KernelDesc& desc) {
  const Tensor* table = desc.ParameterOrNull("table");
  if (!desc.has_input(0) || table == nullptr)
    return absl::InvalidArgumentError("lookup: wanted an operand and a table");
  const TensorType &x = desc.input(0), &y = desc.output();
  if (x.dtype != DType::kU8 && (x.dtype != DType::kI8 || !x.quant)) {
    return absl::UnimplementedError(absl::StrCat("lookup: input is ", ToString(x), ", wanted u8, or codes"));
  }
  RETURN_IF_ERROR(kernels::CheckCodes(y, "output"));
  const int64_t channels = x.rank() > 1 ? x.shape[1] : 1, rows = table->num_elements() / kTableBytes;
  if (x.shape != y.shape || table->dtype() != y.dtype || table->shape() != Shape{rows, kTableBytes} ||
      (rows != 1 && rows != channels)) {
    return absl::InvalidArgumentError(
        absl::StrCat("lookup: ", ToString(x), " to ", ToString(y), " by a table ", ToString(table->type())));
  }
  Params params;
  params.tables = rows;
  params.pixels = 1;  // Of a channel.
  for (int axis = 2; axis < x.rank(); ++axis) params.pixels *= x.shape[axis];
  const int64_t batch = x.rank() > 0 ? x.shape[0] : 1;
  const bool one_pixel = params.pixels == 1, to_pixels = x.rank() == 4 && y.layout == Layout::kNhwc;
  const bool from_pixels = one_pixel || (x.rank() == 4 && x.layout == Layout::kNhwc);
  if (to_pixels && !from_pixels && channels > 1) {
    params.images = batch;
    params.channels = channels;
    params.channel_stride = params.pixels;
  } else if (rows == 1 && desc.output_placement.dense()) {
    params.pixels = x.num_elements();
  } else if (from_pixels) {
    params.channels = params.pixel_stride = channels;
    params.channel_stride = 1;
    params.pixels *= batch;
  } else {
    params.images = batch * channels;
  }
  return params;
}

void scalar::Run(const Params& p, const uint8_t* tables, const uint8_t* x, uint8_t* y, int64_t begin, int64_t end) {
  for (int64_t count; begin < end; begin += count) {
    const int64_t image = begin / p.pixels, pixel = begin % p.pixels;
    count = std::min(end - begin, p.pixels - pixel);
    const uint8_t* from = x + image * p.channels * p.pixels + pixel * p.pixel_stride;
    const uint8_t* first = tables + (p.channels == 1 ? image % p.tables * kTableBytes : 0);
    const auto run = p.channels == 1 ? RunPixels<1> : p.channels == 3 ? RunPixels<3> : RunPixels<0>;
    run(p, first, from, y + begin * p.channels, count);
  }
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Params params, MakeParams(desc));
  RETURN_IF_ERROR(quantize::CheckPlacement(desc));
  const Tensor& table = *desc.ParameterOrNull("table");
  const auto tables = desc.Packed("table", absl::StrCat("lookup ", ToString(table.type())), [&] { return table; });
  const Variant& variant = kernels::BestVariant(Variants(), desc.isa, params);
  auto loop = std::make_unique<Loop>(params, variant.run, static_cast<const uint8_t*>(tables->raw_data()));
  return quantize::MakePixelCodes(desc, variant.name, std::move(loop), tables);
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"int8.lookup", kernels::LayoutRule::kAnyInput, Create, quantize::TakesPlacement});
}

}  // namespace fuselage::int8::lookup
