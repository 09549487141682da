// Walks a serialized ONNX message before protobuf builds it. Protobuf says only that parsing failed;
// this says where, bounds what parsing will allocate, and leaves the weights where they are: protobuf would copy them.
// Source: protobuf.dev/programming-guides/encoding.
#ifndef FUSELAGE_FRONTEND_ONNX_WIRE_H_
#define FUSELAGE_FRONTEND_ONNX_WIRE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/onnx/files.h"
#include "google/protobuf/message.h"
#include "ir/base/budget.h"
#include "ir/base/hash_map.h"

namespace fuselage::onnx {

inline constexpr int kMaxSubgraphDepth = 8;

struct ByteRange {
  int64_t offset = 0, size = 0;
};

// How to parse a message. Weights are the `raw_data` of a model's initializers, and of a tensor that is the message.
// Those in attributes are not among them: nodes of functions are copied.
struct WirePlan {
  enum Kind {
    kFields,   // Protobuf parses `range` into the innermost message that is open.
    kEnter,    // Opens its message `field`.
    kLeave,    // Closes it.
    kRawData,  // `range` is its raw_data.
  };
  struct Step {
    Kind kind;
    ByteRange range;
    const google::protobuf::FieldDescriptor* field = nullptr;
  };
  std::vector<Step> steps;
  int64_t cost = 0;  // Bytes that the parsed message will occupy, from above.
};

// Errors: InvalidArgument with path and offset ("graph.node[3].attribute[0]: at byte 120 ..."); ResourceExhausted above
// kMostImportedNodes or kMaxSubgraphDepth; Unavailable where `bytes` cannot be read.
absl::StatusOr<WirePlan> ScanWire(const ByteSource& bytes, const google::protobuf::Descriptor& message);

// The weights that are not in their TensorProto, but where it was parsed from.
using RawData = HashMap<const google::protobuf::Message*, ByteRange>;

// Protobuf's parser without its 64 MiB limit, on bytes that ScanWire has passed. Charges plan.cost, and for a while
// what protobuf reads at once.
absl::StatusOr<RawData> ParseWire(const ByteSource& bytes, const WirePlan& plan, google::protobuf::Message* message,
                                  Budget* budget);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_WIRE_H_
