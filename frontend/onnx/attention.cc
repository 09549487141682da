#include "frontend/onnx/attention.h"

#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/fold.h"
#include "ir/base/status.h"

namespace fuselage::onnx {
namespace {

using Ints = std::vector<int64_t>;

absl::StatusOr<Value> WithScalar(Call& call, absl::string_view name, absl::string_view op, const Value& x, double c) {
  ASSIGN_OR_RETURN(const Value scalar, call.Scalar(absl::StrCat(name, ".scalar"), x.type().dtype, c));
  return call.EmitHelper(name, op, {x, scalar});
}

// Less than any score, and finite, so that no difference of two is NaN.
absl::StatusOr<Value> NoScore(Call& call, DType dtype) {
  return call.Scalar("no_score", dtype, dtype == DType::kF16 ? -65504.0 : -std::numeric_limits<float>::max());
}

// [N, a, b, c] as [N, heads, rows, c], of equal size.
absl::StatusOr<Value> Regrouped(Call& call, absl::string_view name, const Value& x, int64_t heads, int64_t rows) {
  if (x.shape()[1] == heads) return x;
  return call.EmitHelper(name, "reshape", {x}, {{"shape", Ints{0, heads, rows, x.shape()[3]}}});
}

absl::Status CheckAttention(const Attention& attention) {
  const TensorType &q = attention.query.type(), &k = attention.key.type(), &v = attention.value.type();
  const bool ranks = q.rank() == 4 && k.rank() == 4 && v.rank() == 4;
  if (ranks && q.num_elements() > 0 && k.num_elements() > 0 && v.num_elements() > 0 && q.shape[0] == k.shape[0] &&
      k.shape[0] == v.shape[0] && k.shape[1] == v.shape[1] && q.shape[1] % k.shape[1] == 0 &&
      q.shape[3] == k.shape[3] && k.shape[2] == v.shape[2]) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("found queries ", ToString(q), ", keys ", ToString(k), " and values ",
                                                 ToString(v),
                                                 ", wanted [N, heads, S, D], [N, K, T, D] and [N, K, T, E], heads a "
                                                 "multiple of K"));
}

}  // namespace

absl::StatusOr<Value> SplitHeads(Call& call, absl::string_view name, const Value& x, int64_t heads) {
  if (x.type().rank() != 3 || heads < 1 || x.shape()[2] % heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", ToString(x.type()), " for ", heads, " heads, wanted [N, S, a multiple of the heads]"));
  }
  ASSIGN_OR_RETURN(const Value apart, call.EmitHelper(absl::StrCat(name, ".apart"), "reshape", {x},
                                                      {{"shape", Ints{0, 0, heads, x.shape()[2] / heads}}}));
  return call.EmitHelper(name, "permute", {apart}, {{"dims", Ints{0, 2, 1, 3}}});
}

absl::StatusOr<Value> MergeHeads(Call& call, const Value& x) {
  ASSIGN_OR_RETURN(const Value rows, call.EmitHelper("rows", "permute", {x}, {{"dims", Ints{0, 2, 1, 3}}}));
  return call.Emit("reshape", {rows}, {{"shape", Ints{0, 0, x.shape()[1] * x.shape()[3]}}});
}

absl::StatusOr<Value> EmitAttention(Call& call, const Attention& attention) {
  RETURN_IF_ERROR(CheckAttention(attention));
  const DType dtype = attention.query.type().dtype;
  if (attention.precision && ByteSize(*attention.precision) < ByteSize(dtype)) {
    ASSIGN_OR_RETURN(const AttentionSteps steps, EmitAttentionSteps(call, attention));
    return steps.result;
  }
  Value mask = attention.allowed.present() ? attention.allowed : attention.bias;
  if (attention.allowed.present() && attention.bias.present()) {
    ASSIGN_OR_RETURN(const Value never, call.Scalar("never", dtype, -std::numeric_limits<double>::infinity()));
    ASSIGN_OR_RETURN(mask, call.EmitHelper("mask", "where", {attention.allowed, attention.bias, never}));
  }
  std::vector<Value> operands = {attention.query, attention.key, attention.value};
  if (mask.present()) operands.push_back(mask);
  return call.EmitHelper(
      "attended", "scaled_dot_product_attention", operands,
      {{"scale", attention.scale}, {"is_causal", attention.is_causal}, {"softcap", attention.softcap}});
}

