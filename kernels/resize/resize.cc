#include "kernels/resize/resize.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/resize_axis.h"
#include "kernels/resize/combine.h"

namespace fuselage::resize {
namespace {

using kernels::KernelDesc;

constexpr int64_t kGrain = 1 << 13;  // Elements that are worth a thread's while.

// One axis of [outer, size, inner] in memory.
struct Pass {
  int64_t outer, input, output, inner;
  int taps;
  std::vector<int32_t> index;  // [output][taps], as in ResizeTable.
  std::vector<float> weight;
  std::vector<bool> outside;

  int64_t results() const { return outer * output * inner; }
};

constexpr Variant kVariants[] = {
    {"scalar", kernels::Isa::kScalar, nullptr, scalar::Run},
    {"avx2", kernels::Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", kernels::Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

// Moves rows (nearest, `T` any unit of an element's size), or combines them.
struct Values {
  int64_t element_bytes;
  bool moves;
  Tensor extrapolation;  // One element.
};

template <typename T>
void MoveRow(const T* from, int64_t inner, T* to) {
  if (inner == 1) {
    *to = *from;
  } else {
    std::memcpy(to, from, inner * sizeof(T));
  }
}

template <typename T>
void MovePass(const Pass& pass, const void* x, void* y, const Values& values, kernels::Parallel& parallel) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  const T outside = *static_cast<const T*>(values.extrapolation.raw_data());
  kernels::ForRanges(
      parallel, pass.outer * pass.output, std::max<int64_t>(1, kGrain / pass.inner), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t o = row % pass.output;
          T* target = to + row * pass.inner;
          if (!pass.outside.empty() && pass.outside[o]) {
            std::fill_n(target, pass.inner, outside);
          } else {
            MoveRow(from + (row / pass.output * pass.input + pass.index[o]) * pass.inner, pass.inner, target);
          }
        }
      });
}

void CombinePass(const Pass& pass, const void* x, void* y, const Values& values, Function* combine,
                 kernels::Parallel& parallel) {
  const float* from = static_cast<const float*>(x);
  float* to = static_cast<float*>(y);
  const float outside = values.extrapolation.data<float>()[0];
  kernels::ForRanges(parallel, pass.outer * pass.output, std::max<int64_t>(1, kGrain / pass.inner),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t row = begin; row < end; ++row) {
                         const int64_t o = row % pass.output;
                         float* target = to + row * pass.inner;
                         if (!pass.outside.empty() && pass.outside[o]) {
                           std::fill_n(target, pass.inner, outside);
                         } else {
                           combine({pass.taps, pass.inner}, from + row / pass.output * pass.input * pass.inner,
                                   &pass.index[o * pass.taps], &pass.weight[o * pass.taps], target);
                         }
                       }
                     });
}

class Resize : public kernels::UnaryKernel {
 public:
  Resize(const KernelDesc& desc, std::vector<Pass> passes, Values values)
      : UnaryKernel(desc), passes_(std::move(passes)), values_(std::move(values)) {
    const Variant& variant = kernels::BestVariant(Variants(), desc.isa);
    combine_ = variant.run;
    set_variant(values_.moves ? "copy" : variant.name);
    int64_t tables = 0;
    for (size_t i = 0; i < passes_.size(); ++i) {
      if (i + 1 < passes_.size()) buffer_bytes_ = std::max(buffer_bytes_, passes_[i].results() * values_.element_bytes);
      tables += static_cast<int64_t>(passes_[i].index.size()) * 8;
    }
    buffer_bytes_ = (buffer_bytes_ + 63) / 64 * 64;
    set_scratch_bytes(buffer_bytes_ * (passes_.size() > 2 ? 2 : passes_.size() == 2 ? 1 : 0));
    set_weight_bytes(tables);
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    if (outputs()[0].num_elements() == 0) return;
    if (passes_.empty()) {
      std::memcpy(y, x, outputs()[0].byte_size());
      return;
    }
    for (size_t i = 0; i < passes_.size(); ++i) {
      void* to = i + 1 == passes_.size() ? y : static_cast<char*>(context.scratch.data) + i % 2 * buffer_bytes_;
      RunPass(passes_[i], x, to, *context.parallel);
      x = to;
    }
  }

