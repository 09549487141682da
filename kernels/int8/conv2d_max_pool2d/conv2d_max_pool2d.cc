#include "kernels/int8/conv2d_max_pool2d/conv2d_max_pool2d.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/max_pool2d/max_pool2d.h"

namespace fuselage::int8::conv2d_max_pool2d {
namespace {

using kernels::Blocking;
using kernels::Kernel;
using kernels::KernelDesc;
using kernels::Placement;
using Axis = kernels::PoolWindow::Axis;

constexpr int64_t kBandBytes = 128 << 10;  // Convolved rows take so much: a part of the second-level cache.

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t n, int64_t multiple) { return CeilDiv(n, multiple) * multiple; }

struct Rows {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
};

// From the first tap of the first output row to the last tap of the last one: all, and those inside the input.
Rows Taps(const Axis& axis, Rows outputs) {
  const int64_t extent = (axis.kernel - 1) * axis.dilation + 1;
  return {outputs.begin * axis.stride - axis.pad_begin, (outputs.end - 1) * axis.stride - axis.pad_begin + extent};
}
Rows InputOf(const Axis& axis, Rows outputs) {
  const Rows taps = Taps(axis, outputs);
  return {std::max<int64_t>(taps.begin, 0), std::min(taps.end, axis.in)};
}

// Those that see padding alone are the first or the last.
bool EachOutputSeesInput(const Axis& axis) {
  return InputOf(axis, {0, 1}).size() > 0 && InputOf(axis, {axis.out - 1, axis.out}).size() > 0;
}

absl::StatusOr<std::vector<int64_t>> Ints(const KernelDesc& desc, absl::string_view name, size_t count, int64_t least) {
  const std::vector<int64_t>& values = desc.GetInts(name);
  if (values.size() == count &&
      std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= least && v <= (1 << 20); })) {
    return values;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", ToString(values), ", wanted ", count, " values in [", least, ", 2^20]"));
}

// The parts of the description, and the height of the convolution as that of a pool's windows.
struct Layers {
  KernelDesc conv;
  Axis conv_height;
  max_pool2d::Params pool;
  absl::Span<const conv2d::Variant> variants;  // The convolution's.
  std::optional<Axis> row_pool;                // The convolution's too: columns are left to pool.
};

