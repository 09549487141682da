#include "kernels/along_axis/along_axis.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/along_axis/loops.h"

namespace fuselage::along_axis {
namespace {

using kernels::Isa;
using kernels::Kernel;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::RowOrNull},
    {"avx2", Isa::kAvx2, nullptr, avx2::RowOrNull},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::RowOrNull},
};

constexpr int64_t kGrain = 1 << 13;  // Elements that are worth a thread's while.

class AlongAxis final : public kernels::UnaryKernel {
 public:
  AlongAxis(const KernelDesc& desc, const Lines& lines, Function* function, bool to_one, const char* variant)
      : UnaryKernel(desc),
        lines_(lines),
        function_(function),
        to_one_(to_one),
        parts_((lines.stride + kMostLines - 1) / kMostLines),
        planes_(desc.input(0).num_elements() / (lines.length * lines.stride)),
        input_bytes_(ByteSize(desc.input(0).dtype)),
        output_bytes_(ByteSize(desc.output().dtype)) {
    set_variant(variant);
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    const int64_t grain = std::max<int64_t>(1, kGrain * parts_ / (lines_.length * lines_.stride));
    kernels::ForRanges(*context.parallel, planes_ * parts_, grain, [&](int64_t first_part, int64_t end_part) {
      Lines lines = lines_;
      for (int64_t i = first_part; i < end_part; ++i) {
        const int64_t plane = i / parts_, begin = lines.stride * (i % parts_) / parts_;
        lines.count = lines.stride * (i % parts_ + 1) / parts_ - begin;
        const int64_t first = plane * lines.length * lines.stride + begin;
        function_(lines, static_cast<const char*>(x) + first * input_bytes_,
                  static_cast<char*>(y) + (to_one_ ? plane * lines.stride + begin : first) * output_bytes_);
      }
    });
  }

  const Lines lines_;
  Function* const function_;
  const bool to_one_;
  const int64_t parts_, planes_, input_bytes_, output_bytes_;  // A part: neighbouring lines of one call.
};

// The axis, or neighbouring axes that are as one.
absl::StatusOr<Lines> LinesOf(const KernelDesc& desc) {
  const Shape& shape = desc.input(0).shape;
  const int rank = desc.input(0).rank();
  std::vector<int64_t> dims;
  if (desc.attributes.count("dim") > 0) {
    dims = {desc.GetInt("dim")};
  } else {
    dims = desc.GetInts("dims");
  }
  std::vector<bool> along(rank, dims.empty());
  for (const int64_t dim : dims) {
    ASSIGN_OR_RETURN(const int axis, NormalizeAxis(dim, rank));
    along[axis] = true;
  }
  const auto first = std::find(along.begin(), along.end(), true);
  const auto last = std::find(first, along.end(), false);
  if (std::find(last, along.end(), true) != along.end()) return absl::UnimplementedError("axes that are no neighbours");
  Lines line = {1, 1, 1};
  for (int axis = 0; axis < rank; ++axis) {
    if (along[axis]) line.length *= shape[axis];
    if (axis >= last - along.begin()) line.stride *= shape[axis];
  }
  const auto flag = [&](const char* name) { return desc.attributes.count(name) > 0 && desc.GetBool(name); };
  line.exclusive = flag("exclusive");
  line.reverse = flag("reverse");
  line.last = flag("select_last_index");
  return line;
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc) {
  const Variant& variant = kernels::BestVariant(Variants(), desc.isa);
  const Row* row = variant.run(desc.op);
  if (row == nullptr || !desc.has_input(0)) {
    return absl::InvalidArgumentError(absl::StrCat(desc.op, ": no op along an axis, or no operand"));
  }
  const TensorType& x = desc.input(0);
  Function* function = x.dtype == DType::kF32   ? row->f32
                       : x.dtype == DType::kI32 ? row->i32
                       : x.dtype == DType::kI64 ? row->i64
                                                : nullptr;
  if (function == nullptr || x.num_elements() == 0) {
    return absl::UnimplementedError(absl::StrCat(desc.op, " of ", ToString(x)));
  }
  ASSIGN_OR_RETURN(const Lines lines, LinesOf(desc));
  if (lines.length > kMostElements) return absl::UnimplementedError(absl::StrCat(desc.op, " of ", ToString(x)));
  return std::make_unique<AlongAxis>(desc, lines, function, row->to_one, variant.name);
}

void Register(kernels::KernelRegistry& registry) {
  for (const Row& row : kRows) {
    registry.Register({row.op, kernels::LayoutRule::kRowMajor, Create});
  }
}

const Row* scalar::RowOrNull(absl::string_view op) { return FindRowOrNull(op); }

}  // namespace fuselage::along_axis
