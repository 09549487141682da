#include "frontend/onnx/wire.h"

#include <algorithm>
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

// Where steps of their own parse the message around it, they parse this one: it is on the way from a model to its
// weights.
bool IsApart(const Descriptor& message) {
  return &message == schema::GraphProto::descriptor() || &message == schema::TensorProto::descriptor();
}

bool IsRawData(const FieldDescriptor& field) {
  return field.number() == schema::TensorProto::kRawDataFieldNumber &&
         field.containing_type() == schema::TensorProto::descriptor();
}

class Scanner {
 public:
  explicit Scanner(const ByteSource& bytes) : bytes_(bytes), window_(kWindow) {}

  // `apart`: steps of its own parse the message.
  absl::Status Message(const Descriptor& message, int64_t end, int depth, int graphs, bool apart) {
    plan_.cost += kMessageBytes;
    if (depth > kMaxDepth) return TooMuch(absl::StrCat("messages nested deeper than ", kMaxDepth));
    if (&message == schema::GraphProto::descriptor() && ++graphs > kMaxSubgraphDepth + 1) {
      return TooMuch(absl::StrCat("subgraphs nested deeper than ", kMaxSubgraphDepth));
    }
    if (&message == schema::NodeProto::descriptor() && ++nodes_ > kMostImportedNodes)
      return TooMuch(absl::StrCat("more than ", kMostImportedNodes, " nodes"));
    absl::InlinedVector<int, 32> seen(message.field_count(), 0);
    if (apart) fields_ = position_;
    while (position_ < end) {
      const int64_t start = position_;
      uint64_t tag;
      RETURN_IF_ERROR(Varint(end, &tag));
      const uint64_t number = tag >> 3;
      if (number == 0 || number > kLargestFieldNumber) return Bad(start, absl::StrCat("field number ", number));
      const FieldDescriptor* field = message.FindFieldByNumber(static_cast<int>(number));
      path_.push_back({field, static_cast<int>(number), field == nullptr ? 0 : seen[field->index()]++});
      RETURN_IF_ERROR(Value(field, static_cast<int>(tag & 7), start, end, depth, graphs, apart));
      path_.pop_back();
    }
    if (apart) AddFields(end);
    return absl::OkStatus();
  }

  WirePlan TakePlan() { return std::move(plan_); }

 private:
  static constexpr int64_t kWindow = 1 << 16;

  absl::Status Value(const FieldDescriptor* field, int wire_type, int64_t start, int64_t end, int depth, int graphs,
                     bool apart) {
    uint64_t value;
    switch (wire_type) {
      case 0: plan_.cost += kNumberBytes; return Varint(end, &value);
      case 1: plan_.cost += kNumberBytes; return Skip(8, end);
      case 5: plan_.cost += kNumberBytes; return Skip(4, end);
      case 2: break;
      default: return Bad(start, absl::StrCat("wire type ", wire_type));
    }
    RETURN_IF_ERROR(Varint(end, &value));
    if (value > static_cast<uint64_t>(end - position_)) return Truncated(value, end);
    const int64_t field_end = position_ + static_cast<int64_t>(value);
    if (field != nullptr && field->message_type() != nullptr) {
      const Descriptor& message = *field->message_type();
      if (!apart || !IsApart(message)) return Message(message, field_end, depth + 1, graphs, false);
      AddFields(start);
      plan_.steps.push_back({WirePlan::kEnter, {}, field});
      RETURN_IF_ERROR(Message(message, field_end, depth + 1, graphs, true));
      plan_.steps.push_back({WirePlan::kLeave, {}, nullptr});
      fields_ = position_;
      return absl::OkStatus();
    }
    if (apart && field != nullptr && IsRawData(*field)) {
      AddFields(start);
      plan_.steps.push_back({WirePlan::kRawData, {position_, field_end - position_}, nullptr});
      fields_ = position_ = field_end;
      return absl::OkStatus();
    }
    if (field != nullptr && field->is_packable()) {
      switch (field->type()) {
        case FieldDescriptor::TYPE_FLOAT: return Fixed(4, field_end);
        case FieldDescriptor::TYPE_DOUBLE: return Fixed(8, field_end);
        default: return Varints(field_end);
      }
    }
    plan_.cost += kStringBytes + static_cast<int64_t>(value);
    position_ = field_end;
    return absl::OkStatus();
  }

  // The fields of the message that is parsed apart, up to `end`, that no step parses yet.
  void AddFields(int64_t end) {
    if (end > fields_) plan_.steps.push_back({WirePlan::kFields, {fields_, end - fields_}, nullptr});
  }

