#include "frontend/onnx/wire.h"

#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "ir/base/budget.h"
#include "ir/base/status.h"

namespace fuselage::onnx {
namespace {

// The fields of onnx.proto that hold messages, packed numbers or much data. The schema is compiled without descriptors.
enum class Kind { kMessage, kVarints, kFixed32, kFixed64, kBytes };

struct Field {
  WireMessage parent;
  int number;
  const char* name;
  bool repeated;
  Kind kind;
  WireMessage child = WireMessage::kOther;
};

using M = WireMessage;
constexpr Field kFields[] = {
    {M::kModel, 7, "graph", false, Kind::kMessage, M::kGraph},
    {M::kModel, 8, "opset_import", true, Kind::kMessage, M::kOther},
    {M::kModel, 14, "metadata_props", true, Kind::kMessage, M::kOther},
    {M::kModel, 20, "training_info", true, Kind::kMessage, M::kTraining},
    {M::kModel, 25, "functions", true, Kind::kMessage, M::kFunction},
    {M::kTraining, 1, "initialization", false, Kind::kMessage, M::kGraph},
    {M::kTraining, 2, "algorithm", false, Kind::kMessage, M::kGraph},
    {M::kTraining, 3, "initialization_binding", true, Kind::kMessage, M::kOther},
    {M::kTraining, 4, "update_binding", true, Kind::kMessage, M::kOther},
    {M::kFunction, 7, "node", true, Kind::kMessage, M::kNode},
    {M::kFunction, 9, "opset_import", true, Kind::kMessage, M::kOther},
    {M::kGraph, 1, "node", true, Kind::kMessage, M::kNode},
    {M::kGraph, 2, "name", false, Kind::kBytes},
    {M::kGraph, 5, "initializer", true, Kind::kMessage, M::kTensor},
    {M::kGraph, 11, "input", true, Kind::kMessage, M::kValueInfo},
    {M::kGraph, 12, "output", true, Kind::kMessage, M::kValueInfo},
    {M::kGraph, 13, "value_info", true, Kind::kMessage, M::kValueInfo},
    {M::kGraph, 14, "quantization_annotation", true, Kind::kMessage, M::kAnnotation},
    {M::kGraph, 15, "sparse_initializer", true, Kind::kMessage, M::kSparse},
    {M::kAnnotation, 2, "quant_parameter_tensor_names", true, Kind::kMessage, M::kOther},
    {M::kNode, 1, "input", true, Kind::kBytes},
    {M::kNode, 2, "output", true, Kind::kBytes},
    {M::kNode, 3, "name", false, Kind::kBytes},
    {M::kNode, 4, "op_type", false, Kind::kBytes},
    {M::kNode, 5, "attribute", true, Kind::kMessage, M::kAttribute},
    {M::kAttribute, 1, "name", false, Kind::kBytes},
    {M::kAttribute, 4, "s", false, Kind::kBytes},
    {M::kAttribute, 5, "t", false, Kind::kMessage, M::kTensor},
    {M::kAttribute, 6, "g", false, Kind::kMessage, M::kGraph},
    {M::kAttribute, 7, "floats", true, Kind::kFixed32},
    {M::kAttribute, 8, "ints", true, Kind::kVarints},
    {M::kAttribute, 10, "tensors", true, Kind::kMessage, M::kTensor},
    {M::kAttribute, 11, "graphs", true, Kind::kMessage, M::kGraph},
    {M::kAttribute, 14, "tp", false, Kind::kMessage, M::kType},
    {M::kAttribute, 15, "type_protos", true, Kind::kMessage, M::kType},
    {M::kAttribute, 22, "sparse_tensor", false, Kind::kMessage, M::kSparse},
    {M::kAttribute, 23, "sparse_tensors", true, Kind::kMessage, M::kSparse},
    {M::kTensor, 1, "dims", true, Kind::kVarints},
    {M::kTensor, 3, "segment", false, Kind::kMessage, M::kOther},
    {M::kTensor, 4, "float_data", true, Kind::kFixed32},
    {M::kTensor, 5, "int32_data", true, Kind::kVarints},
    {M::kTensor, 7, "int64_data", true, Kind::kVarints},
    {M::kTensor, 8, "name", false, Kind::kBytes},
    {M::kTensor, 9, "raw_data", false, Kind::kBytes},
    {M::kTensor, 10, "double_data", true, Kind::kFixed64},
    {M::kTensor, 11, "uint64_data", true, Kind::kVarints},
    {M::kTensor, 13, "external_data", true, Kind::kMessage, M::kOther},
    {M::kSparse, 1, "values", false, Kind::kMessage, M::kTensor},
    {M::kSparse, 2, "indices", false, Kind::kMessage, M::kTensor},
    {M::kSparse, 3, "dims", true, Kind::kVarints},
    {M::kValueInfo, 1, "name", false, Kind::kBytes},
    {M::kValueInfo, 2, "type", false, Kind::kMessage, M::kType},
    {M::kType, 1, "tensor_type", false, Kind::kMessage, M::kTensorType},
    {M::kType, 4, "sequence_type", false, Kind::kMessage, M::kElementType},
    {M::kType, 5, "map_type", false, Kind::kMessage, M::kMapType},
    {M::kType, 8, "sparse_tensor_type", false, Kind::kMessage, M::kTensorType},
    {M::kType, 9, "optional_type", false, Kind::kMessage, M::kElementType},
    {M::kElementType, 1, "elem_type", false, Kind::kMessage, M::kType},
    {M::kMapType, 2, "value_type", false, Kind::kMessage, M::kType},
    {M::kTensorType, 2, "shape", false, Kind::kMessage, M::kShape},
    {M::kShape, 1, "dim", true, Kind::kMessage, M::kOther},
};

const Field* FindFieldOrNull(WireMessage parent, uint64_t number) {
  for (const Field& field : kFields) {
    if (field.parent == parent && static_cast<uint64_t>(field.number) == number) return &field;
  }
  return nullptr;
}

// ONNX nests four messages for each subgraph; a TypeProto may nest too.
constexpr int kMaxDepth = 80;

constexpr uint64_t kLargestFieldNumber = (1 << 29) - 1;

// Generous bounds of what one message, string or unpacked number costs once parsed.
constexpr int64_t kMessageBytes = 256;
constexpr int64_t kStringBytes = 64;
constexpr int64_t kNumberBytes = 16;

class Scanner {
 public:
  explicit Scanner(absl::string_view bytes) : bytes_(bytes) {}

