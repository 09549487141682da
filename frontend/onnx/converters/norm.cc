// Normalizations, and the pools that are norms of their windows.
#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/spatial.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::norm {
namespace {

using Ints = std::vector<int64_t>;

// Axes from `first` on.
Ints AxesFrom(int first, int rank) {
  Ints axes(std::max(rank - first, 0));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

absl::Status CheckStash(const Call& call) {
  const int64_t stash = call.Int("stash_type", 1);
  if (stash == 1) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("found stash_type ", stash, ", wanted 1 (float)"));
}

// x minus its mean over the axes, and the mean of its square: what mean and variance are made of.
struct Moments {
  Value mean, centered, variance;
};
absl::StatusOr<Moments> EmitMoments(Call& call, const Ints& axes) {
  const AttributeMap attributes = {{"dims", axes}, {"keepdim", true}};
  Moments moments;
  ASSIGN_OR_RETURN(moments.mean, call.EmitHelper("mean", "mean", {call.operand(0)}, attributes));
  ASSIGN_OR_RETURN(moments.centered, call.EmitHelper("centered", "sub", {call.operand(0), moments.mean}));
  ASSIGN_OR_RETURN(const Value squares, call.EmitHelper("squares", "mul", {moments.centered, moments.centered}));
  ASSIGN_OR_RETURN(moments.variance, call.EmitHelper("variance", "mean", {squares}, attributes));
  return moments;
}

// y = op(x, c)
absl::StatusOr<Value> WithScalar(Call& call, absl::string_view suffix, absl::string_view op, const Value& x, double c) {
  ASSIGN_OR_RETURN(const Value scalar, call.Scalar(absl::StrCat(suffix, ".scalar"), x.type().dtype, c));
  return call.EmitHelper(suffix, op, {x, scalar});
}

// LayerNormalization, RMSNormalization, and SimplifiedLayerNormalization, onnxruntime's name for the latter. A scale or
// bias may be smaller than what it scales.
absl::Status ConvertLayerNormalization(Call& call) {
  RETURN_IF_ERROR(CheckStash(call));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("axis", -1), call.rank(0)));
  const Shape normalized(call.shape(0).begin() + axis, call.shape(0).end());
  const double eps = call.Float("epsilon", 1e-5f);
  std::vector<Value> operands = call.operands();
  for (size_t i = 1; i < operands.size(); ++i) {
    if (!operands[i].present() || operands[i].shape() == normalized) continue;
    const std::string name = operands[i].name;
    ASSIGN_OR_RETURN(operands[i],
                     call.EmitHelper(i == 1 ? "scale" : "bias", "expand", {operands[i]}, {{"shape", normalized}}));
    operands[i].name = name;
  }
  if (call.target() == "layer_norm" && (call.wants(1) || call.wants(2))) {
    ASSIGN_OR_RETURN(Moments moments, EmitMoments(call, AxesFrom(axis, call.rank(0))));
    ASSIGN_OR_RETURN(const Value sum, WithScalar(call, "variance_eps", "add", moments.variance, eps));
    ASSIGN_OR_RETURN(const Value deviation, call.EmitHelper("deviation", "sqrt", {sum}));
    ASSIGN_OR_RETURN(Value inverse, call.EmitHelper("inverse", "reciprocal", {deviation}));
    if (call.wants(1)) call.Set(1, std::move(moments.mean));
    if (call.wants(2)) call.Set(2, std::move(inverse));
  }
  return call.Result(call.target(), operands, {{"normalized_shape", normalized}, {"eps", eps}});
}

absl::Status ConvertInstanceNormalization(Call& call) {
  return call.Result("instance_norm", call.operands(), {{"eps", call.Float("epsilon", 1e-5f)}});
}

// Scale and bias are by group before opset 21, by channel from then on.
absl::Status ConvertGroupNormalization(Call& call) {
  RETURN_IF_ERROR(CheckStash(call));
  const int64_t groups = call.Int("num_groups", 0);
  if (call.rank(0) < 2 || groups < 1 || call.shape(0)[1] % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("attribute 'num_groups': found ", groups, " with an input ",
                                                   ToString(call.type(0)), ", wanted a divisor of its channels"));
  }
  const int64_t channels = call.shape(0)[1];
  std::vector<Value> operands = call.operands();
  for (int i = 1; i <= 2 && call.opset() < 21; ++i) {
    const std::string name = operands[i].name, suffix = i == 1 ? "scale" : "bias";
    const Ints column = {groups, 1}, wide = {groups, channels / groups}, flat = {channels};
    ASSIGN_OR_RETURN(Value value, call.EmitHelper(suffix + ".column", "reshape", {operands[i]}, {{"shape", column}}));
    ASSIGN_OR_RETURN(value, call.EmitHelper(suffix + ".expand", "expand", {value}, {{"shape", wide}}));
    ASSIGN_OR_RETURN(operands[i], call.EmitHelper(suffix, "reshape", {value}, {{"shape", flat}}));
    operands[i].name = name;
  }
  return call.Result("group_norm", operands, {{"num_groups", groups}, {"eps", call.Float("epsilon", 1e-5f)}});
}

