// Quantizes and dequantizes of a graph that was lowered or not: a graph that was lowered in part can be lowered
// further.
#ifndef FUSELAGE_PASSES_LOWER_CODES_H_
#define FUSELAGE_PASSES_LOWER_CODES_H_

#include "ir/graph.h"

namespace fuselage::lower {

inline bool IsQuantize(const ir::Node& node) { return node.IsOp("quantize") || node.IsOp("int8.quantize"); }
inline bool IsDequantize(const ir::Node& node) { return node.IsOp("dequantize") || node.IsOp("int8.dequantize"); }

// u8 or i8 with per-tensor parameters.
bool HasCodes(const ir::Node& node);
bool SameCodes(const ir::Node& a, const ir::Node& b);

// The codes that `dequantize` reads by their own parameters; null where it reads them by others, or per axis.
ir::Node* CodesOrNull(const ir::Node& dequantize);

}  // namespace fuselage::lower

#endif  // FUSELAGE_PASSES_LOWER_CODES_H_
