#include "ir/ops/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/elements.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::reduce {
namespace {

// Which elements of the input meet in an element of the result.
struct Groups {
  const Shape& shape;                // The input's.
  std::vector<int64_t> strides;      // The result's, 0 along the axes that vanish.
  int64_t results = 1, members = 1;  // Elements of the result, and of the input for each.

  // `kept` has 1 in place of the dimensions that vanish.
  Groups(const Shape& input, const Shape& kept) : shape(input), strides(RowMajorStrides(kept)) {
    for (size_t axis = 0; axis < input.size(); ++axis) {
      results *= kept[axis];
      if (kept[axis] == input[axis]) continue;
      strides[axis] = 0;
      members *= input[axis];
    }
  }

  // step(so far, element) for the elements in row-major order.
  template <typename T, typename Step>
  std::vector<T> Fold(const std::vector<T>& x, T start, Step step) const {
    std::vector<T> folded(results, start);
    ForEachOffset(shape, strides, 0, [&](int64_t i, int64_t group) { folded[group] = step(folded[group], x[i]); });
    return folded;
  }
};

// --- The reductions, of floats and of integers.

using Reals = std::vector<double>;
using Whole = std::vector<int64_t>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Reals Sum(const Groups& groups, const Reals& x) {
  return groups.Fold(x, 0.0, [](double a, double b) { return a + b; });
}
Reals Mean(const Groups& groups, const Reals& x) {
  Reals means = Sum(groups, x);
  for (double& mean : means) mean /= static_cast<double>(groups.members);
  return means;
}
Reals Prod(const Groups& groups, const Reals& x) {
  return groups.Fold(x, 1.0, [](double a, double b) { return a * b; });
}
Reals Amax(const Groups& groups, const Reals& x) {
  return groups.Fold(x, -kInfinity, [](double a, double b) { return a >= b || std::isnan(a) ? a : b; });
}
Reals Amin(const Groups& groups, const Reals& x) {
  return groups.Fold(x, kInfinity, [](double a, double b) { return a <= b || std::isnan(a) ? a : b; });
}
// largest + log(sum of e^(x - largest)), which does not overflow.
Reals Logsumexp(const Groups& groups, const Reals& x) {
  Reals largest = Amax(groups, x);
  for (double& value : largest) value = std::isinf(value) ? 0 : value;
  Reals sums(groups.results, 0.0);
  ForEachOffset(groups.shape, groups.strides, 0,
                [&](int64_t i, int64_t group) { sums[group] += std::exp(x[i] - largest[group]); });
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = largest[i] + std::log(sums[i]);
  return sums;
}

int64_t Wrap(uint64_t x) { return static_cast<int64_t>(x); }
Whole SumOf(const Groups& groups, const Whole& x) {
  return groups.Fold(x, int64_t{0},
                     [](int64_t a, int64_t b) { return Wrap(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); });
}
Whole ProdOf(const Groups& groups, const Whole& x) {
  return groups.Fold(x, int64_t{1},
                     [](int64_t a, int64_t b) { return Wrap(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); });
}
Whole AmaxOf(const Groups& groups, const Whole& x) {
  return groups.Fold(x, std::numeric_limits<int64_t>::min(), [](int64_t a, int64_t b) { return std::max(a, b); });
}
Whole AminOf(const Groups& groups, const Whole& x) {
  return groups.Fold(x, std::numeric_limits<int64_t>::max(), [](int64_t a, int64_t b) { return std::min(a, b); });
}

struct Reduction {
  const char* name;
  Elements elements;
  Reals (*real)(const Groups&, const Reals&);
  Whole (*whole)(const Groups&, const Whole&);
  bool has_start;  // It has a value where there are no elements.
};

constexpr Reduction kReductions[] = {
    {"amax", Elements::kAny, Amax, AmaxOf, false},
    {"amin", Elements::kAny, Amin, AminOf, false},
    {"logsumexp", Elements::kFloats, Logsumexp, nullptr, true},
    {"mean", Elements::kFloats, Mean, nullptr, true},
    {"prod", Elements::kNumbers, Prod, ProdOf, true},
    {"sum", Elements::kNumbers, Sum, SumOf, true},
};

absl::StatusOr<Shape> KeptShape(const ir::OpCall& call, const Shape& input) {
  const int rank = static_cast<int>(input.size());
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, "dims", rank));
  Shape kept = input;
  if (axes.empty()) std::fill(kept.begin(), kept.end(), 1);
  for (int axis : axes) kept[axis] = 1;
  return kept;
}

