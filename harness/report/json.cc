#include "harness/report/json.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/base/check.h"
#include "ir/base/quant_params.h"

namespace fuselage::report {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void AppendMessage(const Message& message, int indent, std::string* out);

// JSON has no such numbers; protobuf's own mapping and Python's float() read these strings.
std::string JsonDouble(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return ShortestText(value);
}

// `index` >= 0: that element of a repeated field.
void AppendValue(const Message& message, const FieldDescriptor* field, int index, int indent, std::string* out) {
  const Reflection& reflection = *message.GetReflection();
  const bool repeated = index >= 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      absl::StrAppend(
          out, repeated ? reflection.GetRepeatedInt32(message, field, index) : reflection.GetInt32(message, field));
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      absl::StrAppend(
          out, repeated ? reflection.GetRepeatedInt64(message, field, index) : reflection.GetInt64(message, field));
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      absl::StrAppend(out, JsonDouble(repeated ? reflection.GetRepeatedDouble(message, field, index)
                                               : reflection.GetDouble(message, field)));
      return;
    case FieldDescriptor::CPPTYPE_BOOL:
      absl::StrAppend(
          out, (repeated ? reflection.GetRepeatedBool(message, field, index) : reflection.GetBool(message, field))
                   ? "true"
                   : "false");
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      absl::StrAppend(out, JsonString(repeated ? reflection.GetRepeatedString(message, field, index)
                                               : reflection.GetString(message, field)));
      return;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      AppendMessage(
          repeated ? reflection.GetRepeatedMessage(message, field, index) : reflection.GetMessage(message, field),
          indent, out);
      return;
    default: FUSELAGE_CHECK(false);
  }
}

void AppendField(const Message& message, const FieldDescriptor* field, int indent, std::string* out) {
  const Reflection& reflection = *message.GetReflection();
  if (!field->is_repeated()) {
    const bool absent = field->has_optional_keyword() && !reflection.HasField(message, field);
    if (absent) {
      absl::StrAppend(out, "null");
    } else {
      AppendValue(message, field, -1, indent, out);
    }
    return;
  }
  const int size = reflection.FieldSize(message, field);
  if (size == 0) {
    absl::StrAppend(out, "[]");
    return;
  }
  // Numbers stand on one line.
  const bool inner_lines =
      field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE || field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  const std::string line = inner_lines ? absl::StrCat("\n", std::string(indent + 2, ' ')) : "";
  absl::StrAppend(out, "[");
  for (int i = 0; i < size; ++i) {
    absl::StrAppend(out, i == 0 ? "" : inner_lines ? "," : ", ", line);
    AppendValue(message, field, i, indent + 2, out);
  }
  absl::StrAppend(out, inner_lines ? absl::StrCat("\n", std::string(indent, ' ')) : "", "]");
}

void AppendMessage(const Message& message, int indent, std::string* out) {
  const auto* descriptor = message.GetDescriptor();
  absl::StrAppend(out, "{");
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    absl::StrAppend(out, i == 0 ? "\n" : ",\n", std::string(indent + 2, ' '), JsonString(field->name()), ": ");
    AppendField(message, field, indent + 2, out);
  }
  absl::StrAppend(out, "\n", std::string(indent, ' '), "}");
}

// The length of the well-formed UTF-8 sequence at the start of `text` (RFC 3629); 0: there is none.
size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto continues = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if ((first & 0xf0) == 0xe0) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0, surrogate = first == 0xed && byte(1) >= 0xa0;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90, too_large = first == 0xf4 && byte(1) >= 0x90;
    return continues(1) && continues(2) && continues(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string ToJson(const Message& message) {
  std::string out;
  AppendMessage(message, 0, &out);
  return out + "\n";
}

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const unsigned char c = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      absl::StrAppend(&out, "\\ufffd");
    } else if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", text.substr(0, 1));
    } else if (c < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      absl::StrAppend(&out, text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + "\"";
}

}  // namespace fuselage::report
