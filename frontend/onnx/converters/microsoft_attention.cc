// com.microsoft's attention and what surrounds it.
#include <cmath>
#include <cstdint>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/attention.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/fold.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::microsoft_attention {
namespace {

using Ints = std::vector<int64_t>;

absl::Status CheckAbsent(const Call& call, int i, absl::string_view name) {
  if (!call.has(i)) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("input ", i, ": found ", name, ", wanted none"));
}

// Elements [begin, end) of the last axis.
absl::StatusOr<Value> LastAxisPart(Call& call, absl::string_view name, const Value& x, int64_t begin, int64_t end) {
  return call.EmitHelper(name, "slice", {x},
                         {{"starts", Ints{begin}}, {"ends", Ints{end}}, {"axes", Ints{x.type().rank() - 1}}});
}

// One of the values that lie side by side on an axis, which vanishes.
absl::StatusOr<Value> Unpacked(Call& call, absl::string_view name, const Value& x, int64_t axis, int64_t i) {
  ASSIGN_OR_RETURN(const Value part,
                   call.EmitHelper(absl::StrCat(name, ".part"), "slice", {x},
                                   {{"starts", Ints{i}}, {"ends", Ints{i + 1}}, {"axes", Ints{axis}}}));
  return call.EmitHelper(name, "squeeze", {part}, {{"dims", Ints{axis}}});
}

// [N, S, heads, D] to [N, heads, S, D].
absl::StatusOr<Value> HeadsFirst(Call& call, absl::string_view name, const Value& x) {
  return call.EmitHelper(name, "permute", {x}, {{"dims", Ints{0, 2, 1, 3}}});
}

absl::StatusOr<int64_t> NumHeads(const Call& call) {
  const int64_t heads = call.Int("num_heads", 0);
  if (heads >= 1 && heads <= INT16_MAX) return heads;
  return absl::InvalidArgumentError(absl::StrCat("attribute 'num_heads': found ", heads, ", wanted one in [1, 2^15)"));
}

// Operand `i` says which keys count: the number of keys [N], or i32s [N, T] or [N, S, T] that are not 0. What does not
// count has mask_filter_value added, as in onnxruntime: `bias` and that.
absl::StatusOr<Value> WithKeyMask(Call& call, int i, const Attention& attention, const Value& bias) {
  if (!call.has(i)) return bias;
  const Shape& q = attention.query.shape();
  const int64_t keys = attention.key.shape()[2];
  Value allowed;
  if (call.shape(i) == Shape{q[0]}) {
    ASSIGN_OR_RETURN(allowed, PaddingMask(call, call.operand(i), keys));
  } else if (call.shape(i) == Shape{q[0], keys} || call.shape(i) == Shape{q[0], q[2], keys}) {
    ASSIGN_OR_RETURN(allowed, call.EmitHelper("key_mask", "to", {call.operand(i)}, {{"dtype", DType::kBool}}));
    const Ints axes = call.rank(i) == 2 ? Ints{1, 2} : Ints{1};
    ASSIGN_OR_RETURN(allowed, call.EmitHelper("key_masks", "unsqueeze", {allowed}, {{"dims", axes}}));
  } else {
    return absl::UnimplementedError(absl::StrCat("input ", i, ": found the mask ", ToString(call.type(i)),
                                                 ", wanted [N], [N, T] or [N, S, T] of ", keys, " keys"));
  }
  const DType dtype = attention.query.type().dtype;
  ASSIGN_OR_RETURN(const Value zero, call.Scalar("no_bias", dtype, 0));
  ASSIGN_OR_RETURN(const Value filter, call.Scalar("filter", dtype, call.Float("mask_filter_value", -10000)));
  ASSIGN_OR_RETURN(const Value added, call.EmitHelper("mask_bias", "where", {allowed, zero, filter}));
  if (!bias.present()) return added;
  return call.EmitHelper("biases", "add", {bias, added});
}

// The result of attention by head, as rows.
absl::Status AttentionResult(Call& call, Attention attention) {
  const double otherwise = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(attention.query.shape()[3], 1)));
  const double scale = call.Float("scale", 0);
  attention.scale = scale == 0 ? otherwise : scale;
  ASSIGN_OR_RETURN(const bool causal, call.Flag("unidirectional", false));
  if (causal) {
    const int64_t queries = attention.query.shape()[2], keys = attention.key.shape()[2];
    attention.is_causal = queries == keys;
    if (!attention.is_causal) {
      ASSIGN_OR_RETURN(attention.allowed, CausalMask(call, queries, keys, keys - queries));
    }
  }
  ASSIGN_OR_RETURN(const Value result, EmitAttention(call, attention));
  ASSIGN_OR_RETURN(Value rows, MergeHeads(call, result));
  call.Set(0, std::move(rows));
  return absl::OkStatus();
}