absl::StatusOr<ir::Type> InferReduction(const ir::InferCall& call, const Reduction& reduction) {
  RETURN_IF_ERROR(CheckElements(call, 0, reduction.elements));
  const TensorType& input = call.tensor(0);
  ASSIGN_OR_RETURN(const Shape kept, KeptShape(call, input.shape));
  const bool has_results = std::find(kept.begin(), kept.end(), 0) == kept.end();
  if (!reduction.has_start && has_results && input.num_elements() == 0) {
    return OperandError(call, 0, "wanted elements: an empty set has no extremum");
  }
  if (call.GetBool("keepdim")) return ResultType(input.dtype, kept);
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, "dims", input.rank()));
  Shape shape;
  for (int axis = 0; axis < input.rank(); ++axis) {
    const bool reduced = axes.empty() || std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!reduced) shape.push_back(input.shape[axis]);
  }
  return ResultType(input.dtype, shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateReduction(const ir::EvaluateCall& call, const Reduction& reduction) {
  const Tensor& input = call.tensor(0);
  ASSIGN_OR_RETURN(const Shape kept, KeptShape(call, input.shape()));
  const Groups groups(input.shape(), kept);
  if (IsFloat(input.dtype())) return One(OfReals(call.result(), reduction.real(groups, RealValues(input))));
  return One(OfIntegers(call.result(), reduction.whole(groups, Integers(input))));
}

absl::StatusOr<ir::Type> InferGlobalAvgPool(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, 0));
  RETURN_IF_ERROR(CheckMinRank(call, 0, 3));
  Shape shape = call.tensor(0).shape;
  std::fill(shape.begin() + 2, shape.end(), 1);
  return ResultType(call.tensor(0).dtype, shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateGlobalAvgPool(const ir::EvaluateCall& call) {
  const Groups groups(call.tensor(0).shape(), call.result().shape);
  return One(OfReals(call.result(), Mean(groups, RealValues(call.tensor(0)))));
}

ir::Cost CostOfReduction(const ir::InferCall& call, const ir::Type&) { return {0, ir::NumElements(call.tensor(0))}; }

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (const Reduction& reduction : kReductions) {
    ir::OpSchema schema;
    schema.name = reduction.name;
    schema.aliases = {absl::StrCat("torch.", reduction.name)};
    schema.operands = {{"input"}};
    schema.attributes = {{"dims", AttributeKind::kInts, std::vector<int64_t>{}},
                         {"keepdim", AttributeKind::kBool, false}};
    schema.infer = [&reduction](const ir::InferCall& call) { return InferReduction(call, reduction); };
    schema.evaluate = [&reduction](const ir::EvaluateCall& call) { return EvaluateReduction(call, reduction); };
    schema.homogeneous = schema.name == "mean";
    schema.takes_maxima = schema.name == "amax";
    schema.cost = CostOfReduction;
    registry.Register(std::move(schema));
  }

  ir::OpSchema pool;
  pool.name = "global_avg_pool";
  pool.operands = {{"input"}};
  pool.module_form = true;
  pool.homogeneous = true;
  pool.itemwise = true;
  pool.infer = InferGlobalAvgPool;
  pool.evaluate = EvaluateGlobalAvgPool;
  pool.cost = CostOfReduction;
  registry.Register(std::move(pool));
}

}  // namespace fuselage::ops::reduce