  void RunPass(const Pass& pass, const void* x, void* y, kernels::Parallel& parallel) const {
    if (!values_.moves) return CombinePass(pass, x, y, values_, combine_, parallel);
    switch (values_.element_bytes) {
      case 1: return MovePass<uint8_t>(pass, x, y, values_, parallel);
      case 2: return MovePass<uint16_t>(pass, x, y, values_, parallel);
      case 4: return MovePass<uint32_t>(pass, x, y, values_, parallel);
      default: return MovePass<uint64_t>(pass, x, y, values_, parallel);
    }
  }

  const std::vector<Pass> passes_;
  const Values values_;
  Function* combine_;
  int64_t buffer_bytes_ = 0;
};

// The axes that change, in the order of least work: those that shrink most first, then those nearest to the end of
// memory, whose results are short rows.
std::vector<Pass> MakePasses(const KernelDesc& desc) {
  const std::vector<int64_t>&dims = desc.GetInts("dims"), &sizes = desc.GetInts("sizes");
  const std::vector<double>&scales = desc.attribute("scales").as_floats(), &roi = desc.attribute("roi").as_floats();
  const ResizeMode mode = {desc.GetString("mode"),         desc.GetString("coordinates"),
                           desc.GetString("nearest_mode"), desc.GetFloat("cubic_coeff_a"),
                           desc.GetBool("antialias"),      desc.GetBool("exclude_outside")};
  const int rank = desc.input(0).rank();
  // Where each axis stands in memory, outermost first.
  std::vector<int> place(rank);
  std::iota(place.begin(), place.end(), 0);
  if (rank == 4 && desc.input(0).layout == Layout::kNhwc) place = {0, 3, 1, 2};
  const auto normalized = [rank](int64_t axis) { return axis < 0 ? axis + rank : axis; };
  std::vector<size_t> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  const auto growth = [&](size_t i) {
    return static_cast<double>(sizes[i]) / static_cast<double>(desc.input(0).shape[normalized(dims[i])]);
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_pair(growth(a), -place[normalized(dims[a])]) <
           std::make_pair(growth(b), -place[normalized(dims[b])]);
  });
  Shape shape = desc.input(0).shape;
  std::vector<Pass> passes;
  for (const size_t i : order) {
    const int64_t axis = normalized(dims[i]);
    ResizeAxis one{shape[axis], sizes[i], scales.empty() ? growth(i) : scales[i]};
    if (!roi.empty()) {
      one.roi_start = roi[i];
      one.roi_end = roi[i + dims.size()];
    }
    if (one.IsIdentity(mode)) continue;
    Pass pass{1, one.input, one.output, 1, 0, {}, {}, {}};
    for (int other = 0; other < rank; ++other) {
      if (other != axis) (place[other] < place[axis] ? pass.outer : pass.inner) *= shape[other];
    }
    ResizeTable table = MakeResizeTable(mode, one);
    pass.taps = table.taps;
    pass.index = std::move(table.index);
    pass.weight.assign(table.weight.begin(), table.weight.end());
    pass.outside = std::move(table.outside);
    shape[axis] = sizes[i];
    passes.push_back(std::move(pass));
  }
  return passes;
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

void scalar::Run(const Row& row, const float* from, const int32_t* index, const float* weight, float* to) {
  Combine(row, from, index, weight, to);
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  const bool moves = desc.GetString("mode") == "nearest";
  const DType dtype = desc.output().dtype;
  if (!moves && dtype != DType::kF32) {
    return absl::UnimplementedError(absl::StrCat(desc.GetString("mode"), " resize of ", DTypeName(dtype)));
  }
  Values values{ByteSize(dtype), moves, Tensor(dtype, {1})};
  values.extrapolation.Set(0, desc.GetFloat("extrapolation_value"));
  std::vector<Pass> passes;
  if (desc.output().num_elements() > 0) passes = MakePasses(desc);
  return std::make_unique<Resize>(desc, std::move(passes), std::move(values));
}

void Register(kernels::KernelRegistry& registry) { registry.Register({"resize", kernels::LayoutRule::kSame, Create}); }

}  // namespace fuselage::resize