  absl::Status Varints(int64_t end) {
    while (position_ < end) {
      uint64_t value;
      plan_.cost += kNumberBytes;
      RETURN_IF_ERROR(Varint(end, &value));
    }
    return absl::OkStatus();
  }

  absl::Status Fixed(int64_t size, int64_t end) {
    if ((end - position_) % size != 0) {
      return Bad(position_, absl::StrCat(end - position_, " bytes of numbers of ", size, " bytes"));
    }
    plan_.cost += (end - position_) * 2;
    position_ = end;
    return absl::OkStatus();
  }

  absl::Status Varint(int64_t end, uint64_t* value) {
    const int64_t start = position_;
    *value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (position_ >= end) return Truncated(1, end);
      if (position_ < begin_ || position_ >= filled_) RETURN_IF_ERROR(Fill());
      const uint8_t byte = window_[position_++ - begin_];
      if (shift < 64) *value |= static_cast<uint64_t>(byte & 127) << shift;
      if ((byte & 128) == 0) return absl::OkStatus();
    }
    return Bad(start, "a varint of more than 10 bytes");
  }

  // The window, from the position on.
  absl::Status Fill() {
    begin_ = position_;
    filled_ = std::min(begin_ + kWindow, bytes_.size());
    return bytes_.Read(begin_, filled_ - begin_, window_.data());
  }

  absl::Status Skip(int64_t size, int64_t end) {
    if (size > end - position_) return Truncated(size, end);
    position_ += size;
    return absl::OkStatus();
  }

  absl::Status Truncated(uint64_t wanted, int64_t end) const {
    return absl::InvalidArgumentError(absl::StrCat(Place(), "truncated at byte ", end, ": found ", end - position_,
                                                   " bytes from byte ", position_, " on, wanted ", wanted));
  }
  absl::Status Bad(int64_t at, absl::string_view found) const {
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

  const ByteSource& bytes_;
  std::vector<uint8_t> window_;  // What lies from begin_ to filled_.
  int64_t begin_ = 0, filled_ = 0;
  int64_t position_ = 0;
  int64_t fields_ = 0;  // See AddFields.
  int64_t nodes_ = 0;
  WirePlan plan_;
  struct Step {
    const FieldDescriptor* field;
    int number, index;
  };
  std::vector<Step> path_;
};

absl::Status MergeFields(const ByteSource& bytes, ByteRange range, google::protobuf::Message* message, Budget* budget) {
  RETURN_IF_ERROR(budget->Charge(range.size, "a part of the file"));
  std::string part(range.size, '\0');
  RETURN_IF_ERROR(bytes.Read(range.offset, range.size, part.data()));
  google::protobuf::io::ArrayInputStream array(part.data(), static_cast<int>(part.size()));
  google::protobuf::io::CodedInputStream input(&array);
  input.SetTotalBytesLimit(std::numeric_limits<int32_t>::max());
  input.SetRecursionLimit(kMaxDepth + 8);
  if (!message->MergePartialFromCodedStream(&input) || !input.ConsumedEntireMessage()) {
    return absl::InvalidArgumentError(
        absl::StrCat("protobuf stopped at byte ", range.offset + input.CurrentPosition(), " of ", bytes.size()));
  }
  budget->Release(range.size);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WirePlan> ScanWire(const ByteSource& bytes, const Descriptor& message) {
  if (bytes.size() > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("found ", bytes.size(),
                                                   " bytes, wanted less than 2 GiB, the limit of protobuf: store the "
                                                   "weights as external data"));
  }
  Scanner scanner(bytes);
  RETURN_IF_ERROR(scanner.Message(message, bytes.size(), 0, 0, true));
  return scanner.TakePlan();
}

absl::StatusOr<RawData> ParseWire(const ByteSource& bytes, const WirePlan& plan, google::protobuf::Message* message,
                                  Budget* budget) {
  RETURN_IF_ERROR(budget->Charge(plan.cost, "the parsed file"));
  RawData raw_data;
  std::vector<google::protobuf::Message*> open = {message};
  for (const auto& [kind, range, field] : plan.steps) {
    google::protobuf::Message* top = open.back();
    switch (kind) {
      case WirePlan::kEnter:
        open.push_back(field->is_repeated() ? top->GetReflection()->AddMessage(top, field)
                                            : top->GetReflection()->MutableMessage(top, field));
        break;
      case WirePlan::kLeave: open.pop_back(); break;
      case WirePlan::kRawData: raw_data[top] = range; break;
      case WirePlan::kFields: RETURN_IF_ERROR(MergeFields(bytes, range, top, budget)); break;
    }
  }
  return raw_data;
}

}  // namespace fuselage::onnx