  absl::Status Message(WireMessage message, size_t end, int depth, int graphs) {
    cost_ += kMessageBytes;
    if (depth > kMaxDepth) return TooMuch(absl::StrCat("messages nested deeper than ", kMaxDepth));
    if (message == M::kGraph && ++graphs > kMaxSubgraphDepth + 1) {
      return TooMuch(absl::StrCat("subgraphs nested deeper than ", kMaxSubgraphDepth));
    }
    if (message == M::kNode && ++nodes_ > kMostImportedNodes)
      return TooMuch(absl::StrCat("more than ", kMostImportedNodes, " nodes"));
    int seen[std::size(kFields)] = {};
    while (position_ < end) {
      const size_t start = position_;
      uint64_t tag;
      RETURN_IF_ERROR(Varint(end, &tag));
      const uint64_t number = tag >> 3;
      if (number == 0 || number > kLargestFieldNumber) return Bad(start, absl::StrCat("field number ", number));
      const Field* field = FindFieldOrNull(message, number);
      path_.push_back({field, static_cast<int>(number), field == nullptr ? 0 : seen[field - kFields]++});
      RETURN_IF_ERROR(Value(field, static_cast<int>(tag & 7), start, end, depth, graphs));
      path_.pop_back();
    }
    return absl::OkStatus();
  }

  int64_t cost() const { return cost_; }

 private:
  absl::Status Value(const Field* field, int wire_type, size_t start, size_t end, int depth, int graphs) {
    uint64_t value;
    switch (wire_type) {
      case 0: cost_ += kNumberBytes; return Varint(end, &value);
      case 1: cost_ += kNumberBytes; return Skip(8, end);
      case 5: cost_ += kNumberBytes; return Skip(4, end);
      case 2: break;
      default: return Bad(start, absl::StrCat("wire type ", wire_type));
    }
    RETURN_IF_ERROR(Varint(end, &value));
    if (value > end - position_) return Truncated(value, end);
    const size_t field_end = position_ + value;
    const Kind kind = field == nullptr ? Kind::kBytes : field->kind;
    switch (kind) {
      case Kind::kMessage: return Message(field->child, field_end, depth + 1, graphs);
      case Kind::kVarints: return Varints(field_end);
      case Kind::kFixed32: return Fixed(4, field_end);
      case Kind::kFixed64: return Fixed(8, field_end);
      case Kind::kBytes: break;
    }
    cost_ += kStringBytes + static_cast<int64_t>(value);
    position_ = field_end;
    return absl::OkStatus();
  }

