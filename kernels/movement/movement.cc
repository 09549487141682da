#include "kernels/movement/movement.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/strides.h"
#include "kernels/core/transpose.h"

namespace fuselage::movement {
namespace {

using kernels::KernelDesc;
using kernels::StridesOf;
using Copies = std::vector<StridedCopy>;

// The strides of an operand that may lie evenly placed.
std::vector<int64_t> PlacedStrides(const TensorType& type, const kernels::Placement& placement) {
  if (placement.dense()) return StridesOf(type);
  const kernels::PlacedTensor placed(type.shape, placement);
  return {placed.image_bytes, 1, placed.row_bytes, placed.pixel_bytes};
}

StridedCopy Whole(const Shape& shape, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  StridedCopy copy;
  for (size_t axis = 0; axis < shape.size(); ++axis) copy.axes.push_back({shape[axis], from[axis], to[axis]});
  return copy;
}

int64_t Normalized(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

// --- One function for each operator; the graph's inference has checked the attributes.

// The axes of the input in the order of the result.
TensorType Permuted(const KernelDesc& desc) {
  TensorType permuted = {desc.output().dtype, {}, std::nullopt, Layout::kRowMajor};
  for (const int64_t dim : desc.GetInts("dims")) {
    permuted.shape.push_back(desc.input(0).shape[Normalized(dim, desc.input(0).rank())]);
  }
  return permuted;
}

// A result in NHWC has the same elements in the same order, of which the last axes are the channels.
absl::StatusOr<Copies> Permute(const KernelDesc& desc) {
  const std::vector<int64_t> own = StridesOf(desc.input(0));
  const TensorType permuted = Permuted(desc);
  std::vector<int64_t> from, to = StridesOf(permuted);
  for (const int64_t dim : desc.GetInts("dims")) from.push_back(own[Normalized(dim, desc.input(0).rank())]);
  if (!desc.output_placement.dense()) {
    for (size_t axis = 0; axis + 1 < to.size(); ++axis) {
      to[axis] = to[axis] / permuted.shape.back() * desc.output_placement.pixel_bytes;
    }
  }
  return Copies{Whole(permuted.shape, from, to)};
}

// Pixels further apart, where each is the last axis.
bool PermuteTakes(const KernelDesc& desc) {
  const TensorType& output = desc.output();
  const bool regroups = output.layout == Layout::kNhwc && desc.input(0).layout == Layout::kRowMajor;
  return desc.input_placement(0).dense() && desc.output_placement.even() &&
         (desc.output_placement.dense() || (regroups && Permuted(desc).shape.back() == output.shape[1]));
}

absl::StatusOr<Copies> Transpose(const KernelDesc& desc) {
  std::vector<int64_t> from = StridesOf(desc.input(0));
  const int rank = desc.input(0).rank();
  if (rank > 0) std::swap(from[Normalized(desc.GetInt("dim0"), rank)], from[Normalized(desc.GetInt("dim1"), rank)]);
  return Copies{Whole(desc.output().shape, from, StridesOf(desc.output()))};
}

absl::StatusOr<Copies> Expand(const KernelDesc& desc) {
  const Shape &shape = desc.input(0).shape, &result = desc.output().shape;
  const std::vector<int64_t> own = StridesOf(desc.input(0));
  std::vector<int64_t> from(result.size(), 0);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    from[axis + result.size() - shape.size()] = shape[axis] == 1 ? 0 : own[axis];
  }
  return Copies{Whole(result, from, StridesOf(desc.output()))};
}

absl::StatusOr<Copies> Slice(const KernelDesc& desc) {
  const TensorType& input = desc.input(0);
  std::vector<int64_t> from = PlacedStrides(input, desc.input_placement(0));
  const std::vector<int64_t>&starts = desc.GetInts("starts"), &axes = desc.GetInts("axes"),
        &steps = desc.GetInts("steps");
  int64_t offset = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = axes.empty() ? static_cast<int64_t>(i) : Normalized(axes[i], input.rank());
    const int64_t dim = input.shape[axis], step = steps.empty() ? 1 : steps[i];
    if (desc.output().shape[axis] == 0) return Copies{};
    const int64_t start = starts[i] < 0 ? starts[i] + dim : starts[i];
    offset += std::clamp<int64_t>(start, 0, step > 0 ? dim : dim - 1) * from[axis];
    // A step beyond the axis takes one element.
    from[axis] = desc.output().shape[axis] == 1 ? 0 : from[axis] * step;
  }
  StridedCopy copy = Whole(desc.output().shape, from, PlacedStrides(desc.output(), desc.output_placement));
  copy.from_offset = offset;
  return Copies{std::move(copy)};
}

absl::StatusOr<Copies> Split(const KernelDesc& desc) {
  const std::vector<int64_t> from = StridesOf(desc.input(0));
  const int64_t axis = Normalized(desc.GetInt("dim"), desc.input(0).rank());
  Copies copies;
  int64_t offset = 0;
  for (size_t i = 0; i < desc.outputs.size(); ++i) {
    StridedCopy copy = Whole(desc.outputs[i].shape, from, StridesOf(desc.outputs[i]));
    copy.from_offset = offset;
    copy.output = static_cast<int>(i);
    offset += desc.outputs[i].shape[axis] * from[axis];
    copies.push_back(std::move(copy));
  }
  return copies;
}

absl::StatusOr<Copies> Cat(const KernelDesc& desc) {
  const std::vector<int64_t> to = PlacedStrides(desc.output(), desc.output_placement);
  const int64_t axis = Normalized(desc.GetInt("dim"), desc.output().rank());
  Copies copies;
  int64_t offset = 0;
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    const TensorType& input = desc.input(static_cast<int>(i));
    StridedCopy copy = Whole(input.shape, PlacedStrides(input, desc.input_placement(static_cast<int>(i))), to);
    copy.to_offset = offset;
    copy.input = static_cast<int>(i);
    offset += input.shape[axis] * to[axis];
    copies.push_back(std::move(copy));
  }
  return copies;
}