absl::StatusOr<AttentionSteps> EmitAttentionSteps(Call& call, Attention attention) {
  RETURN_IF_ERROR(CheckAttention(attention));
  if (attention.is_causal) {
    ASSIGN_OR_RETURN(const Value causal,
                     CausalMask(call, attention.query.shape()[2], attention.key.shape()[2], /*past=*/0));
    ASSIGN_OR_RETURN(attention.allowed, BothAllowed(call, "allowed_keys", attention.allowed, causal));
  }
  const Shape q = attention.query.shape();
  const int64_t heads = q[1], queries = q[2], key_heads = attention.key.shape()[1];
  const int64_t rows = heads / key_heads * queries;  // The queries of one key's head, side by side.
  AttentionSteps steps;
  ASSIGN_OR_RETURN(Value x, Regrouped(call, "queries", attention.query, key_heads, rows));
  ASSIGN_OR_RETURN(x, WithScalar(call, "scaled", "mul", x, attention.scale));
  ASSIGN_OR_RETURN(const Value keys, call.EmitHelper("keys", "transpose", {attention.key}, {{"dim0", 2}, {"dim1", 3}}));
  ASSIGN_OR_RETURN(x, call.EmitHelper("scores", "matmul", {x, keys}));
  ASSIGN_OR_RETURN(steps.products, Regrouped(call, "scores_by_head", x, heads, queries));
  x = steps.products;
  if (attention.softcap != 0) {
    ASSIGN_OR_RETURN(x, WithScalar(call, "share_of_cap", "div", x, attention.softcap));
    ASSIGN_OR_RETURN(x, call.EmitHelper("tanh", "tanh", {x}));
    ASSIGN_OR_RETURN(x, WithScalar(call, "capped", "mul", x, attention.softcap));
  }
  steps.capped = x;
  if (attention.bias.present()) {
    ASSIGN_OR_RETURN(x, call.EmitHelper("biased", "add", {x, attention.bias}));
  }
  steps.biased = x;
  const DType dtype = x.type().dtype, precision = attention.precision.value_or(dtype);
  if (attention.allowed.present()) {
    ASSIGN_OR_RETURN(const Value no_score, NoScore(call, dtype));
    ASSIGN_OR_RETURN(x, call.EmitHelper("masked", "where", {attention.allowed, x, no_score}));
  }
  if (precision != dtype) {
    ASSIGN_OR_RETURN(x, call.EmitHelper("precise", "to", {x}, {{"dtype", precision}}));
  }
  ASSIGN_OR_RETURN(x, call.EmitHelper("weights", "softmax", {x}, {{"dim", -1}}));
  if (precision != dtype) {
    ASSIGN_OR_RETURN(x, call.EmitHelper("rounded", "to", {x}, {{"dtype", dtype}}));
  }
  if (attention.allowed.present() && attention.allowed.constant == nullptr) {  // A row may be all masked.
    ASSIGN_OR_RETURN(const Value zero, call.Scalar("no_weight", dtype, 0));
    ASSIGN_OR_RETURN(x, call.EmitHelper("allowed_weights", "where", {attention.allowed, x, zero}));
  }
  steps.weights = x;
  ASSIGN_OR_RETURN(x, Regrouped(call, "weights_by_key", x, key_heads, rows));
  ASSIGN_OR_RETURN(x, call.EmitHelper("mixed", "matmul", {x, attention.value}));
  ASSIGN_OR_RETURN(steps.result, Regrouped(call, "result", x, heads, queries));
  return steps;
}

absl::StatusOr<Value> CausalMask(Call& call, int64_t queries, int64_t keys, int64_t past, int64_t window) {
  ASSIGN_OR_RETURN(Tensor mask, ChargedTensor(call, DType::kBool, {queries, keys}));
  for (int64_t i = 0; i < mask.num_elements(); ++i) {
    const int64_t back = i / keys + past - i % keys;
    mask.Set(i, back >= 0 && (window == 0 || back < window));
  }
  return Builder::Constant(call.name() + ".causal", std::move(mask));
}

absl::StatusOr<Value> BothAllowed(Call& call, absl::string_view name, const Value& a, const Value& b) {
  if (!a.present() || !b.present()) return a.present() ? a : b;
  return call.EmitHelper(name, "logical_and", {a, b});
}

