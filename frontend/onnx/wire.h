// Walks a serialized ONNX message before protobuf builds it. Protobuf says only that parsing failed;
// this says where, and bounds what parsing will allocate.
// Source: protobuf.dev/programming-guides/encoding.
#ifndef FUSELAGE_FRONTEND_ONNX_WIRE_H_
#define FUSELAGE_FRONTEND_ONNX_WIRE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace fuselage::onnx {

inline constexpr int kMaxSubgraphDepth = 8;

// Bytes that parsing `bytes` as `message` will allocate, from above. Errors: InvalidArgument with path and offset
// ("graph.node[3].attribute[0]: at byte 120 ..."); ResourceExhausted above kMostImportedNodes or kMaxSubgraphDepth.
absl::StatusOr<int64_t> ScanWire(absl::string_view bytes, const google::protobuf::Descriptor& message);

// Protobuf's parser without its 64 MiB limit, on bytes that ScanWire has passed.
absl::Status ParseWire(absl::string_view bytes, google::protobuf::Message* message);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_WIRE_H_
