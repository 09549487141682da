// An image network that takes bytes, as images are decoded, in place of floats that its caller makes of them: a quarter
// of the memory, and no float is made where it runs in INT8 (int8.lookup).
#ifndef FUSELAGE_COMPILER_BYTE_INPUT_H_
#define FUSELAGE_COMPILER_BYTE_INPUT_H_

#include <vector>

#include "absl/status/status.h"
#include "ir/graph.h"

namespace fuselage {

struct ByteInput {
  bool pixels = false;           // u8 [n, h, w, c]; else planes, u8 [n, c, h, w].
  std::vector<float> mean, std;  // None (0 and 1), one for all channels, or one each.
};

namespace compiler {

// The graph's only input, f32 or f16 [n, c, h, w], becomes one of bytes, whose first operators are (x / 255 - mean) /
// std. InvalidArgument: other inputs; usage: another number of values, a std that is not positive.
absl::Status TakeBytes(const ByteInput& bytes, ir::Graph* graph);

}  // namespace compiler
}  // namespace fuselage

#endif  // FUSELAGE_COMPILER_BYTE_INPUT_H_