bool AllEven(const KernelDesc& desc) {
  const auto& inputs = desc.input_placements;
  return desc.output_placement.even() &&
         std::all_of(inputs.begin(), inputs.end(), [](const auto& p) { return p.even(); });
}

// Positions [to, to + size) of a padded axis, read from `from` on by `step`: 1, 0 (one element) or -1.
struct Run {
  int64_t to, size, from, step;
};

// An axis of `dim` elements after `before` others, as runs of what they are read from.
std::vector<Run> PaddedAxis(absl::string_view mode, int64_t dim, int64_t before, int64_t after) {
  const int64_t size = before + dim + after;
  if (mode == "wrap") {
    std::vector<Run> runs;
    for (int64_t to = 0; to < size;) {
      const int64_t from = ((to - before) % dim + dim) % dim;
      runs.push_back({to, std::min(dim - from, size - to), from, 1});
      to += runs.back().size;
    }
    return runs;
  }
  const int64_t first = std::max<int64_t>(before, 0), last = std::min(before + dim, size);  // The input's own elements.
  std::vector<Run> runs = {{first, last - first, first - before, 1}};
  if (mode == "edge") {
    runs.push_back({0, before, 0, 0});
    runs.push_back({before + dim, after, dim - 1, 0});
  } else if (mode == "reflect") {
    runs.push_back({0, before, before, -1});
    runs.push_back({before + dim, after, dim - 2, -1});
  }
  runs.erase(std::remove_if(runs.begin(), runs.end(), [](const Run& run) { return run.size <= 0; }), runs.end());
  return runs;
}

// Of the plan's element, to the whole of a result that lies in one piece.
StridedCopy FillAll(const TensorType& type) {
  StridedCopy fill = {{{type.num_elements(), 0, 1}}};
  fill.input = StridedCopy::kFill;
  return fill;
}