absl::StatusOr<Layers> LayersOf(absl::Span<const conv2d::Variant> variants, const KernelDesc& desc,
                                bool pools_rows = false) {
  const Tensor* weight = desc.ParameterOrNull("weight");
  if (!desc.has_input(0) || desc.inputs.size() != 1 || desc.outputs.size() != 1 || weight == nullptr) {
    return absl::InvalidArgumentError("wanted one operand, one result and a constant weight");
  }
  const TensorType& x = desc.input(0);
  if (x.rank() != 4 || weight->rank() != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", ToString(x), ", weight ", ToString(weight->type()), ", wanted rank 4"));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> stride, Ints(desc, "stride", 2, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> padding, Ints(desc, "padding", 4, 0));
  ASSIGN_OR_RETURN(const std::vector<int64_t> dilation, Ints(desc, "dilation", 2, 1));
  Axis axes[2];
  for (int i = 0; i < 2; ++i) {
    Axis& axis = axes[i];
    axis = {x.shape[2 + i], 0, weight->dim(2 + i), stride[i], dilation[i], padding[i], padding[2 + i]};
    const int64_t room = axis.in + axis.pad_begin + axis.pad_end - (axis.kernel - 1) * axis.dilation - 1;
    if (axis.kernel < 1 || room < 0) return absl::InvalidArgumentError("the kernel is larger than the padded input");
    axis.out = room / axis.stride + 1;
  }
  Layers layers;
  layers.conv_height = axes[0];
  layers.conv = desc;
  layers.conv.op = "int8.conv2d";
  layers.conv.threads = 1;
  layers.conv.output_placement = kernels::Placement();
  layers.variants = variants;
  layers.conv.outputs[0].shape = {x.shape[0], weight->dim(0), axes[0].out, axes[1].out};

  KernelDesc pool = desc;
  pool.inputs = {layers.conv.output()};
  pool.input_placements.clear();
  pool.attributes.clear();
  for (const auto& [name, value] : desc.attributes) {
    if (absl::StartsWith(name, "pool_")) pool.attributes.emplace(absl::StripPrefix(name, "pool_"), value);
  }
  ASSIGN_OR_RETURN(layers.pool, max_pool2d::MakeParams(pool));
  if (x.shape[0] > std::numeric_limits<int32_t>::max() / layers.pool.window.axes[0].out) {
    return absl::UnimplementedError("more than 2^31 output rows");
  }
  if (pools_rows) {
    kernels::PoolWindow& window = layers.pool.window;
    Axis& width = window.axes[1];
    layers.row_pool = width;
    width = {width.out, width.out};
    window.x.row = width.in * window.channels;
  }
  return layers;
}

// Pooled rows, and how they come about. The convolved rows that they see lie in scratch memory from its beginning.
struct Band {
  Rows pooled, convolved;
  int64_t kept = 0, kept_at = 0;  // The first of them, which the band before left in scratch memory, in this row.
  int64_t input_row = 0;          // The first that the others see.
  const Kernel* conv = nullptr;   // Computes the others; null where there are none.
  max_pool2d::Params pool;
};

class Conv2dMaxPool2d : public kernels::UnaryKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelDesc& desc, const Layers& layers, int64_t band_rows) {
    std::unique_ptr<Conv2dMaxPool2d> kernel(new Conv2dMaxPool2d(desc, layers));
    RETURN_IF_ERROR(kernel->Plan(layers, band_rows, std::max(1, desc.threads)));
    return kernel;
  }

 private:
  Conv2dMaxPool2d(const KernelDesc& desc, const Layers& layers)
      : UnaryKernel(desc),
        pool_(kernels::BestVariant(max_pool2d::Variants(), desc.isa, layers.pool)),
        input_(desc.input(0).shape, desc.input_placement(0)),
        output_(desc.output().shape, desc.output_placement),
        padding_(static_cast<uint8_t>(desc.output().quant->zero_point())),
        batch_(layers.pool.window.batch),
        convolved_row_bytes_(layers.pool.window.axes[1].in * layers.pool.window.channels),
        pooled_rows_(layers.pool.window.axes[0].out) {}

  // A row that sees nothing but padding leaves no image to convolve: then all is one band.
  absl::Status Plan(const Layers& layers, int64_t band_rows, int threads) {
    const Axis& pool_height = layers.pool.window.axes[0];
    const bool whole = !EachOutputSeesInput(layers.conv_height) || !EachOutputSeesInput(pool_height);
    const int64_t shares = batch_ == 0 ? 1 : threads / std::gcd(int64_t{threads}, batch_);
    sections_.resize(whole ? 1 : std::min(shares, pooled_rows_));
    const int64_t sections = static_cast<int64_t>(sections_.size());
    int64_t bands = 0, most_rows = 0, conv_scratch = 0, weight_bytes = 0;
    std::vector<std::shared_ptr<const Tensor>> packed;
    for (int64_t i = 0; i < sections; ++i) {
      const Rows section = {pooled_rows_ * i / sections, pooled_rows_ * (i + 1) / sections};
      // All but the last have one height: each height is a kernel of its own.
      const int64_t height = whole ? section.size() : CeilDiv(section.size(), CeilDiv(section.size(), band_rows));
      Rows before;
      for (int64_t row = section.begin; row < section.end; row += height) {
        ASSIGN_OR_RETURN(Band band, MakeBand(layers, {row, std::min(row + height, section.end)}, before, whole));
        before = band.convolved;
        most_rows = std::max(most_rows, before.size());
        sections_[i].push_back(std::move(band));
      }
      bands += static_cast<int64_t>(sections_[i].size());
    }
    for (const auto& [key, conv] : convs_) {
      conv_scratch = std::max(conv_scratch, conv->scratch_bytes());
      weight_bytes += conv->own_weight_bytes();
      for (const auto& weight : conv->packed()) {
        if (std::find(packed.begin(), packed.end(), weight) == packed.end()) packed.push_back(weight);
      }
    }
    convolved_bytes_ = RoundUp(most_rows * convolved_row_bytes_, 64);
    thread_bytes_ = RoundUp(convolved_bytes_ + conv_scratch, 64);
    set_scratch_bytes(thread_bytes_ * threads);
    set_weight_bytes(weight_bytes, std::move(packed));
    set_variant(absl::StrCat(convs_.begin()->second->variant(), layers.row_pool ? ", pooling its rows, " : ", ", bands,
                             bands == 1 ? " band" : " bands"));
    return absl::OkStatus();
  }

  absl::StatusOr<Band> MakeBand(const Layers& layers, Rows pooled, Rows before, bool whole) {
    const Axis& pool_height = layers.pool.window.axes[0];
    Band band;
    band.pooled = pooled;
    band.convolved = whole ? Rows{0, layers.conv_height.out} : InputOf(pool_height, pooled);
    const Rows fresh = {std::max(band.convolved.begin, before.end), band.convolved.end};
    band.kept = fresh.begin - band.convolved.begin;
    if (band.kept > 0) band.kept_at = band.convolved.begin - before.begin;
    band.pool = layers.pool;
    band.pool.window.batch = 1;
    Axis& height = band.pool.window.axes[0];
    height.in = band.convolved.size();
    height.out = pooled.size();
    height.pad_begin = band.convolved.begin - Taps(pool_height, pooled).begin;
    if (fresh.size() > 0) {
      const Rows input = whole                      ? Rows{0, layers.conv_height.in}
                         : input_.placement.dense() ? InputOf(layers.conv_height, fresh)
                                                    : RowsInPlace(layers.conv_height, fresh);
      band.input_row = input.begin;
      ASSIGN_OR_RETURN(band.conv, ConvOf(layers, fresh, input));
    }
    return band;
  }

  // The rows of a placed input from the one on that the first output of the image would start at: what lies around
  // them is read as padding, be it other rows or the halo.
  static Rows RowsInPlace(const Axis& axis, Rows fresh) {
    const int64_t begin = fresh.begin * axis.stride;
    return {begin, std::min({Taps(axis, fresh).end, begin + fresh.size() * axis.stride, axis.in})};
  }

  // Do these rows of the placed input lie as those of an image of their own?
  bool IsImage(Rows rows) const {
    const Blocking blocking = input_.placement.blocking;
    return rows.size() >= 1 &&
           (blocking == Blocking::kNone || (blocking == Blocking::kSpaceToDepth && rows.begin % 2 == 0));
  }

  // The kernel that computes the rows `fresh` from the rows `input`, as an image of its own.
  absl::StatusOr<const Kernel*> ConvOf(const Layers& layers, Rows fresh, Rows input) {
    const Rows taps = Taps(layers.conv_height, fresh);
    const int64_t top = input.begin - taps.begin, bottom = std::max<int64_t>(0, taps.end - input.end);
    std::unique_ptr<Kernel>& conv = convs_[{top, input.size(), bottom, fresh.size()}];
    if (conv == nullptr) {
      KernelDesc desc = layers.conv;
      desc.inputs[0]->shape[0] = desc.outputs[0].shape[0] = 1;
      desc.inputs[0]->shape[2] = input.size();
      desc.outputs[0].shape[2] = fresh.size();
      const std::vector<int64_t>& padding = layers.conv.GetInts("padding");
      desc.attributes.insert_or_assign("padding", std::vector<int64_t>{top, padding[1], bottom, padding[3]});
      if (input_.placement.dense()) {
        ASSIGN_OR_RETURN(conv, conv2d::EntryOf(layers.variants).create(desc));
      } else if (IsImage(input)) {
        ASSIGN_OR_RETURN(conv, conv2d::CreateBand(layers.variants, layers.conv, std::move(desc), layers.row_pool));
      } else {
        return absl::UnimplementedError(absl::StrCat("bands of an input with ", PlacementText(input_.placement)));
      }
    }
    return conv.get();
  }

  // Where an image of the rows from `row` on begins, with the halo above it.
  const uint8_t* InputRow(const void* x, int64_t image, int64_t row) const {
    return static_cast<const uint8_t*>(x) + input_.Offset(image, row, 0) - input_.first;
  }

  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    const int64_t sections = static_cast<int64_t>(sections_.size());
    context.parallel->For(static_cast<int>(batch_ * sections), [&](int task, int thread) {
      const int64_t image = task / sections;
      uint8_t* scratch = static_cast<uint8_t*>(context.scratch.data) + thread * thread_bytes_;
      for (const Band& band : sections_[task % sections]) {
        uint8_t* pooled = static_cast<uint8_t*>(y) + output_.Offset(image, band.pooled.begin, 0) - output_.first;
        RunBand(band, InputRow(x, image, band.input_row), pooled, scratch);
        if (!output_.placement.dense()) output_.FillHalo(y, padding_, image, band.pooled.begin, band.pooled.end);
      }
    });
  }

  void RunBand(const Band& band, const uint8_t* x, uint8_t* y, uint8_t* scratch) const {
    const int64_t kept_bytes = band.kept * convolved_row_bytes_;
    std::memmove(scratch, scratch + band.kept_at * convolved_row_bytes_, kept_bytes);
    if (band.conv != nullptr) {
      kernels::Serial serial;
      const absl::Status status =
          band.conv->Run({{x, input_.bytes}}, {{scratch + kept_bytes, band.conv->outputs()[0].byte_size()}},
                         {&serial, {scratch + convolved_bytes_, thread_bytes_ - convolved_bytes_}});
      FUSELAGE_CHECK(status.ok());
    }
    pool_.run(band.pool, scratch, y, 0, band.pooled.size());
  }

  const max_pool2d::Variant pool_;
  const kernels::PlacedTensor input_, output_;
  const uint8_t padding_;
  const int64_t batch_;
  const int64_t convolved_row_bytes_, pooled_rows_;
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, std::unique_ptr<Kernel>> convs_;  // See ConvOf.
  std::vector<std::vector<Band>> sections_;                                                  // An image's.
  int64_t convolved_bytes_ = 0, thread_bytes_ = 0;
};

