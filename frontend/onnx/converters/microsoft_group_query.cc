// com.microsoft's GroupQueryAttention: causal attention of a language model behind its cache, which holds turned keys.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/attention.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/fold.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::microsoft_group_query {
namespace {

using Ints = std::vector<int64_t>;

enum Operand {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLastPlaces,  // i32 [N]: where the last token of each sequence is.
  kTotal,       // The tokens of the longest sequence.
  kCosines,
  kSines,
  kPlaces,
  kBias,
};

// How many tokens there are, and have been.
struct Sizes {
  int64_t heads, key_heads;
  int64_t queries, capacity, total;  // S, the cache's P, the keys T.
  int64_t window = 0;                // 0: none. Otherwise a query looks at so many keys, its own among them.
  // What the cache holds of each sequence. Of several it is a value [N] that runs decide, and this of the longest.
  int64_t past;
  Value pasts;
};

absl::StatusOr<Value> Slice(Call& call, absl::string_view name, const Value& x, int64_t axis, int64_t begin,
                            int64_t end) {
  if (begin == 0 && end == x.shape()[axis]) return x;
  return call.EmitHelper(name, "slice", {x}, {{"starts", Ints{begin}}, {"ends", Ints{end}}, {"axes", Ints{axis}}});
}

absl::Status CheckSupported(const Call& call) {
  const int64_t smooth = call.Int("smooth_softmax", 0), output = call.Int("qk_output", 0);
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    const std::string type = call.String(name, "NONE");
    if (type != "NONE") {
      return absl::UnimplementedError(absl::StrCat("attribute '", name, "': found ", type, ", wanted NONE"));
    }
  }
  if (smooth == 1 || output != 0 || call.wants(3)) {
    return absl::UnimplementedError("found smooth_softmax or qk_output, wanted neither");
  }
  for (int i = kBias + 1; i < call.num_operands(); ++i) {
    if (call.has(i)) return absl::UnimplementedError(absl::StrCat("found input ", i, ", wanted none behind the bias"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Sizes> ReadSizes(Call& call) {
  Sizes sizes;
  sizes.heads = call.Int("num_heads", 0), sizes.key_heads = call.Int("kv_num_heads", 0);
  if (sizes.heads < 1 || sizes.heads > INT16_MAX || sizes.key_heads < 1 || sizes.heads % sizes.key_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("found num_heads = ", sizes.heads, " and kv_num_heads = ",
                                                   sizes.key_heads, ", wanted a multiple of the latter"));
  }
  if (call.rank(kQuery) != 3 || !call.has(kLastPlaces) || !call.has(kTotal)) {
    return absl::InvalidArgumentError(absl::StrCat("found queries ", ToString(call.type(kQuery)),
                                                   ", wanted [N, S, C], seqlens_k and total_sequence_length"));
  }
  for (const int i : {kPastKey, kPastValue}) {
    if (call.has(i) == call.has(kPastKey) && (!call.has(i) || call.rank(i) == 4)) continue;
    return absl::InvalidArgumentError(absl::StrCat("input ", i, ": found ",
                                                   call.has(i) ? ToString(call.type(i)) : "nothing",
                                                   ", wanted both caches [N, kv_num_heads, P, D], or none"));
  }
  ASSIGN_OR_RETURN(const Ints total, call.ConstantInts(kTotal));
  sizes.queries = call.shape(kQuery)[1];
  sizes.capacity = call.has(kPastKey) ? call.shape(kPastKey)[2] : 0;
  sizes.total = total.size() == 1 ? total[0] : -1;
  sizes.past = sizes.total - sizes.queries;
  if (sizes.past < 0 || sizes.past > sizes.capacity) {
    return absl::InvalidArgumentError(absl::StrCat("input 6: found ", sizes.total, " tokens in all, wanted ",
                                                   sizes.queries, " and at most ", sizes.capacity, " of the cache"));
  }
  const int64_t window = call.Int("local_window_size", -1);
  if (window > 0 && window < sizes.total) sizes.window = window;
  // One sequence is the longest; of several each has a past of its own, if any. A graph of one that runs a batch takes
  // all to be as long.
  const int64_t sequences = call.shape(kQuery)[0];
  if (sequences > 1 && sizes.past > 0) {
    const TensorType& places = call.type(kLastPlaces);
    if (places.dtype != DType::kI32 || places.num_elements() != sequences) {
      return absl::InvalidArgumentError(
          absl::StrCat("input 5: found ", ToString(places), ", wanted an i32 for each of ", sequences, " sequences"));
    }
    ASSIGN_OR_RETURN(const Value last,
                     call.EmitHelper("last", "reshape", {call.operand(kLastPlaces)}, {{"shape", Ints{0}}}));
    ASSIGN_OR_RETURN(const Value steps, call.Scalar("steps", DType::kI32, static_cast<double>(sizes.queries - 1)));
    ASSIGN_OR_RETURN(sizes.pasts, call.EmitHelper("pasts", "sub", {last, steps}));
  }
  return sizes;
}

// An i32 constant of `shape`, one row or several, whose element j of row i is values(i, j).
template <typename Values>
absl::StatusOr<Value> Constant(Call& call, absl::string_view name, Shape shape, Values values) {
  ASSIGN_OR_RETURN(Tensor tensor, ChargedTensor(call, DType::kI32, shape));
  const int64_t columns = shape.back();
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.Set(i, static_cast<double>(values(i / columns, i % columns)));
  return Builder::Constant(absl::StrCat(call.name(), ".", name), std::move(tensor));
}

absl::StatusOr<Value> PastColumn(Call& call, const Sizes& sizes, const Ints& axes) {
  return call.EmitHelper("past_column", "unsqueeze", {sizes.pasts}, {{"dims", axes}});
}

// The places of the queries: i64 or i32 [S], or [N, S].
absl::StatusOr<Value> Places(Call& call, const Sizes& sizes) {
  if (call.has(kPlaces)) return call.operand(kPlaces);
  const auto place = [&](int64_t, int64_t i) { return sizes.pasts.present() ? i : sizes.past + i; };
  ASSIGN_OR_RETURN(const Value steps, Constant(call, "steps", {sizes.queries}, place));
  if (!sizes.pasts.present()) return steps;
  ASSIGN_OR_RETURN(const Value column, PastColumn(call, sizes, {1}));
  return call.EmitHelper("places", "add", {column, steps});
}

// The heads of queries or keys [N, heads, S, D], turned by their places' angles.
absl::StatusOr<Value> Turned(Call& call, absl::string_view name, const Value& x, const Value& places) {
  ASSIGN_OR_RETURN(const bool interleaved, call.Flag("rotary_interleaved", false));
  Rotation rotation{x, call.operand(kCosines), call.operand(kSines), interleaved};
  for (Value* cache : {&rotation.cosines, &rotation.sines}) {
    const char* half = cache == &rotation.cosines ? ".cosines" : ".sines";
    if (!cache->present() || cache->type().rank() != 2) {
      return absl::InvalidArgumentError("found do_rotary = 1 without cos_cache and sin_cache [places, half a head]");
    }
    ASSIGN_OR_RETURN(*cache, call.EmitHelper(absl::StrCat(name, half), "index_select", {*cache, places}, {{"dim", 0}}));
    if (cache->type().rank() == 3) {  // [N, S, R], of all heads.
      ASSIGN_OR_RETURN(
          *cache, call.EmitHelper(absl::StrCat(name, half, "_of_heads"), "unsqueeze", {*cache}, {{"dims", Ints{1}}}));
    }
  }
  return EmitRotation(call, rotation);
}

// Of several sequences with a past: where each token of the cache comes from, [N, max(P, T), 1], in what it held and
// the new ones behind. Token j is new where j - past is a new one's place, else what it was.
absl::StatusOr<Value> PresentIndex(Call& call, const Sizes& sizes) {
  const int64_t places = std::max(sizes.capacity, sizes.total);
  const auto own_place = [](int64_t, int64_t j) { return j; };
  const auto old_place = [&](int64_t, int64_t j) { return std::min(j, sizes.capacity - 1); };
  ASSIGN_OR_RETURN(const Value own, Constant(call, "own_places", {places}, own_place));
  ASSIGN_OR_RETURN(const Value old, Constant(call, "old_places", {places}, old_place));
  ASSIGN_OR_RETURN(const Value zero, call.Scalar("zero", DType::kI32, 0));
  ASSIGN_OR_RETURN(const Value count, call.Scalar("count", DType::kI32, static_cast<double>(sizes.queries)));
  ASSIGN_OR_RETURN(const Value begin, call.Scalar("begin", DType::kI32, static_cast<double>(sizes.capacity)));
  ASSIGN_OR_RETURN(const Value column, PastColumn(call, sizes, {1}));
  ASSIGN_OR_RETURN(const Value since, call.EmitHelper("since", "sub", {own, column}));
  ASSIGN_OR_RETURN(const Value from, call.EmitHelper("from", "ge", {since, zero}));
  ASSIGN_OR_RETURN(const Value to, call.EmitHelper("to", "lt", {since, count}));
  ASSIGN_OR_RETURN(const Value is_new, call.EmitHelper("is_new", "logical_and", {from, to}));
  ASSIGN_OR_RETURN(const Value behind, call.EmitHelper("behind", "add", {since, begin}));
  ASSIGN_OR_RETURN(const Value index, call.EmitHelper("index", "where", {is_new, behind, old}));
  return call.EmitHelper("indices", "unsqueeze", {index}, {{"dims", Ints{2}}});
}

// What the cache holds then [N, key heads, max(P, T), D]: each sequence's past, its new tokens, and the rest as it was.
// `index`: PresentIndex, where there is one.
absl::StatusOr<Value> Present(Call& call, const std::string& name, const Sizes& sizes, const Value& index,
                              const Value& past, const Value& x) {
  if (sizes.capacity == 0) return x;
  if (!index.present()) {
    std::vector<Value> parts;
    if (sizes.past > 0) {
      ASSIGN_OR_RETURN(parts.emplace_back(), Slice(call, name + ".past", past, 2, 0, sizes.past));
    }
    parts.push_back(x);
    if (sizes.total < sizes.capacity) {
      ASSIGN_OR_RETURN(parts.emplace_back(), Slice(call, name + ".rest", past, 2, sizes.total, sizes.capacity));
    }
    return parts.size() == 1 ? x : call.EmitHelper(name, "cat", parts, {{"dim", 2}});
  }
  ASSIGN_OR_RETURN(Value all, call.EmitHelper(name + ".all", "cat", {past, x}, {{"dim", 2}}));
  const Ints swapped = {0, 2, 1, 3};  // To [N, tokens, key heads, D], and back.
  ASSIGN_OR_RETURN(all, call.EmitHelper(name + ".tokens", "permute", {all}, {{"dims", swapped}}));
  ASSIGN_OR_RETURN(all, call.EmitHelper(name + ".in_place", "gather_nd", {all, index}, {{"batch_dims", 1}}));
  return call.EmitHelper(name, "permute", {all}, {{"dims", swapped}});
}

// Which keys each query may look at: those up to its own, and no farther back than the window.
absl::Status SetAllowed(Call& call, const Sizes& sizes, Attention* attention) {
  const int64_t queries = sizes.queries, keys = sizes.total;
  if (!sizes.pasts.present()) {
    if (sizes.past == 0 && sizes.window == 0) {
      attention->is_causal = true;
    } else if (queries > 1 || sizes.window > 0) {
      ASSIGN_OR_RETURN(attention->allowed, CausalMask(call, queries, keys, sizes.past, sizes.window));
    }
    return absl::OkStatus();
  }
  const auto least_past = [](int64_t i, int64_t j) { return j - i; };
  ASSIGN_OR_RETURN(const Value least, Constant(call, "least_past", {queries, keys}, least_past));
  ASSIGN_OR_RETURN(const Value column, PastColumn(call, sizes, {1, 2, 3}));
  ASSIGN_OR_RETURN(attention->allowed, call.EmitHelper("causal", "le", {least, column}));
  if (sizes.window == 0) return absl::OkStatus();
  const auto behind_window = [&](int64_t i, int64_t j) { return j - i + sizes.window; };
  ASSIGN_OR_RETURN(const Value most, Constant(call, "most_past", {queries, keys}, behind_window));
  ASSIGN_OR_RETURN(const Value near, call.EmitHelper("near", "gt", {most, column}));
  ASSIGN_OR_RETURN(attention->allowed, BothAllowed(call, "allowed", attention->allowed, near));
  return absl::OkStatus();
}

// The heads of queries, keys and values, which lie apart or side by side in the first operand.
absl::Status ReadHeads(Call& call, const Sizes& sizes, Attention* attention) {
  Value* const values[] = {&attention->query, &attention->key, &attention->value};
  const char* const names[] = {"query", "key", "value"};
  if (call.has(kKey) != call.has(kValue)) return absl::InvalidArgumentError("found one of key and value");
  const int64_t channels = call.shape(kQuery)[2], parts = sizes.heads + 2 * sizes.key_heads;
  if (!call.has(kKey) && channels % parts != 0) {
    return absl::InvalidArgumentError(absl::StrCat("found ", channels, " channels for ", parts, " heads in all"));
  }
  int64_t begin = 0;
  for (int i = 0; i < 3; ++i) {
    const int64_t heads = i == 0 ? sizes.heads : sizes.key_heads;
    Value rows = call.operand(i);
    if (!call.has(kKey)) {
      const int64_t end = begin + heads * (channels / parts);
      ASSIGN_OR_RETURN(rows, Slice(call, absl::StrCat(names[i], ".rows"), call.operand(kQuery), 2, begin, end));
      begin = end;
    }
    ASSIGN_OR_RETURN(*values[i], SplitHeads(call, names[i], rows, heads));
  }
  return absl::OkStatus();
}

absl::Status ConvertGroupQueryAttention(Call& call) {
  RETURN_IF_ERROR(CheckSupported(call));
  ASSIGN_OR_RETURN(const Sizes sizes, ReadSizes(call));
  Attention attention;
  RETURN_IF_ERROR(ReadHeads(call, sizes, &attention));
  ASSIGN_OR_RETURN(const bool rotary, call.Flag("do_rotary", false));
  if (rotary) {
    ASSIGN_OR_RETURN(const Value places, Places(call, sizes));
    ASSIGN_OR_RETURN(attention.query, Turned(call, "query", attention.query, places));
    ASSIGN_OR_RETURN(attention.key, Turned(call, "key", attention.key, places));
  }
  Value index;
  if (sizes.pasts.present()) {
    ASSIGN_OR_RETURN(index, PresentIndex(call, sizes));
  }
  Value* const caches[] = {&attention.key, &attention.value};
  const char* const names[] = {"all_keys", "all_values"};
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(const Value present,
                     Present(call, names[i], sizes, index, call.operand(kPastKey + i), *caches[i]));
    if (call.wants(1 + i)) call.Set(1 + i, present);
    ASSIGN_OR_RETURN(*caches[i], Slice(call, absl::StrCat(names[i], ".used"), present, 2, 0, sizes.total));
  }
  RETURN_IF_ERROR(SetAllowed(call, sizes, &attention));
  attention.bias = call.operand(kBias);
  const double scale = call.Float("scale", 0), size = static_cast<double>(attention.query.shape()[3]);
  attention.scale = scale == 0 ? 1 / std::sqrt(size) : scale;
  attention.softcap = call.Float("softcap", 0);
  ASSIGN_OR_RETURN(const Value result, EmitAttention(call, attention));
  ASSIGN_OR_RETURN(Value rows, MergeHeads(call, result));
  call.Set(0, std::move(rows));
  return absl::OkStatus();
}

constexpr char kGroupQueryAttention[] =
    "do_rotary=INT k_quant_type=STRING kv_cache_bit_width=INT kv_num_heads=INT local_window_size=INT num_heads=INT "
    "qk_output=INT rotary_interleaved=INT scale=FLOAT smooth_softmax=INT softcap=FLOAT v_quant_type=STRING";

}  // namespace

void Register(Converters& converters) {
  converters.Add(kMicrosoft,
                 {
                     {"GroupQueryAttention", 0, {1, 14}, {1, 4}, kGroupQueryAttention, ConvertGroupQueryAttention},
                 });
}

}  // namespace fuselage::onnx::converters::microsoft_group_query