// A copy for each combination of runs.
absl::StatusOr<Copies> Pad(const KernelDesc& desc) {
  constexpr int64_t kMostCopies = 4096;
  const std::vector<int64_t>&pads = desc.GetInts("pads"), from = StridesOf(desc.input(0)),
        to = StridesOf(desc.output());
  const int rank = desc.input(0).rank();
  Copies copies(1);
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t dim = desc.input(0).shape[axis];
    const bool is_short = dim > 0 && desc.output().shape[axis] / dim > kMostCopies;
    std::vector<Run> runs;
    if (!is_short) runs = PaddedAxis(desc.GetString("mode"), dim, pads[axis], pads[rank + axis]);
    if (is_short || static_cast<int64_t>(copies.size() * runs.size()) > kMostCopies) {
      return absl::UnimplementedError(absl::StrCat("pads of more than ", kMostCopies, " pieces"));
    }
    Copies longer;
    for (const StridedCopy& copy : copies) {
      for (const Run& run : runs) {
        longer.push_back(copy);
        longer.back().axes.push_back({run.size, run.step * from[axis], to[axis]});
        longer.back().from_offset += run.from * from[axis];
        longer.back().to_offset += run.to * to[axis];
      }
    }
    copies = std::move(longer);
  }
  if (desc.GetString("mode") == "constant") copies.insert(copies.begin(), FillAll(desc.output()));
  return copies;
}

// A copy for each tap, of the frames that it finds inside.
absl::StatusOr<Copies> StackFrames(const KernelDesc& desc) {
  const TensorType &input = desc.input(0), &output = desc.output();
  if (output.num_elements() == 0) return Copies{};
  const std::vector<int64_t> from = PlacedStrides(input, desc.input_placement(0)),
                             to = PlacedStrides(output, desc.output_placement);
  const int64_t frames = desc.GetInt("frames"), sequences = input.shape[0] / frames;
  const int64_t stacked = output.shape[0] / sequences;
  const int64_t taps = desc.GetInts("kernel_size")[0], stride = desc.GetInts("stride")[0];
  const int axis = desc.attribute("as_rows").as_bool() ? 2 : 1;
  // The channels, or the first row, of a tap lie so far behind those of the one before.
  const int64_t tap_step = (axis == 2 ? 1 : input.shape[1]) * to[axis];
  Copies copies;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t frame = tap * desc.GetInts("dilation")[0] - desc.GetInts("padding")[0];  // Under the first.
    const int64_t first = std::min(stacked, frame < 0 ? (stride - 1 - frame) / stride : 0);
    const int64_t end = std::clamp(frame < frames ? (frames - 1 - frame) / stride + 1 : 0, first, stacked);
    // Of `count` of the stacked frames, from `begin` on.
    const auto add = [&](int64_t begin, int64_t count, bool inside) {
      StridedCopy copy;
      copy.axes = {{sequences, frames * from[0], stacked * to[0]},
                   {count, stride * from[0], to[0]},
                   {input.shape[1], from[1], to[1]},
                   {input.shape[2], from[2], axis == 2 ? taps * to[2] : to[2]},
                   {input.shape[3], from[3], to[3]}};
      copy.to_offset = begin * to[0] + tap * tap_step;
      if (inside) {
        copy.from_offset = (frame + begin * stride) * from[0];
      } else {
        for (StridedCopy::Axis& along : copy.axes) along.from = 0;
        copy.input = StridedCopy::kFill;
      }
      copies.push_back(std::move(copy));
    };
    add(0, first, false);
    add(first, end - first, true);
    add(end, stacked - end, false);
  }
  return copies;
}

bool StackFramesTakes(const KernelDesc& desc) {
  return desc.input_placement(0).even() && desc.output_placement.dense();
}

struct MovementOp {
  const char* name;
  kernels::LayoutRule layout;
  absl::StatusOr<Copies> (*copies)(const KernelDesc& desc);
  bool (*takes_placements)(const KernelDesc& desc) = nullptr;
};
constexpr MovementOp kOps[] = {
    {"cat", kernels::LayoutRule::kSame, Cat, AllEven},
    {"expand", kernels::LayoutRule::kRowMajor, Expand},
    {"pad", kernels::LayoutRule::kSame, Pad},
    {"permute", kernels::LayoutRule::kRowMajor, Permute, PermuteTakes},
    {"slice", kernels::LayoutRule::kSame, Slice, AllEven},
    {"split", kernels::LayoutRule::kSame, Split},
    {"stack_frames", kernels::LayoutRule::kSame, StackFrames, StackFramesTakes},
    {"transpose", kernels::LayoutRule::kRowMajor, Transpose},
};

// --- Running a copy.

