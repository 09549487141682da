// Attention and RotaryEmbedding of opset 23 on.
#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/attention.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/fold.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::attention {
namespace {

using Ints = std::vector<int64_t>;

enum Operand { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kLengths };

absl::Status CheckPast(const Call& call) {
  if (call.has(kPastKey) != call.has(kPastValue)) {
    return absl::InvalidArgumentError("found one of past_key and past_value, wanted both or none");
  }
  if (call.has(kPastKey) && call.has(kLengths)) {
    return absl::InvalidArgumentError("found past_key beside nonpad_kv_seqlen, wanted one of them");
  }
  return absl::OkStatus();
}

// The queries, keys and values by head, after what the cache holds.
absl::Status ReadHeads(Call& call, Attention* attention) {
  Value* const values[] = {&attention->query, &attention->key, &attention->value};
  const char* const names[] = {"query", "key", "value"};
  for (int i = kQuery; i <= kValue; ++i) {
    *values[i] = call.operand(i);
    if (call.rank(i) == 4) continue;
    const int64_t heads = call.Int(i == kQuery ? "q_num_heads" : "kv_num_heads", 0);
    ASSIGN_OR_RETURN(*values[i], SplitHeads(call, names[i], call.operand(i), heads));
  }
  ASSIGN_OR_RETURN(attention->key, WithPast(call, "all_keys", call.operand(kPastKey), attention->key));
  ASSIGN_OR_RETURN(attention->value, WithPast(call, "all_values", call.operand(kPastValue), attention->value));
  return absl::OkStatus();
}

// The first lengths[n] keys of each image; where causal, as if the last of them were the last query's own.
absl::StatusOr<Value> ValidKeys(Call& call, int64_t queries, int64_t keys, bool causal) {
  const Value& lengths = call.operand(kLengths);
  if (!causal) return PaddingMask(call, lengths, keys);
  ASSIGN_OR_RETURN(Tensor needed, ChargedTensor(call, lengths.type().dtype, {queries, keys}));
  for (int64_t i = 0; i < queries * keys; ++i) needed.Set(i, static_cast<double>(i % keys - i / keys + queries));
  const Value least = Builder::Constant(call.name() + ".needed", std::move(needed));
  ASSIGN_OR_RETURN(const Value column, call.EmitHelper("lengths", "unsqueeze", {lengths}, {{"dims", Ints{1, 2, 3}}}));
  return call.EmitHelper("causal_keys", "le", {least, column});
}

// The mask, which may be shorter than the keys: those behind are masked.
absl::Status ReadMask(Call& call, int64_t keys, Attention* attention) {
  if (!call.has(kMask)) return absl::OkStatus();
  Value mask = call.operand(kMask);
  const int rank = mask.type().rank();
  const bool is_bool = mask.type().dtype == DType::kBool;
  if (rank < 1 || mask.shape().back() > keys) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 3: found ", ToString(mask.type()), ", wanted a mask of at most ", keys, " keys"));
  }
  if (mask.shape().back() < keys && mask.shape().back() != 1) {
    Ints pads(2 * rank, 0);
    pads.back() = keys - mask.shape().back();
    const double value = is_bool ? 0 : mask.type().dtype == DType::kF16 ? -65504.0 : -3e38;
    ASSIGN_OR_RETURN(mask, call.EmitHelper("mask", "pad", {mask}, {{"pads", pads}, {"value", value}}));
  }
  (is_bool ? attention->allowed : attention->bias) = mask;
  return absl::OkStatus();
}

absl::Status ReadPrecision(const Call& call, Attention* attention) {
  if (!call.HasAttribute("softmax_precision")) return absl::OkStatus();
  const int64_t stated = call.Int("softmax_precision", 1);
  absl::StatusOr<DType> dtype = ToDType(stated < 0 || stated > 255 ? -1 : static_cast<int>(stated));
  if (!dtype.ok()) return Annotate(dtype.status(), "attribute 'softmax_precision'");
  if (!IsFloat(*dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'softmax_precision': found ", DTypeName(*dtype), ", wanted a float"));
  }
  attention->precision = *dtype;
  return absl::OkStatus();
}

// Output 3: the step that the mode names.
absl::Status SetStep(Call& call, const Attention& attention, const AttentionSteps& steps) {
  const bool masked = attention.allowed.present() || attention.is_causal;
  const int64_t mode = call.Int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'qk_matmul_output_mode': found ", mode, ", wanted 0, 1, 2 or 3"));
  }
  if (mode == 2 && masked) {
    return absl::UnimplementedError("found qk_matmul_output_mode = 2 with keys that are masked, wanted 0, 1 or 3");
  }
  const Value* const values[] = {&steps.products, &steps.capped, &steps.biased, &steps.weights};
  call.Set(3, *values[mode]);
  return absl::OkStatus();
}