// The p-norm's sum of |x|^p, without the sum.
absl::StatusOr<Value> EmitPowers(Call& call, int64_t p) {
  const Value& x = call.operand(0);
  if (p == 2) return call.EmitHelper("squares", "mul", {x, x});
  ASSIGN_OR_RETURN(const Value magnitudes, call.EmitHelper("abs", "abs", {x}));
  if (p == 1) return magnitudes;
  return WithScalar(call, "powers", "pow", magnitudes, static_cast<double>(p));
}

// The p-th root, as the node's result.
absl::Status RootResult(Call& call, const Value& sum, int64_t p) {
  if (p == 1) return call.Result("identity", {sum});
  if (p == 2) return call.Result("sqrt", {sum});
  ASSIGN_OR_RETURN(const Value exponent, call.Scalar("exponent", sum.type().dtype, 1.0 / static_cast<double>(p)));
  return call.Result("pow", {sum, exponent});
}

absl::StatusOr<int64_t> NormOrder(const Call& call) {
  const int64_t p = call.Int("p", 2);
  if (p < 1) return absl::InvalidArgumentError(absl::StrCat("attribute 'p': found ", p, ", wanted 1 or more"));
  return p;
}

absl::Status ConvertLpNormalization(Call& call) {
  ASSIGN_OR_RETURN(const int64_t p, NormOrder(call));
  if (p > 2) return absl::InvalidArgumentError(absl::StrCat("attribute 'p': found ", p, ", wanted 1 or 2"));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("axis", -1), call.rank(0)));
  ASSIGN_OR_RETURN(const Value powers, EmitPowers(call, p));
  ASSIGN_OR_RETURN(Value norm, call.EmitHelper("sum", "sum", {powers}, {{"dims", Ints{axis}}, {"keepdim", true}}));
  if (p == 2) {
    ASSIGN_OR_RETURN(norm, call.EmitHelper("norm", "sqrt", {norm}));
  }
  return call.Result("div", {call.operand(0), norm});
}

// x / (bias + alpha * mean of the squares of `size` neighbouring channels)^beta; channels beyond the ends count as 0.
absl::Status ConvertLrn(Call& call) {
  const int64_t size = call.Int("size", 0);
  if (size < 1 || size > std::numeric_limits<int32_t>::max() || call.rank(0) < 3) {
    return absl::InvalidArgumentError(absl::StrCat("found size ", size, " and an input ", ToString(call.type(0)),
                                                   ", wanted a size > 0 and [N, C, spatial...]"));
  }
  const Value& x = call.operand(0);
  const Shape shape = call.shape(0);
  ASSIGN_OR_RETURN(Value mean, EmitPowers(call, 2));
  const Ints plane = {0, 1, shape[1], -1};
  ASSIGN_OR_RETURN(mean, call.EmitHelper("plane", "reshape", {mean}, {{"shape", plane}}));
  ASSIGN_OR_RETURN(mean, call.EmitHelper("pool", "avg_pool2d", {mean},
                                         {{"kernel_size", Ints{size, 1}},
                                          {"stride", Ints{1, 1}},
                                          {"padding", Ints{(size - 1) / 2, 0, size - 1 - (size - 1) / 2, 0}},
                                          {"count_include_pad", true}}));
  Ints back = shape;
  back[0] = -1;
  ASSIGN_OR_RETURN(mean, call.EmitHelper("mean", "reshape", {mean}, {{"shape", back}}));
  ASSIGN_OR_RETURN(mean, WithScalar(call, "scaled", "mul", mean, call.Float("alpha", 1e-4f)));
  ASSIGN_OR_RETURN(mean, WithScalar(call, "sum", "add", mean, call.Float("bias", 1)));
  ASSIGN_OR_RETURN(mean, WithScalar(call, "power", "pow", mean, call.Float("beta", 0.75f)));
  return call.Result("div", {x, mean});
}

// (x - mean) / (deviation + 1e-9), as the standard's function body has it.
absl::Status ConvertMeanVarianceNormalization(Call& call) {
  const Ints axes = call.HasAttribute("axes") ? call.Ints("axes") : Ints{0, 2, 3};
  ASSIGN_OR_RETURN(const Moments moments, EmitMoments(call, axes));
  ASSIGN_OR_RETURN(const Value deviation, call.EmitHelper("deviation", "sqrt", {moments.variance}));
  ASSIGN_OR_RETURN(const Value sum, WithScalar(call, "deviation_eps", "add", deviation, 1e-9));
  return call.Result("div", {moments.centered, sum});
}

