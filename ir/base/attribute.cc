#include "ir/base/attribute.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ir/base/quant_params.h"

namespace fuselage {
namespace {

std::string FloatText(double value) {
  std::string text = ShortestText(value);
  if (text.find_first_of(".eEn") == std::string::npos) text += ".0";
  return text;
}

struct Printer {
  template <typename Never>  // Attribute's.
  std::string operator()(const Never&) const {
    return "";
  }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return absl::StrCat(v); }
  std::string operator()(double v) const { return FloatText(v); }
  std::string operator()(const std::string& v) const { return Quoted(v); }
  std::string operator()(DType v) const { return std::string(DTypeName(v)); }
  template <typename T>
  std::string operator()(const std::vector<T>& list) const {
    return absl::StrCat(
        "[", absl::StrJoin(list, ", ", [this](std::string* out, const T& v) { out->append((*this)(v)); }), "]");
  }
};

}  // namespace

absl::string_view AttributeKindName(AttributeKind kind) {
  constexpr absl::string_view kNames[] = {"bool", "int", "float", "string", "dtype", "ints", "floats", "strings"};
  return kNames[static_cast<int>(kind)];
}

std::string Attribute::ToString() const { return std::visit(Printer(), value_); }

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (unsigned char c : text) {
    switch (c) {
      case '"': quoted += "\\\""; break;
      case '\\': quoted += "\\\\"; break;
      case '\n': quoted += "\\n"; break;
      case '\t': quoted += "\\t"; break;
      default:
        if (c < 0x20 || c == 0x7f) {
          absl::StrAppendFormat(&quoted, "\\x%02x", c);
        } else {
          quoted += static_cast<char>(c);
        }
    }
  }
  return quoted + "\"";
}

}  // namespace fuselage
