// Functions of bytes: what elementwise operators make of an image, say, before it is quantized.
#ifndef FUSELAGE_IR_MATCH_BYTES_H_
#define FUSELAGE_IR_MATCH_BYTES_H_

#include <vector>

#include "ir/graph.h"

namespace fuselage::match {

// The values from a `to` of u8 values, f32, to the one that `node` reads, where all in between are elementwise
// operators of one value, and constants, and have the result's shape. Empty where that is not so.
std::vector<ir::Node*> ChainFromBytes(const ir::Node& node);

}  // namespace fuselage::match

#endif  // FUSELAGE_IR_MATCH_BYTES_H_