// Rows of the innermost axis: contiguous ones in one piece.
template <typename T>
void CopyRow(const StridedCopy::Axis& row, const T* from, T* to) {
  if (row.from == 1 && row.to == 1) {
    std::memcpy(to, from, row.size * sizeof(T));
    return;
  }
  if (row.from == 0 && row.to == 1) {
    std::fill_n(to, row.size, *from);
    return;
  }
  for (int64_t i = 0; i < row.size; ++i) to[i * row.to] = from[i * row.from];
}

// to = a[0], b[0], a[1], b[1] ...
template <typename T>
void Interleave(const T* a, const T* b, int64_t n, T* to) {
  using Lanes = kernels::Lanes<T, 16>;
  constexpr int64_t kCount = Lanes::kCount;
  if (n < kCount) {
    for (int64_t i = 0; i < n; ++i) {
      to[2 * i] = a[i];
      to[2 * i + 1] = b[i];
    }
    return;
  }
  for (int64_t i = 0; i < n; i += kCount) {
    i = std::min(i, n - kCount);  // The last vector may begin within the one before.
    typename Lanes::Vector x, y, zipped[2];
    std::memcpy(&x, a + i, sizeof(x));
    std::memcpy(&y, b + i, sizeof(y));
    zipped[0] = Lanes::template Zip<0>(x, y);
    zipped[1] = Lanes::template Zip<kCount / 2>(x, y);
    std::memcpy(to + 2 * i, zipped, sizeof(zipped));
  }
}

// Short rows, each in two pieces that may overlap, of a size that the compiler knows: a call for each would take longer
// than the row.
template <size_t kPiece, typename T>
void CopyRows(const StridedCopy::Axis& outer, const StridedCopy::Axis& inner, size_t bytes, const T* from, T* to) {
  for (int64_t i = 0; i < outer.size; ++i) {
    for (int64_t j = 0; j < inner.size; ++j) {
      const auto* source = reinterpret_cast<const char*>(from + i * outer.from + j * inner.from);
      auto* target = reinterpret_cast<char*>(to + i * outer.to + j * inner.to);
      std::memcpy(target, source, kPiece);
      std::memcpy(target + bytes - kPiece, source + bytes - kPiece, kPiece);
    }
  }
}

template <typename T>
void CopyAxes(const StridedCopy::Axis& first, absl::Span<const StridedCopy::Axis> rest, const T* from, T* to) {
  if (rest.empty()) return CopyRow(first, from, to);
  const StridedCopy::Axis& row = rest.back();
  if (rest.size() == 1 && first.from == 1 && first.to == 2 && row.size == 2 && row.to == 1) {
    return Interleave(from, from + row.from, first.size, to);
  }
  if (rest.size() == 1 && first.from == 1 && row.to == 1) {
    return kernels::Transpose(row.size, first.size, from, row.from, to, first.to);
  }
  if (rest.size() <= 2 && row.from == 1 && row.to == 1) {
    const StridedCopy::Axis once = {1, 0, 0};
    const StridedCopy::Axis &outer = rest.size() == 2 ? first : once, &inner = rest.size() == 2 ? rest[0] : first;
    const size_t bytes = row.size * sizeof(T);
    if (bytes >= 2 && bytes < 4) return CopyRows<2>(outer, inner, bytes, from, to);
    if (bytes >= 4 && bytes <= 8) return CopyRows<4>(outer, inner, bytes, from, to);
    if (bytes > 8 && bytes <= 16) return CopyRows<8>(outer, inner, bytes, from, to);
    if (bytes > 16 && bytes <= 32) return CopyRows<16>(outer, inner, bytes, from, to);
    if (bytes > 32 && bytes <= 64) return CopyRows<32>(outer, inner, bytes, from, to);
    if (bytes > 64 && bytes <= 128) return CopyRows<64>(outer, inner, bytes, from, to);
  }
  for (int64_t i = 0; i < first.size; ++i) CopyAxes(rest[0], rest.subspan(1), from + i * first.from, to + i * first.to);
}

