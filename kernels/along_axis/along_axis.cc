#include "kernels/along_axis/along_axis.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/wide_math.h"

namespace fuselage::along_axis {
namespace {

using kernels::Kernel;
using kernels::KernelDesc;

constexpr int64_t kGrain = 1 << 13;  // Elements that are worth a thread's while.

// Elements x[k * stride] for k in [0, length). The result is such a line too, or one element.
struct Line {
  int64_t length, stride;
  bool exclusive = false, reverse = false;  // cumsum
  bool last = false;                        // argmax, argmin: of equal ones
};
using Function = void(const Line& line, const void* x, void* y);

// Does b come before a among the largest (or the smallest)? A NaN comes first.
template <typename T>
bool Precedes(T b, T a, bool largest, bool or_equals) {
  if (b != b || a != a) return b != b && (a == a || or_equals);
  return (largest ? b > a : b < a) || (or_equals && b == a);
}

template <typename T, bool largest>
void Argmax(const Line& line, const void* x, void* y) {
  const T* from = static_cast<const T*>(x);
  int64_t best = 0;
  for (int64_t k = 1; k < line.length; ++k) {
    if (Precedes(from[k * line.stride], from[best * line.stride], largest, line.last)) best = k;
  }
  *static_cast<int64_t*>(y) = best;
}

template <typename T>
void Cumsum(const Line& line, const void* x, void* y) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;  // Which wraps.
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  Sum sum = 0;
  for (int64_t k = 0; k < line.length; ++k) {
    const int64_t at = (line.reverse ? line.length - 1 - k : k) * line.stride;
    const Sum next = sum + static_cast<Sum>(from[at]);
    to[at] = static_cast<T>(line.exclusive ? sum : next);
    sum = next;
  }
}

// The largest element; NaN where there is one.
float Largest(const Line& line, const float* x) {
  float largest = x[0];
  for (int64_t k = 1; k < line.length; ++k) {
    const float v = x[k * line.stride];
    largest = largest >= v || largest != largest ? largest : v;
  }
  return largest;
}
// log of the sum of e^(x - start)
double LogOfSum(const Line& line, const float* x, double start) {
  double sum = 0;
  for (int64_t k = 0; k < line.length; ++k) sum += wide::Exp(x[k * line.stride] - start);
  return wide::Log(sum);
}

void LogSoftmax(const Line& line, const void* x, void* y) {
  const float* from = static_cast<const float*>(x);
  float* to = static_cast<float*>(y);
  const double largest = Largest(line, from), log = largest + LogOfSum(line, from, largest);
  for (int64_t k = 0; k < line.length; ++k) to[k * line.stride] = static_cast<float>(from[k * line.stride] - log);
}

void Logsumexp(const Line& line, const void* x, void* y) {
  const float* from = static_cast<const float*>(x);
  const double largest = Largest(line, from), start = largest - largest == 0 ? largest : 0.0;
  const double log = start + LogOfSum(line, from, start);
  *static_cast<float*>(y) = static_cast<float>(largest - largest == 0 ? log : largest);
}

void Hardmax(const Line& line, const void* x, void* y) {
  const float* from = static_cast<const float*>(x);
  float* to = static_cast<float*>(y);
  int64_t best = 0;
  for (int64_t k = 1; k < line.length; ++k) {
    if (from[k * line.stride] > from[best * line.stride]) best = k;
  }
  for (int64_t k = 0; k < line.length; ++k) to[k * line.stride] = k == best ? 1.0f : 0.0f;
}

struct Row {
  const char* op;
  bool to_one;  // Each line gives one element.
  Function *f32, *i32, *i64;
};
constexpr Row kRows[] = {
    {"argmax", true, Argmax<float, true>, Argmax<int32_t, true>, Argmax<int64_t, true>},
    {"argmin", true, Argmax<float, false>, Argmax<int32_t, false>, Argmax<int64_t, false>},
    {"cumsum", false, Cumsum<float>, Cumsum<int32_t>, Cumsum<int64_t>},
    {"hardmax", false, Hardmax, nullptr, nullptr},
    {"log_softmax", false, LogSoftmax, nullptr, nullptr},
    {"logsumexp", true, Logsumexp, nullptr, nullptr},
};

class AlongAxis final : public kernels::UnaryKernel {
 public:
  AlongAxis(const KernelDesc& desc, const Line& line, Function* function, bool to_one)
      : UnaryKernel(desc),
        line_(line),
        function_(function),
        to_one_(to_one),
        lines_(desc.input(0).num_elements() / line.length),
        input_bytes_(ByteSize(desc.input(0).dtype)),
        output_bytes_(ByteSize(desc.output().dtype)) {
    set_variant("lines");
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    const int64_t grain = std::max<int64_t>(1, kGrain / line_.length);
    kernels::ForRanges(*context.parallel, lines_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i / line_.stride * line_.stride * line_.length + i % line_.stride;
        function_(line_, static_cast<const char*>(x) + first * input_bytes_,
                  static_cast<char*>(y) + (to_one_ ? i : first) * output_bytes_);
      }
    });
  }

  const Line line_;
  Function* const function_;
  const bool to_one_;
  const int64_t lines_, input_bytes_, output_bytes_;
};

// The axis, or neighbouring axes that are as one.
absl::StatusOr<Line> LineOf(const KernelDesc& desc) {
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
  Line line{1, 1};
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

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc) {
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == desc.op; });
  if (row == std::end(kRows) || !desc.has_input(0)) {
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
  ASSIGN_OR_RETURN(const Line line, LineOf(desc));
  return std::make_unique<AlongAxis>(desc, line, function, row->to_one);
}

void Register(kernels::KernelRegistry& registry) {
  for (const Row& row : kRows) {
    registry.Register({row.op, kernels::LayoutRule::kRowMajor, Create});
  }
}

}  // namespace fuselage::along_axis
