#include "ir/scanner.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fuselage::ir {
namespace {

bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/'; }

absl::StatusOr<Attribute> ParseScalar(Scanner& in) {
  if (in.Peek() == '"') {
    ASSIGN_OR_RETURN(std::string value, in.QuotedString());
    return Attribute(std::move(value));
  }
  if (in.Accept("true")) return Attribute(true);
  if (in.Accept("false")) return Attribute(false);
  ASSIGN_OR_RETURN(std::string word, in.Number());
  if (absl::StatusOr<DType> dtype = DTypeFromName(word); dtype.ok()) return Attribute(*dtype);
  int64_t integer;
  if (absl::SimpleAtoi(word, &integer)) return Attribute(integer);
  char* end;
  const double value = std::strtod(word.c_str(), &end);
  if (*end != '\0') return in.Error(absl::StrCat("wanted an attribute's value, found '", word, "'"));
  return Attribute(value);
}

absl::StatusOr<Attribute> ListOf(const Scanner& in, const std::vector<Attribute>& items, const AttributeSpec* spec) {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> strings;
  for (const Attribute& item : items) {
    if (item.kind() != items[0].kind()) return in.Error("a list of mixed kinds");
    switch (item.kind()) {
      case AttributeKind::kInt: ints.push_back(item.as_int()); break;
      case AttributeKind::kFloat: floats.push_back(item.as_float()); break;
      case AttributeKind::kString: strings.push_back(item.as_string()); break;
      default: return in.Error("a list of something other than integers, floats or strings");
    }
  }
  AttributeKind kind = AttributeKind::kInts;
  if (!items.empty()) {
    kind = !floats.empty() ? AttributeKind::kFloats : !strings.empty() ? AttributeKind::kStrings : kind;
  } else if (spec != nullptr) {
    kind = spec->kind;
  }
  if (kind == AttributeKind::kFloats) return Attribute(std::move(floats));
  if (kind == AttributeKind::kStrings) return Attribute(std::move(strings));
  return Attribute(std::move(ints));
}

}  // namespace

void Scanner::SkipSpace() {
  while (position_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[position_]))) {
      ++position_;
    } else if (text_.substr(position_, 2) == "//") {
      const size_t end = text_.find('\n', position_);
      position_ = end == absl::string_view::npos ? text_.size() : end;
    } else {
      return;
    }
  }
}

bool Scanner::AtEnd() {
  SkipSpace();
  return position_ == text_.size();
}

char Scanner::Peek() {
  SkipSpace();
  return position_ < text_.size() ? text_[position_] : '\0';
}

bool Scanner::Accept(absl::string_view token) {
  SkipSpace();
  if (text_.substr(position_, token.size()) != token) return false;
  // A word ends where its name ends: "param" does not match "parameter".
  if (IsNameChar(token.back()) && position_ + token.size() < text_.size() &&
      IsNameChar(text_[position_ + token.size()])) {
    return false;
  }
  position_ += token.size();
  return true;
}

absl::Status Scanner::Expect(absl::string_view token) {
  if (Accept(token)) return absl::OkStatus();
  return Error(absl::StrCat("wanted '", token, "'"));
}

absl::StatusOr<std::string> Scanner::Name() {
  SkipSpace();
  const size_t begin = position_;
  while (position_ < text_.size() && IsNameChar(text_[position_])) ++position_;
  if (position_ == begin) return Error("wanted a name");
  return std::string(text_.substr(begin, position_ - begin));
}

absl::StatusOr<std::string> Scanner::Number() {
  SkipSpace();
  const size_t begin = position_;
  if (position_ < text_.size() && (text_[position_] == '-' || text_[position_] == '+')) ++position_;
  while (position_ < text_.size() &&
         (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '.' ||
          ((text_[position_] == '-' || text_[position_] == '+') && (text_[position_ - 1] | 0x20) == 'e'))) {
    ++position_;
  }
  if (position_ == begin) return Error("wanted a number");
  return std::string(text_.substr(begin, position_ - begin));
}

absl::StatusOr<int64_t> Scanner::Integer() {
  ASSIGN_OR_RETURN(std::string number, Number());
  int64_t value;
  if (!absl::SimpleAtoi(number, &value)) return Error(absl::StrCat("wanted an integer, found '", number, "'"));
  return value;
}

absl::StatusOr<double> Scanner::Float() {
  ASSIGN_OR_RETURN(std::string number, Number());
  char* end;
  const double value = std::strtod(number.c_str(), &end);
  if (*end != '\0') return Error(absl::StrCat("wanted a number, found '", number, "'"));
  return value;
}

absl::Status Scanner::List(absl::string_view open, absl::string_view close, absl::FunctionRef<absl::Status()> item) {
  RETURN_IF_ERROR(Expect(open));
  if (Accept(close)) return absl::OkStatus();
  do {
    RETURN_IF_ERROR(item());
  } while (Accept(","));
  return Expect(close);
}

absl::StatusOr<std::string> Scanner::QuotedString() {
  RETURN_IF_ERROR(Expect("\""));
  std::string value;
  while (position_ < text_.size() && text_[position_] != '"') {
    char c = text_[position_++];
    if (c == '\\' && position_ < text_.size()) {
      c = text_[position_++];
      if (c == 'n') c = '\n';
      if (c == 't') c = '\t';
      if (c == 'x') {
        c = static_cast<char>(std::strtol(std::string(text_.substr(position_, 2)).c_str(), nullptr, 16));
        position_ = std::min(position_ + 2, text_.size());
      }
    }
    value += c;
  }
  RETURN_IF_ERROR(Expect("\""));
  return value;
}

absl::Status Scanner::ErrorAt(size_t position, absl::string_view what) const {
  int line = 1, column = 1;
  for (size_t i = 0; i < position && i < text_.size(); ++i) {
    column = text_[i] == '\n' ? 1 : column + 1;
    line += text_[i] == '\n';
  }
  const absl::string_view rest = text_.substr(std::min(position, text_.size()));
  const absl::string_view found = rest.substr(0, std::min<size_t>(rest.find('\n'), 20));
  return absl::InvalidArgumentError(
      absl::StrCat(file_, ":", line, ":", column, ": ", what, found.empty() ? "" : absl::StrCat(", at '", found, "'")));
}

absl::StatusOr<Attribute> ParseAttribute(Scanner& in, const AttributeSpec* spec) {
  if (in.Peek() == '[') {
    std::vector<Attribute> items;
    RETURN_IF_ERROR(in.List("[", "]", [&]() -> absl::Status {
      ASSIGN_OR_RETURN(Attribute item, ParseScalar(in));
      items.push_back(std::move(item));
      return absl::OkStatus();
    }));
    return ListOf(in, items, spec);
  }
  return ParseScalar(in);
}

}  // namespace fuselage::ir