absl::Status ConvertGlobalMaxPool(Call& call) {
  if (call.rank(0) < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("found an input ", ToString(call.type(0)), ", wanted [N, C, spatial...]"));
  }
  return call.Result("amax", call.operands(), {{"dims", AxesFrom(2, call.rank(0))}, {"keepdim", true}});
}

absl::Status ConvertGlobalLpPool(Call& call) {
  ASSIGN_OR_RETURN(const int64_t p, NormOrder(call));
  if (call.rank(0) < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("found an input ", ToString(call.type(0)), ", wanted [N, C, spatial...]"));
  }
  ASSIGN_OR_RETURN(const Value powers, EmitPowers(call, p));
  ASSIGN_OR_RETURN(const Value sum,
                   call.EmitHelper("sum", "sum", {powers}, {{"dims", AxesFrom(2, call.rank(0))}, {"keepdim", true}}));
  return RootResult(call, sum, p);
}

// The root of (taps * the mean of the powers), where the padding's zeros count.
absl::Status ConvertLpPool(Call& call) {
  ASSIGN_OR_RETURN(const int64_t p, NormOrder(call));
  ASSIGN_OR_RETURN(Spatial spatial, ReadSpatial(call, call.shape(0), {}));
  ResolvePadding(call.shape(0), &spatial);
  ASSIGN_OR_RETURN(const bool ceil_mode, call.Flag("ceil_mode", false));
  if (ceil_mode) return absl::UnimplementedError("found ceil_mode = 1, wanted 0");
  if (spatial.dilations != Ints(spatial.dims, 1)) {
    return absl::UnimplementedError(
        absl::StrCat("found dilations ", ToString(spatial.dilations), ", wanted 1 in each dimension"));
  }
  ASSIGN_OR_RETURN(const Value powers, EmitPowers(call, p));
  ASSIGN_OR_RETURN(const Value mean, call.EmitHelper("pool", SpatialTarget("avg_pool", spatial.dims), {powers},
                                                     {{"kernel_size", spatial.kernel},
                                                      {"stride", spatial.strides},
                                                      {"padding", spatial.padding},
                                                      {"count_include_pad", true}}));
  double taps = 1;
  for (const int64_t size : spatial.kernel) taps *= static_cast<double>(size);
  ASSIGN_OR_RETURN(const Value sum, WithScalar(call, "sum", "mul", mean, taps));
  return RootResult(call, sum, p);
}

constexpr char kLayerNormalization[] = "axis=INT epsilon=FLOAT stash_type=INT";
constexpr char kLpPool[] =
    "auto_pad=STRING ceil_mode=INT dilations=INTS kernel_shape=INTS p=INT pads=INTS strides=INTS";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"GlobalLpPool", 2, {1, 1}, {1, 1}, "p=INT", ConvertGlobalLpPool},
      {"GlobalMaxPool", 1, {1, 1}, {1, 1}, "", ConvertGlobalMaxPool},
      {"GroupNormalization",
       18,
       {3, 3},
       {1, 1},
       "epsilon=FLOAT num_groups=INT stash_type=INT",
       ConvertGroupNormalization},
      {"InstanceNormalization", 6, {3, 3}, {1, 1}, "epsilon=FLOAT", ConvertInstanceNormalization},
      // The standard's since opset 17; onnxruntime's optimizer writes it, in this domain, into files of any.
      {"LayerNormalization", 1, {2, 3}, {1, 3}, kLayerNormalization, ConvertLayerNormalization, "layer_norm"},
      {"LpNormalization", 1, {1, 1}, {1, 1}, "axis=INT p=INT", ConvertLpNormalization},
      {"LpPool", 2, {1, 1}, {1, 1}, kLpPool, ConvertLpPool},
      {"LRN", 1, {1, 1}, {1, 1}, "alpha=FLOAT beta=FLOAT bias=FLOAT size=INT", ConvertLrn},
      {"MeanVarianceNormalization", 9, {1, 1}, {1, 1}, "axes=INTS", ConvertMeanVarianceNormalization},
      {"RMSNormalization", 23, {2, 2}, {1, 1}, kLayerNormalization, ConvertLayerNormalization, "rms_norm"},
      {"SimplifiedLayerNormalization", 1, {2, 2}, {1, 2}, kLayerNormalization, ConvertLayerNormalization, "rms_norm"},
  });
}

}  // namespace fuselage::onnx::converters::norm