// Queries, keys and values are one product of the input, side by side.
absl::Status ConvertMicrosoftAttention(Call& call) {
  RETURN_IF_ERROR(CheckAbsent(call, 4, "a past"));
  RETURN_IF_ERROR(CheckAbsent(call, 6, "past_sequence_length"));
  ASSIGN_OR_RETURN(const bool rotates, call.Flag("do_rotary", false));
  if (rotates) return absl::UnimplementedError("found do_rotary = 1, wanted 0");
  ASSIGN_OR_RETURN(const int64_t heads, NumHeads(call));
  if (call.rank(0) != 3 || call.rank(1) != 2) {
    return absl::InvalidArgumentError(absl::StrCat("found ", ToString(call.type(0)), " and weights ",
                                                   ToString(call.type(1)), ", wanted [N, S, C] and [C, sizes]"));
  }
  Ints sizes = call.Ints("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, call.shape(1)[1] / 3);
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[1] != sizes[0] || sizes[2] < 1 ||
      sizes[0] + sizes[1] + sizes[2] != call.shape(1)[1]) {
    return absl::InvalidArgumentError(absl::StrCat("attribute 'qkv_hidden_sizes': found ", ToString(sizes),
                                                   ", wanted three of ", call.shape(1)[1],
                                                   " in all, the first two alike"));
  }
  ASSIGN_OR_RETURN(Value packed, call.EmitHelper("product", "matmul", {call.operand(0), call.operand(1)}));
  if (call.has(2)) {
    ASSIGN_OR_RETURN(packed, call.EmitHelper("packed", "add", {packed, call.operand(2)}));
  }
  Attention attention;
  Value* const values[] = {&attention.query, &attention.key, &attention.value};
  const char* const names[] = {"query", "key", "value"};
  int64_t begin = 0;
  for (int i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(const Value part,
                     LastAxisPart(call, absl::StrCat(names[i], ".rows"), packed, begin, begin + sizes[i]));
    ASSIGN_OR_RETURN(*values[i], SplitHeads(call, names[i], part, heads));
    begin += sizes[i];
  }
  ASSIGN_OR_RETURN(attention.bias, WithKeyMask(call, 3, attention, call.operand(5)));
  return AttentionResult(call, std::move(attention));
}

enum MultiHeadOperand { kQuery, kKey, kValue, kBias, kKeyMask, kAttentionBias, kPastKey, kPastValue };

// One of query, key and value [N, S, heads * D], with its part of the bias, by head.
absl::StatusOr<Value> BiasedHeads(Call& call, absl::string_view name, const Value& rows, int64_t heads, int64_t begin) {
  if (!call.has(kBias)) return SplitHeads(call, name, rows, heads);
  ASSIGN_OR_RETURN(const Value bias, LastAxisPart(call, absl::StrCat(name, ".bias"), call.operand(kBias), begin,
                                                  begin + rows.shape().back()));
  ASSIGN_OR_RETURN(const Value biased, call.EmitHelper(absl::StrCat(name, ".biased"), "add", {rows, bias}));
  return SplitHeads(call, name, biased, heads);
}

