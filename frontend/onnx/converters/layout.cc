// Operators that repeat elements or reorder them by reshapes and permutes.
#include <algorithm>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/fold.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"
#include "ir/batch.h"

namespace fuselage::onnx::converters::layout {
namespace {

using Ints = std::vector<int64_t>;

// reshape => permute => reshape. A batch on axis 0 that all three shapes keep is written as "copy", so that it can
// change.
absl::Status Regroup(Call& call, Ints groups, const Ints& dims, Ints shape) {
  const bool allow_zero = call.type(0).num_elements() == 0;
  if (!allow_zero) groups[0] = shape[0] = 0;
  ASSIGN_OR_RETURN(const Value grouped, call.EmitHelper("groups", "reshape", call.operands(),
                                                        {{"shape", groups}, {"allow_zero", allow_zero}}));
  ASSIGN_OR_RETURN(const Value permuted, call.EmitHelper("permute", "permute", {grouped}, {{"dims", dims}}));
  return call.Result("reshape", {permuted}, {{"shape", shape}, {"allow_zero", allow_zero}});
}

absl::StatusOr<int64_t> BlockSize(const Call& call) {
  const int64_t block = call.Int("blocksize", 0);
  if (block < 1 || block > INT16_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'blocksize': found ", block, ", wanted one in [1, 2^15)"));
  }
  if (call.rank(0) == 4) return block;
  return absl::InvalidArgumentError(absl::StrCat("found ", ToString(call.type(0)), ", wanted rank 4"));
}

// The size of axis 0 that a folded target says, where it is the batch and the input's is 1 or none; else 0.
int64_t BatchInFront(const Call& call, int64_t lead) {
  const auto& at_next_batch = call.operand(1).at_next_batch;
  if (at_next_batch == nullptr || lead < 0 || (lead == 0 && call.shape(0)[0] != 1)) return 0;
  const Tensor &now = *call.operand(1).TensorOrNull(), &next = (*at_next_batch)[0];
  bool others_stay = next.num_elements() == now.num_elements();
  for (int64_t i = 1; others_stay && i < now.num_elements(); ++i) others_stay = now.At(i) == next.At(i);
  return others_stay && now.At(0) >= 1 && next.At(0) == now.At(0) + 1 ? static_cast<int64_t>(now.At(0)) : 0;
}

// Broadcasts both ways: a 1 of the target keeps the input's size.
absl::Status ConvertExpand(Call& call) {
  const int rank = call.rank(0);
  const int64_t count = call.type(1).num_elements(), lead = count - rank;
  if (count > 64) return absl::UnimplementedError(absl::StrCat("found ", count, " dimensions, wanted at most 64"));
  Ints axes(count);  // Below 0: new ones.
  std::iota(axes.begin(), axes.end(), -lead);
  for (int64_t& axis : axes) axis = std::max<int64_t>(axis, -1);
  const int64_t batch = count == 0 ? 0 : BatchInFront(call, lead);
  ASSIGN_OR_RETURN(Ints shape,
                   batch > 0 ? call.ConstantInts(1, Call::Batch::kFollowed) : ConstantSizes(call, 1, axes));
  for (int64_t i = 0; i < count; ++i) {
    if (shape[i] < 0)
      return absl::InvalidArgumentError(absl::StrCat("input 1: found ", ToString(shape), ", wanted sizes >= 0"));
    // A size that repeats the input's is written as "keep": it may be the batch.
    if (axes[i] >= 0 && (shape[i] == 1 || shape[i] == call.shape(0)[axes[i]])) shape[i] = -1;
  }
  if (lead < 0) shape.insert(shape.begin(), -lead, -1);
  RETURN_IF_ERROR(call.Result("expand", {call.operand(0)}, {{"shape", shape}, {ir::kBatchAttribute, batch}}));
  const Value& target = call.operand(1);
  Value& result = call.results()[0];
  if (target.follows == nullptr || result.rows.count == target.follows) return absl::OkStatus();
  // As many rows as another value has.
  int64_t axis = 0;
  while (axis < count && (*target.at_next_row)[0].At(axis) == target.TensorOrNull()->At(axis)) ++axis;
  if (axis == count || result.rows.count != nullptr) return call.CheckFollowsRows(1);
  if (result.constant != nullptr) {
    ASSIGN_OR_RETURN(ir::Node * node, call.builder().NodeOf(result));
    result = {call.name(), nullptr, node};
  }
  result.rows = {target.follows, static_cast<int>(axis + std::max<int64_t>(0, -lead))};
  return absl::OkStatus();
}

// Each axis becomes two, of which the first is new and repeats.
absl::Status ConvertTile(Call& call) {
  ASSIGN_OR_RETURN(const Ints repeats, call.ConstantInts(1));
  const int rank = call.rank(0);
  const Shape& shape = call.shape(0);
  if (static_cast<int>(repeats.size()) != rank) {
    return absl::InvalidArgumentError(absl::StrCat("input 1: found ", repeats.size(), " numbers, wanted ", rank));
  }
  Ints apart, stretched, result;
  bool tiles = false;
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t repeat = repeats[axis];
    int64_t size;
    if (repeat < 0 || __builtin_mul_overflow(repeat, shape[axis], &size)) {
      return absl::InvalidArgumentError(absl::StrCat("input 1: found ", repeat, " for axis ", axis, " of ",
                                                     ToString(call.type(0)), ", wanted a number >= 0 that fits"));
    }
    tiles = tiles || repeat != 1;
    if (repeat != 1) {
      apart.push_back(1);
      stretched.push_back(repeat);
    }
    apart.push_back(shape[axis]);
    stretched.push_back(shape[axis]);
    result.push_back(size);
  }
  if (!tiles) return call.Result("identity", {call.operand(0)});
  bool allow_zero = call.type(0).num_elements() == 0 || std::count(repeats.begin(), repeats.end(), 0) > 0;
  if (repeats[0] == 1 && !allow_zero) {  // The batch is written as "copy", so that it can change.
    apart[0] = result[0] = 0;
    stretched[0] = -1;
  } else {
    allow_zero = true;
  }
  ASSIGN_OR_RETURN(const Value split, call.EmitHelper("apart", "reshape", {call.operand(0)},
                                                      {{"shape", apart}, {"allow_zero", allow_zero}}));
  ASSIGN_OR_RETURN(const Value more, call.EmitHelper("repeat", "expand", {split}, {{"shape", stretched}}));
  return call.Result("reshape", {more}, {{"shape", result}, {"allow_zero", allow_zero}});
}

absl::Status ConvertDepthToSpace(Call& call) {
  ASSIGN_OR_RETURN(const int64_t b, BlockSize(call));
  const std::string mode = call.String("mode", "DCR");
  const Shape& s = call.shape(0);
  if (s[1] % (b * b) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", ToString(call.type(0)), ", wanted a multiple of ", b * b, " channels"));
  }
  const int64_t c = s[1] / (b * b);
  const Ints shape = {s[0], c, s[2] * b, s[3] * b};
  if (mode == "DCR") return Regroup(call, {s[0], b, b, c, s[2], s[3]}, {0, 3, 4, 1, 5, 2}, shape);
  if (mode == "CRD") return Regroup(call, {s[0], c, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, shape);
  return absl::InvalidArgumentError(absl::StrCat("attribute 'mode': found ", Quote(mode), ", wanted DCR or CRD"));
}

absl::Status ConvertSpaceToDepth(Call& call) {
  ASSIGN_OR_RETURN(const int64_t b, BlockSize(call));
  const Shape& s = call.shape(0);
  if (s[2] % b != 0 || s[3] % b != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", ToString(call.type(0)), ", wanted multiples of ", b, " on the last two axes"));
  }
  return Regroup(call, {s[0], s[1], s[2] / b, b, s[3] / b, b}, {0, 3, 5, 1, 2, 4},
                 {s[0], s[1] * b * b, s[2] / b, s[3] / b});
}

// Crops or pads around the middle; of an odd difference, the larger half is at the end.
absl::Status ConvertCenterCropPad(Call& call) {
  const int rank = call.rank(0);
  Ints axes = call.Ints("axes");
  if (!call.HasAttribute("axes")) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) {
    ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
  }
  ASSIGN_OR_RETURN(const Ints sizes, ConstantSizes(call, 1, axes));
  if (sizes.size() != axes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("input 1: found ", sizes.size(), " sizes, wanted ", axes.size()));
  }
  Ints pads(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t own = call.shape(0)[axes[i]];
    if (sizes[i] < 0 || sizes[i] > INT32_MAX) {
      return absl::InvalidArgumentError(
          absl::StrCat("input 1: found the size ", sizes[i], ", wanted one in [0, 2^31)"));
    }
    const int64_t more = sizes[i] - own;
    pads[axes[i]] = more >= 0 ? more / 2 : -(-more / 2);
    pads[axes[i] + rank] = more - pads[axes[i]];
  }
  return call.Result("pad", {call.operand(0)}, {{"pads", pads}});
}

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"CenterCropPad", 18, {2, 2}, {1, 1}, "axes=INTS", ConvertCenterCropPad},
      {"DepthToSpace", 1, {1, 1}, {1, 1}, "blocksize=INT mode=STRING", ConvertDepthToSpace},
      {"Expand", 8, {2, 2}, {1, 1}, "", ConvertExpand},
      {"SpaceToDepth", 1, {1, 1}, {1, 1}, "blocksize=INT", ConvertSpaceToDepth},
      {"Tile", 6, {2, 2}, {1, 1}, "", ConvertTile},
  });
}

}  // namespace fuselage::onnx::converters::layout