// As many pooled rows as see at most kBandBytes of convolved ones.
int64_t BandRows(const Layers& layers) {
  const Axis& height = layers.pool.window.axes[0];
  const int64_t row_bytes = layers.pool.window.axes[1].in * layers.pool.window.channels;
  const int64_t rows = kBandBytes / std::max<int64_t>(1, row_bytes);
  return std::max<int64_t>(1, (rows - (height.kernel - 1) * height.dilation - 1) / height.stride + 1);
}

// band_rows: nullopt for BandRows. The convolution pools its rows where it can.
absl::StatusOr<std::unique_ptr<Kernel>> CreateInBands(absl::Span<const conv2d::Variant> variants,
                                                      const KernelDesc& desc, std::optional<int64_t> band_rows) {
  for (bool pools_rows = !desc.input_placement(0).dense();; pools_rows = false) {
    const absl::StatusOr<Layers> layers = LayersOf(variants, desc, pools_rows);
    RETURN_IF_ERROR(layers.status());
    auto kernel = Conv2dMaxPool2d::Make(desc, *layers, band_rows ? *band_rows : BandRows(*layers));
    if (kernel.ok() || !pools_rows) return kernel;
  }
}

// Every band must be able to read in place; their weights are few.
bool TakesPlacements(absl::Span<const conv2d::Variant> variants, const KernelDesc& desc) {
  return CreateInBands(variants, desc, std::nullopt).ok();
}