// In the standard's order: the cap before the mask, whose rows without a key give 0.
absl::Status ConvertAttention(Call& call) {
  RETURN_IF_ERROR(CheckPast(call));
  ASSIGN_OR_RETURN(const bool causal, call.Flag("is_causal", false));
  Attention attention;
  RETURN_IF_ERROR(ReadHeads(call, &attention));
  if (attention.query.type().rank() != 4 || attention.key.type().rank() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("found queries ", ToString(call.type(kQuery)), " and keys ",
                                                   ToString(call.type(kKey)), ", wanted rank 3 or 4"));
  }
  attention.scale = call.Float("scale", 1 / std::sqrt(static_cast<double>(attention.query.shape()[3])));
  attention.softcap = call.Float("softcap", 0);
  RETURN_IF_ERROR(ReadPrecision(call, &attention));
  const int64_t queries = attention.query.shape()[2], keys = attention.key.shape()[2];
  RETURN_IF_ERROR(ReadMask(call, keys, &attention));
  Value valid;
  if (call.has(kLengths)) {
    ASSIGN_OR_RETURN(valid, ValidKeys(call, queries, keys, causal));
  } else if (causal && call.has(kPastKey)) {
    ASSIGN_OR_RETURN(valid, CausalMask(call, queries, keys, call.shape(kPastKey)[2]));
  } else {
    attention.is_causal = causal;
  }
  ASSIGN_OR_RETURN(attention.allowed, BothAllowed(call, "allowed", attention.allowed, valid));
  Value result;
  if (call.wants(3)) {
    ASSIGN_OR_RETURN(const AttentionSteps steps, EmitAttentionSteps(call, attention));
    RETURN_IF_ERROR(SetStep(call, attention, steps));
    result = steps.result;
  } else {
    ASSIGN_OR_RETURN(result, EmitAttention(call, attention));
  }
  if (call.wants(1)) call.Set(1, attention.key);
  if (call.wants(2)) call.Set(2, attention.value);
  if (call.rank(kQuery) == 4) return call.Result("identity", {result});
  ASSIGN_OR_RETURN(Value rows, MergeHeads(call, result));
  call.Set(0, std::move(rows));
  return absl::OkStatus();
}

// The input is [N, S, heads * D] or [N, heads, S, D]; the caches hold a row for each position, or for each place of the
// input.
absl::Status ConvertRotaryEmbedding(Call& call) {
  ASSIGN_OR_RETURN(const bool interleaved, call.Flag("interleaved", false));
  const int rank = call.rank(0);
  const int64_t heads = call.Int("num_heads", 0), turned = call.Int("rotary_embedding_dim", 0);
  Rotation rotation{call.operand(0), call.operand(1), call.operand(2), interleaved};
  if ((rank != 3 && rank != 4) || (rank == 3 && (heads < 1 || call.shape(0)[2] % heads != 0))) {
    return absl::InvalidArgumentError(absl::StrCat("found ", ToString(call.type(0)), " for ", heads,
                                                   " heads, wanted [N, heads, S, D] or [N, S, heads * D]"));
  }
  if (rank == 3) {
    ASSIGN_OR_RETURN(rotation.x, call.EmitHelper("heads", "reshape", {rotation.x},
                                                 {{"shape", Ints{0, 0, heads, call.shape(0)[2] / heads}}}));
  }
  const char* const names[] = {"cosines", "sines"};
  Value* const caches[] = {&rotation.cosines, &rotation.sines};
  for (int i = 0; i < 2; ++i) {
    if (call.has(3)) {
      ASSIGN_OR_RETURN(*caches[i], call.EmitHelper(absl::StrCat(names[i], ".rows"), "index_select",
                                                   {*caches[i], call.operand(3)}, {{"dim", 0}}));
    }
    if (caches[i]->type().rank() != 3) {
      return absl::InvalidArgumentError(absl::StrCat("found ", names[i], " ", ToString(caches[i]->type()),
                                                     " for the places, wanted [N, S, half a head]"));
    }
    const Ints axis = {rank == 3 ? 2 : 1};
    ASSIGN_OR_RETURN(*caches[i], call.EmitHelper(names[i], "unsqueeze", {*caches[i]}, {{"dims", axis}}));
  }
  const int64_t wanted = turned > 0 ? turned : rotation.x.shape()[3];
  if (rotation.cosines.shape()[3] * 2 != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("found cosines ", ToString(call.type(1)), " to turn ", wanted,
                                                   " elements of each head, wanted half as many"));
  }
  ASSIGN_OR_RETURN(const Value y, EmitRotation(call, rotation));
  if (rank == 4) return call.Result("identity", {y});
  return call.Result("reshape", {y}, {{"shape", Ints{0, 0, call.shape(0)[2]}}});
}

constexpr char kAttention[] =
    "is_causal=INT kv_num_heads=INT q_num_heads=INT qk_matmul_output_mode=INT scale=FLOAT softcap=FLOAT "
    "softmax_precision=INT";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"Attention", 23, {3, 7}, {1, 4}, kAttention, ConvertAttention},
      {"RotaryEmbedding",
       23,
       {3, 4},
       {1, 1},
       "interleaved=INT num_heads=INT rotary_embedding_dim=INT",
       ConvertRotaryEmbedding},
  });
}

}  // namespace fuselage::onnx::converters::attention
