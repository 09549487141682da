// What scales and shifts the channels of a value: y = x * scale[c] + shift[c], as a learnable affine block behind an
// activation does, a batch norm, or an equalization.
#ifndef FUSELAGE_IR_MATCH_CHANNEL_AFFINE_H_
#define FUSELAGE_IR_MATCH_CHANNEL_AFFINE_H_

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace fuselage::match {

struct ChannelAffine {
  ir::Node* of = nullptr;           // x, [batch, channels, ...].
  std::vector<float> scale, shift;  // A value for each channel, finite.
};

// Where `node`, an elementwise op or a chain of such in one, adds, subtracts, multiplies by and divides by constants
// alone, of one value or of one for each channel, and its result has the shape of the one operand that is no constant.
// Such ops in front of it, which it alone reads, count in.
std::optional<ChannelAffine> ChannelAffineOf(const ir::Node& node);

// The conv2d with an activation that is no clamp, and without a residual, whose channels `node` alone reads, scales and
// shifts: in INT8 that is part of its rounding. Null: there is none.
const ir::Node* LayerInFrontOrNull(const ir::Node& node);

}  // namespace fuselage::match

#endif  // FUSELAGE_IR_MATCH_CHANNEL_AFFINE_H_