Placement PreferredInputPlacement(absl::Span<const conv2d::Variant> variants, const KernelDesc& desc) {
  const absl::StatusOr<Layers> layers = LayersOf(variants, desc);
  return layers.ok() ? conv2d::EntryOf(variants).preferred_placement(layers->conv) : Placement();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc) {
  return CreateInBands(conv2d::Variants(), desc, std::nullopt);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateWithBands(absl::Span<const conv2d::Variant> variants,
                                                        const KernelDesc& desc, int64_t band_rows) {
  return CreateInBands(variants, desc, band_rows);
}

kernels::KernelEntry EntryWith(absl::Span<const conv2d::Variant> variants) {
  kernels::KernelEntry entry;
  entry.op = "int8.conv2d_max_pool2d";
  entry.create = [variants](const KernelDesc& desc) { return CreateInBands(variants, desc, std::nullopt); };
  entry.takes_placements = [variants](const KernelDesc& desc) { return TakesPlacements(variants, desc); };
  entry.preferred_placement = [variants](const KernelDesc& desc) { return PreferredInputPlacement(variants, desc); };
  return entry;
}

void Register(kernels::KernelRegistry& registry) {
  kernels::KernelEntry entry = EntryWith(conv2d::Variants());
  entry.table = {{"kernels/int8/conv2d/variants.h", "kernels/int8/conv2d_max_pool2d/conv2d_max_pool2d.h"},
                 "int8::conv2d::kVariants",
                 "int8::conv2d_max_pool2d::EntryWith",
                 [](const KernelDesc& desc) {
                   const absl::StatusOr<Layers> layers = LayersOf(conv2d::Variants(), desc);
                   return layers.ok() ? conv2d::RowsFor(layers->conv) : std::vector<int>();
                 }};
  registry.Register(std::move(entry));
}

}  // namespace fuselage::int8::conv2d_max_pool2d