absl::Status ReadMultiHeads(Call& call, int64_t heads, Attention* attention) {
  const Value &query = call.operand(kQuery), &key = call.operand(kKey), &value = call.operand(kValue);
  const bool all_packed = query.type().rank() == 5 && !key.present() && !value.present();
  const bool packed =
      all_packed || (query.type().rank() == 3 && key.present() && key.type().rank() == 5 && !value.present());
  if (packed && !call.has(kBias)) {
    const Value& of = all_packed ? query : key;  // [N, S, heads, 3 or 2, D]
    Value* const parts[] = {&attention->query, &attention->key, &attention->value};
    const char* const names[] = {"query", "key", "value"};
    for (int i = all_packed ? 0 : 1; i < 3; ++i) {
      ASSIGN_OR_RETURN(const Value rows,
                       Unpacked(call, absl::StrCat(names[i], ".rows"), of, 3, all_packed ? i : i - 1));
      ASSIGN_OR_RETURN(*parts[i], HeadsFirst(call, names[i], rows));
    }
    if (all_packed) return absl::OkStatus();
    ASSIGN_OR_RETURN(attention->query, SplitHeads(call, "query", query, heads));
    return absl::OkStatus();
  }
  if (query.type().rank() != 3 || !key.present() || !value.present() || key.type().rank() != value.type().rank() ||
      (key.type().rank() != 3 && key.type().rank() != 4)) {
    return absl::UnimplementedError(
        "found another packing, wanted [N, S, C] for all, keys and values by head, or packed ones without a bias");
  }
  const int64_t size = query.shape()[2];
  ASSIGN_OR_RETURN(attention->query, BiasedHeads(call, "query", query, heads, 0));
  if (key.type().rank() == 4) {  // [N, heads, T, D], which a bias has no part in.
    attention->key = key;
    attention->value = value;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(attention->key, BiasedHeads(call, "key", key, heads, size));
  ASSIGN_OR_RETURN(attention->value, BiasedHeads(call, "value", value, heads, size + key.shape()[2]));
  return absl::OkStatus();
}

absl::Status ConvertMultiHeadAttention(Call& call) {
  for (int i = kPastValue + 1; i < call.num_operands(); ++i) RETURN_IF_ERROR(CheckAbsent(call, i, "a shared cache"));
  if (call.has(kPastKey) != call.has(kPastValue)) {
    return absl::InvalidArgumentError("found one of past_key and past_value, wanted both or none");
  }
  ASSIGN_OR_RETURN(const int64_t heads, NumHeads(call));
  Attention attention;
  RETURN_IF_ERROR(ReadMultiHeads(call, heads, &attention));
  ASSIGN_OR_RETURN(attention.key, WithPast(call, "all_keys", call.operand(kPastKey), attention.key));
  ASSIGN_OR_RETURN(attention.value, WithPast(call, "all_values", call.operand(kPastValue), attention.value));
  if (call.wants(1)) call.Set(1, attention.key);
  if (call.wants(2)) call.Set(2, attention.value);
  ASSIGN_OR_RETURN(attention.bias, WithKeyMask(call, kKeyMask, attention, call.operand(kAttentionBias)));
  return AttentionResult(call, std::move(attention));
}

// Positions are [N, S], or [1]: the first one's. The caches have a row for each.
absl::Status ConvertMicrosoftRotaryEmbedding(Call& call) {
  ASSIGN_OR_RETURN(const bool interleaved, call.Flag("interleaved", false));
  ASSIGN_OR_RETURN(const bool packed, call.Flag("is_packed_batching", false));
  const int rank = call.rank(0);
  if (packed || call.Float("scale", 1) != 1 || (rank != 3 && rank != 4) || call.rank(2) != 2) {
    return absl::UnimplementedError(absl::StrCat("found ", ToString(call.type(0)), " and a cache ",
                                                 ToString(call.type(2)),
                                                 ", wanted [N, S, C] or [N, heads, S, D] and [positions, half a head], "
                                                 "without is_packed_batching and scale"));
  }
  const int64_t turned = 2 * call.shape(2)[1], places = call.shape(0)[rank - 2];
  const int64_t size = rank == 4 ? call.shape(0)[3] : 0, stated = call.Int("num_heads", 0);
  Rotation rotation{call.operand(0), call.operand(2), call.operand(3), interleaved};
  if (rank == 3) {
    const int64_t channels = call.shape(0)[2], heads = stated > 0 ? stated : turned > 0 ? channels / turned : 0;
    if (heads < 1 || channels % heads != 0) {
      return absl::InvalidArgumentError(absl::StrCat("found ", channels, " channels for ", heads, " heads"));
    }
    ASSIGN_OR_RETURN(rotation.x, call.EmitHelper("heads", "reshape", {rotation.x},
                                                 {{"shape", Ints{0, 0, heads, channels / heads}}}));
  }
  Value positions = call.operand(1);
  const bool first_only = positions.type().rank() == 1 && positions.shape()[0] == 1;
  if (first_only) {
    ASSIGN_OR_RETURN(Tensor steps, ChargedTensor(call, positions.type().dtype, {places}));
    for (int64_t i = 0; i < places; ++i) steps.Set(i, static_cast<double>(i));
    const Value step = Builder::Constant(call.name() + ".steps", std::move(steps));
    ASSIGN_OR_RETURN(positions, call.EmitHelper("positions", "add", {positions, step}));
  }
  for (Value* cache : {&rotation.cosines, &rotation.sines}) {
    const char* name = cache == &rotation.cosines ? "cosines" : "sines";
    ASSIGN_OR_RETURN(*cache,
                     call.EmitHelper(absl::StrCat(name, ".rows"), "index_select", {*cache, positions}, {{"dim", 0}}));
    // [S, R] or [N, S, R], with an axis for the heads in front of S or behind it.
    const Ints axis = {cache->type().rank() - 1 - (rank == 4)};
    ASSIGN_OR_RETURN(*cache, call.EmitHelper(name, "unsqueeze", {*cache}, {{"dims", axis}}));
  }
  if (size != 0 && turned > size) return absl::InvalidArgumentError("found a cache wider than a head");
  ASSIGN_OR_RETURN(const Value y, EmitRotation(call, rotation));
  if (rank == 4) return call.Result("identity", {y});
  return call.Result("reshape", {y}, {{"shape", Ints{0, 0, call.shape(0)[2]}}});
}

// layer_norm(words + positions + segments); output 1 counts the words of each row, output 2 is the sum.
absl::Status ConvertEmbedLayerNormalization(Call& call) {
  if (call.rank(0) != 2 || call.rank(2) != 2 || call.rank(3) != 2 || call.has(1) != call.has(4)) {
    return absl::InvalidArgumentError("wanted input_ids [N, S], tables of rank 2, and segments with their table");
  }
  const auto look_up = [&](absl::string_view name, int table, const Value& index) {
    return call.EmitHelper(name, "index_select", {call.operand(table), index}, {{"dim", 0}});
  };
  ASSIGN_OR_RETURN(Value sum, look_up("words", 2, call.operand(0)));
  Value positions;
  if (call.has(8)) {
    ASSIGN_OR_RETURN(positions, look_up("positions", 3, call.operand(8)));
  } else {
    ASSIGN_OR_RETURN(positions, call.EmitHelper("positions", "slice", {call.operand(3)},
                                                {{"starts", Ints{0}}, {"ends", Ints{call.shape(0)[1]}}}));
  }
  ASSIGN_OR_RETURN(sum, call.EmitHelper("placed", "add", {sum, positions}));
  if (call.has(1)) {
    ASSIGN_OR_RETURN(const Value segments, look_up("segments", 4, call.operand(1)));
    ASSIGN_OR_RETURN(sum, call.EmitHelper("sum", "add", {sum, segments}));
  }
  if (call.wants(1)) {
    if (!call.has(7)) return absl::UnimplementedError("found mask_index in use without a mask, wanted the mask");
    ASSIGN_OR_RETURN(Value count, call.EmitHelper("mask_index", "sum", {call.operand(7)}, {{"dims", Ints{1}}}));
    call.Set(1, std::move(count));
  }
  if (call.wants(2)) call.Set(2, sum);
  const Shape normalized = {sum.shape().back()};
  return call.Result("layer_norm", {sum, call.operand(5), call.operand(6)},
                     {{"normalized_shape", normalized}, {"eps", call.Float("epsilon", 1e-12f)}});
}

constexpr char kAttention[] =
    "do_rotary=INT mask_filter_value=FLOAT num_heads=INT past_present_share_buffer=INT qkv_hidden_sizes=INTS "
    "rotary_embedding_dim=INT scale=FLOAT unidirectional=INT";
constexpr char kMultiHeadAttention[] = "mask_filter_value=FLOAT num_heads=INT scale=FLOAT unidirectional=INT";
constexpr char kRotaryEmbedding[] =
    "interleaved=INT is_packed_batching=INT num_heads=INT rotary_embedding_dim=INT scale=FLOAT";

}  // namespace

void Register(Converters& converters) {
  converters.Add(kMicrosoft,
                 {
                     {"Attention", 0, {2, 7}, {1, 1}, kAttention, ConvertMicrosoftAttention},
                     {"EmbedLayerNormalization",
                      0,
                      {7, 9},
                      {1, 3},
                      "epsilon=FLOAT mask_index_type=INT",
                      ConvertEmbedLayerNormalization},
                     {"MultiHeadAttention", 0, {1, 10}, {1, 3}, kMultiHeadAttention, ConvertMultiHeadAttention},
                     {"RotaryEmbedding", 0, {4, 4}, {1, 1}, kRotaryEmbedding, ConvertMicrosoftRotaryEmbedding},
                 });
}

}  // namespace fuselage::onnx::converters::microsoft_attention