absl::StatusOr<Value> PaddingMask(Call& call, const Value& lengths, int64_t keys) {
  if (lengths.type().rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("found lengths ", ToString(lengths.type()), ", wanted [N]"));
  }
  ASSIGN_OR_RETURN(Tensor places, ChargedTensor(call, lengths.type().dtype, {keys}));
  for (int64_t i = 0; i < keys; ++i) places.Set(i, static_cast<double>(i));
  const Value place = Builder::Constant(call.name() + ".places", std::move(places));
  ASSIGN_OR_RETURN(const Value column, call.EmitHelper("lengths", "unsqueeze", {lengths}, {{"dims", Ints{1, 2, 3}}}));
  return call.EmitHelper("not_padding", "lt", {place, column});
}

absl::StatusOr<Value> WithPast(Call& call, absl::string_view name, const Value& past, const Value& x) {
  if (!past.present()) return x;
  return call.EmitHelper(name, "cat", {past, x}, {{"dim", 2}});
}

absl::StatusOr<Value> EmitRotation(Call& call, const Rotation& rotation) {
  const int last = rotation.x.type().rank() - 1;
  const int64_t size = rotation.x.shape()[last], half = rotation.cosines.shape().back();
  if (half < 1 || 2 * half > size || rotation.sines.shape() != rotation.cosines.shape()) {
    return absl::InvalidArgumentError(absl::StrCat("found cosines ", ToString(rotation.cosines.type()), " and sines ",
                                                   ToString(rotation.sines.type()), " for heads of ", size,
                                                   " elements, wanted both alike, at most half as many"));
  }
  const auto part = [&](absl::string_view name, int64_t begin, int64_t end, int64_t step) {
    return call.EmitHelper(name, "slice", {rotation.x},
                           {{"starts", Ints{begin}}, {"ends", Ints{end}}, {"axes", Ints{last}}, {"steps", Ints{step}}});
  };
  const bool pairs = rotation.interleaved;
  ASSIGN_OR_RETURN(const Value a, part("first", 0, pairs ? 2 * half : half, pairs ? 2 : 1));
  ASSIGN_OR_RETURN(const Value b, part("second", pairs ? 1 : half, 2 * half, pairs ? 2 : 1));
  const auto product = [&](absl::string_view name, const Value& x, const Value& y) {
    return call.EmitHelper(name, "mul", {x, y});
  };
  ASSIGN_OR_RETURN(const Value a_cos, product("first_cos", a, rotation.cosines));
  ASSIGN_OR_RETURN(const Value b_sin, product("second_sin", b, rotation.sines));
  ASSIGN_OR_RETURN(const Value a_sin, product("first_sin", a, rotation.sines));
  ASSIGN_OR_RETURN(const Value b_cos, product("second_cos", b, rotation.cosines));
  ASSIGN_OR_RETURN(Value real, call.EmitHelper("real", "sub", {a_cos, b_sin}));
  ASSIGN_OR_RETURN(Value imaginary, call.EmitHelper("imaginary", "add", {a_sin, b_cos}));
  Value turned;
  if (pairs) {
    const Ints behind = {last + 1};
    ASSIGN_OR_RETURN(real, call.EmitHelper("real_of_pair", "unsqueeze", {real}, {{"dims", behind}}));
    ASSIGN_OR_RETURN(imaginary, call.EmitHelper("imaginary_of_pair", "unsqueeze", {imaginary}, {{"dims", behind}}));
    ASSIGN_OR_RETURN(turned, call.EmitHelper("pairs", "cat", {real, imaginary}, {{"dim", last + 1}}));
    Shape shape = rotation.x.shape();
    shape[0] = 0;
    shape[last] = 2 * half;
    ASSIGN_OR_RETURN(turned, call.EmitHelper("turned", "reshape", {turned}, {{"shape", shape}}));
  } else {
    ASSIGN_OR_RETURN(turned, call.EmitHelper("turned", "cat", {real, imaginary}, {{"dim", last}}));
  }
  if (2 * half == size) return turned;
  ASSIGN_OR_RETURN(const Value rest, part("rest", 2 * half, size, 1));
  return call.EmitHelper("with_rest", "cat", {turned, rest}, {{"dim", last}});
}

}  // namespace fuselage::onnx
