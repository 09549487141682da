#include "frontend/onnx/wire.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "ir/base/budget.h"
#include "ir/base/status.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

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

  absl::Status Message(const Descriptor& message, size_t end, int depth, int graphs) {
    cost_ += kMessageBytes;
    if (depth > kMaxDepth) return TooMuch(absl::StrCat("messages nested deeper than ", kMaxDepth));
    if (&message == ::onnx::GraphProto::descriptor() && ++graphs > kMaxSubgraphDepth + 1) {
      return TooMuch(absl::StrCat("subgraphs nested deeper than ", kMaxSubgraphDepth));
    }
    if (&message == ::onnx::NodeProto::descriptor() && ++nodes_ > kMostImportedNodes)
      return TooMuch(absl::StrCat("more than ", kMostImportedNodes, " nodes"));
    absl::InlinedVector<int, 32> seen(message.field_count(), 0);
    while (position_ < end) {
      const size_t start = position_;
      uint64_t tag;
      RETURN_IF_ERROR(Varint(end, &tag));
      const uint64_t number = tag >> 3;
      if (number == 0 || number > kLargestFieldNumber) return Bad(start, absl::StrCat("field number ", number));
      const FieldDescriptor* field = message.FindFieldByNumber(static_cast<int>(number));
      path_.push_back({field, static_cast<int>(number), field == nullptr ? 0 : seen[field->index()]++});
      RETURN_IF_ERROR(Value(field, static_cast<int>(tag & 7), start, end, depth, graphs));
      path_.pop_back();
    }
    return absl::OkStatus();
  }

  int64_t cost() const { return cost_; }

 private:
  absl::Status Value(const FieldDescriptor* field, int wire_type, size_t start, size_t end, int depth, int graphs) {
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
    if (field != nullptr && field->message_type() != nullptr) {
      return Message(*field->message_type(), field_end, depth + 1, graphs);
    }
    if (field != nullptr && field->is_packable()) {
      switch (field->type()) {
        case FieldDescriptor::TYPE_FLOAT: return Fixed(4, field_end);
        case FieldDescriptor::TYPE_DOUBLE: return Fixed(8, field_end);
        default: return Varints(field_end);
      }
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
        absl::StrAppend(&place, step.field->name());
        if (step.field->is_repeated()) absl::StrAppend(&place, "[", step.index, "]");
      }
    }
    return place.empty() ? place : place + ": ";
  }

  absl::string_view bytes_;
  size_t position_ = 0;
  int64_t cost_ = 0;
  int64_t nodes_ = 0;
  struct Step {
    const FieldDescriptor* field;
    int number, index;
  };
  std::vector<Step> path_;
};

}  // namespace

absl::StatusOr<int64_t> ScanWire(absl::string_view bytes, const Descriptor& message) {
  if (bytes.size() > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("found ", bytes.size(),
                                                   " bytes, wanted less than 2 GiB, the limit of protobuf: store the "
                                                   "weights as external data"));
  }
  Scanner scanner(bytes);
  RETURN_IF_ERROR(scanner.Message(message, bytes.size(), 0, 0));
  return scanner.cost();
}

absl::Status ParseWire(absl::string_view bytes, google::protobuf::Message* message) {
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