template <typename T>
void CopyElements(const StridedCopy& copy, const void* from, void* to, kernels::Parallel& parallel) {
  constexpr int64_t kGrain = 1 << 14;  // Elements.
  const T* source = static_cast<const T*>(from) + copy.from_offset;
  T* target = static_cast<T*>(to) + copy.to_offset;
  const StridedCopy::Axis& outer = copy.axes[0];
  int64_t inner = 1;
  for (size_t i = 1; i < copy.axes.size(); ++i) inner *= copy.axes[i].size;
  kernels::ForRanges(parallel, outer.size, std::max<int64_t>(1, kGrain / inner), [&](int64_t begin, int64_t end) {
    StridedCopy::Axis part = outer;
    part.size = end - begin;
    CopyAxes(part, absl::MakeConstSpan(copy.axes).subspan(1), source + begin * part.from, target + begin * part.to);
  });
}

void CopyElements(const StridedCopy& copy, int64_t element_bytes, const void* from, void* to,
                  kernels::Parallel& parallel) {
  switch (element_bytes) {
    case 1: return CopyElements<uint8_t>(copy, from, to, parallel);
    case 2: return CopyElements<uint16_t>(copy, from, to, parallel);
    case 4: return CopyElements<uint32_t>(copy, from, to, parallel);
    default: return CopyElements<uint64_t>(copy, from, to, parallel);
  }
}

class Movement : public kernels::Kernel {
 public:
  Movement(const KernelDesc& desc, Plan plan)
      : Kernel(desc), plan_(std::move(plan)), element_bytes_(ByteSize(desc.output().dtype)) {
    set_variant("copy");
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    for (const StridedCopy& copy : plan_.copies) {
      const void* from = copy.input == StridedCopy::kFill ? plan_.fill->raw_data() : inputs[copy.input].data;
      CopyElements(copy, element_bytes_, from, outputs[copy.output].data, *context.parallel);
    }
  }

  const Plan plan_;
  const int64_t element_bytes_;
};

}  // namespace

std::vector<StridedCopy::Axis> Simplified(std::vector<StridedCopy::Axis> axes) {
  using Axis = StridedCopy::Axis;
  axes.erase(std::remove_if(axes.begin(), axes.end(), [](const Axis& axis) { return axis.size == 1; }), axes.end());
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.to > b.to; });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && merged.back().from == axis.from * axis.size && merged.back().to == axis.to * axis.size) {
      merged.back() = {merged.back().size * axis.size, axis.from, axis.to};
    } else {
      merged.push_back(axis);
    }
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  return merged;
}

// Next to the axis along which results lie behind each other comes that along which the operand's elements do: the two
// make a matrix.
std::vector<StridedCopy::Axis> WithMatrixLast(std::vector<StridedCopy::Axis> axes) {
  const auto column =
      std::find_if(axes.begin(), axes.end(), [](const StridedCopy::Axis& axis) { return axis.from == 1; });
  if (axes.end() - column > 2) std::rotate(column, column + 1, axes.end() - 1);
  return axes;
}

absl::StatusOr<Plan> MakePlan(const KernelDesc& desc) {
  const auto op =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const MovementOp& o) { return desc.op == o.name; });
  if (op == std::end(kOps)) return absl::InvalidArgumentError(absl::StrCat(desc.op, " moves no elements"));
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    if (!desc.inputs[i]) return absl::InvalidArgumentError(absl::StrCat("operand ", i, " is absent"));
  }
  ASSIGN_OR_RETURN(Copies copies, op->copies(desc));
  Plan plan;
  if (absl::c_any_of(copies, [](const StridedCopy& copy) { return copy.input == StridedCopy::kFill; })) {
    plan.fill.emplace(desc.output().dtype, Shape{});
    const std::optional<QuantParams>& codes = desc.input(0).quant;
    plan.fill->Set(0, codes ? codes->zero_point() : desc.op == "pad" ? desc.GetFloat("value") : 0);
  }
  for (StridedCopy& copy : copies) {
    int64_t elements = 1;
    for (const StridedCopy::Axis& axis : copy.axes) elements *= axis.size;
    if (elements == 0) continue;
    copy.axes = WithMatrixLast(Simplified(std::move(copy.axes)));
    plan.copies.push_back(std::move(copy));
  }
  return plan;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(Plan plan, MakePlan(desc));
  return std::make_unique<Movement>(desc, std::move(plan));
}

void Register(kernels::KernelRegistry& registry) {
  for (const MovementOp& op : kOps) registry.Register({op.name, op.layout, Create, op.takes_placements});
}

}  // namespace fuselage::movement