  absl::Status Varints(size_t end) {
    while (position_ < end) {
      uint64_t value;
      cost_ += kNumberBytes;
      RETURN_IF_ERROR(Varint(end, &value));
    }
    return absl::OkStatus();
  }

  absl::Status Fixed(size_t size, size_t end) {
    if ((end - position_) % size != 0) {
      return Bad(position_, absl::StrCat(end - position_, " bytes of numbers of ", size, " bytes"));
    }
    cost_ += static_cast<int64_t>(end - position_) * 2;
    position_ = end;
    return absl::OkStatus();
  }

  absl::Status Varint(size_t end, uint64_t* value) {
    const size_t start = position_;
    *value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (position_ >= end) return Truncated(1, end);
      const uint8_t byte = static_cast<uint8_t>(bytes_[position_++]);
      if (shift < 64) *value |= static_cast<uint64_t>(byte & 127) << shift;
      if ((byte & 128) == 0) return absl::OkStatus();
    }
    return Bad(start, "a varint of more than 10 bytes");
  }

  absl::Status Skip(size_t size, size_t end) {
    if (size > end - position_) return Truncated(size, end);
    position_ += size;
    return absl::OkStatus();
  }

  absl::Status Truncated(uint64_t wanted, size_t end) const {
    return absl::InvalidArgumentError(absl::StrCat(Place(), "truncated at byte ", end, ": found ", end - position_,
                                                   " bytes from byte ", position_, " on, wanted ", wanted));
  }
  absl::Status Bad(size_t at, absl::string_view found) const {
    return absl::InvalidArgumentError(
        absl::StrCat(Place(), "found ", found, " at byte ", at, ", wanted a protobuf field"));
  }

  absl::Status TooMuch(absl::string_view found) const {
    return absl::ResourceExhaustedError(absl::StrCat(Place(), "found ", found, " at byte ", position_));
  }

  // "graph.node[3].attribute[0]: ", or "" at the top.
  std::string Place() const {
    std::string place;
    for (const Step& step : path_) {
      if (!place.empty()) place += '.';
      if (step.field == nullptr) {
        absl::StrAppend(&place, "field ", step.number);
      } else {
        absl::StrAppend(&place, step.field->name);
        if (step.field->repeated) absl::StrAppend(&place, "[", step.index, "]");
      }
    }
    return place.empty() ? place : place + ": ";
  }

  absl::string_view bytes_;
  size_t position_ = 0;
  int64_t cost_ = 0;
  int64_t nodes_ = 0;
  struct Step {
    const Field* field;
    int number, index;
  };
  std::vector<Step> path_;
};

}  // namespace

absl::StatusOr<int64_t> ScanWire(absl::string_view bytes, WireMessage message) {
  if (bytes.size() > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("found ", bytes.size(),
                                                   " bytes, wanted less than 2 GiB, the limit of protobuf: store the "
                                                   "weights as external data"));
  }
  Scanner scanner(bytes);
  RETURN_IF_ERROR(scanner.Message(message, bytes.size(), 0, 0));
  return scanner.cost();
}

absl::Status ParseWire(absl::string_view bytes, google::protobuf::MessageLite* message) {
  google::protobuf::io::ArrayInputStream array(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream input(&array);
  input.SetTotalBytesLimit(std::numeric_limits<int32_t>::max());
  input.SetRecursionLimit(kMaxDepth + 8);
  if (!message->ParsePartialFromCodedStream(&input) || !input.ConsumedEntireMessage()) {
    return absl::InvalidArgumentError(
        absl::StrCat("protobuf stopped at byte ", input.CurrentPosition(), " of ", bytes.size()));
  }
  return absl::OkStatus();
}

}  // namespace fuselage::onnx
