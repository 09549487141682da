// The header of a .npy file: a magic, a version, a length, and the literal of a Python dictionary:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/npz/npz.h"
#include "ir/base/status.h"

namespace fuselage::npz {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr int kPrefix = 10;  // Version 1.0 has magic, version, and the length as u16.
constexpr int kAlignment = 64;
constexpr int kMostDimensions = 32;  // NumPy's NPY_MAXDIMS.

struct Descr {
  absl::string_view text;  // Little-endian.
  absl::string_view name;  // NumPy's, for messages.
  DType dtype;
};
constexpr Descr kDescrs[] = {
    {"|b1", "bool", DType::kBool},   {"|u1", "uint8", DType::kU8},    {"|i1", "int8", DType::kI8},
    {"<i2", "int16", DType::kI16},   {"<i4", "int32", DType::kI32},   {"<i8", "int64", DType::kI64},
    {"<f2", "float16", DType::kF16}, {"<f4", "float32", DType::kF32}, {"<f8", "float64", DType::kF64},
};

absl::Status Error(absl::string_view found, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("found ", found, ", wanted ", wanted));
}

// What is not printable becomes '?': the text comes from a file.
std::string Quoted(absl::string_view text) {
  std::string quoted = absl::StrCat("\"", text.substr(0, 40), "\"");
  for (char& c : quoted) c = c < ' ' || c > '~' ? '?' : c;
  return quoted;
}

absl::StatusOr<DType> DTypeOfDescr(absl::string_view text) {
  for (const Descr& descr : kDescrs) {
    if (text == descr.text) return descr.dtype;
  }
  const std::string found = absl::StrCat("elements of type ", Quoted(text));
  if (absl::StartsWith(text, ">")) return Error(found, "little-endian ones: a.astype(a.dtype.newbyteorder('<'))");
  if (absl::StartsWith(text, "|O")) return Error("Python objects", "an array of numbers");
  return Error(found, absl::StrCat("one of ", absl::StrJoin(kDescrs, ", ", [](std::string* out, const Descr& descr) {
                                     absl::StrAppend(out, descr.name);
                                   })));
}

// The few literals that a header holds.
class Literals {
 public:
  explicit Literals(absl::string_view text) : text_(text) {}

  absl::string_view rest() const { return text_; }
  bool Take(absl::string_view token) {
    while (absl::StartsWith(text_, " ")) text_.remove_prefix(1);
    if (!absl::StartsWith(text_, token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  absl::Status Expect(absl::string_view token) {
    if (Take(token)) return absl::OkStatus();
    return Error(absl::StrCat(Quoted(text_), " in the header"), absl::StrCat("\"", token, "\""));
  }

  absl::StatusOr<absl::string_view> String() {
    for (absl::string_view quote : {"'", "\""}) {
      if (!Take(quote)) continue;
      const size_t end = text_.find(quote);
      if (end == absl::string_view::npos) break;
      const absl::string_view value = text_.substr(0, end);
      text_.remove_prefix(end + 1);
      return value;
    }
    return Error(absl::StrCat(Quoted(text_), " in the header"), "a string");
  }

  absl::StatusOr<bool> Bool() {
    if (Take("True")) return true;
    if (Take("False")) return false;
    return Error(absl::StrCat(Quoted(text_), " in the header"), "True or False");
  }

  absl::StatusOr<Shape> Tuple() {
    RETURN_IF_ERROR(Expect("("));
    Shape shape;
    while (!Take(")")) {
      if (!shape.empty()) {
        RETURN_IF_ERROR(Expect(","));
        if (Take(")")) break;
      }
      static_cast<void>(Take(""));  // Spaces.
      const size_t digits = std::min(text_.find_first_not_of("0123456789"), text_.size());
      int64_t dim = 0;
      if (!absl::SimpleAtoi(text_.substr(0, digits), &dim) || shape.size() == kMostDimensions) {
        return Error(absl::StrCat("a shape with ", Quoted(text_)),
                     absl::StrCat("at most ", kMostDimensions, " whole numbers of at most 63 bits"));
      }
      shape.push_back(dim);
      text_.remove_prefix(digits);
    }
    return shape;
  }

 private:
  absl::string_view text_;
};

absl::StatusOr<TensorType> ParseDictionary(absl::string_view text) {
  Literals literals(text);
  std::optional<DType> dtype;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
  RETURN_IF_ERROR(literals.Expect("{"));
  while (!literals.Take("}")) {
    ASSIGN_OR_RETURN(const absl::string_view key, literals.String());
    RETURN_IF_ERROR(literals.Expect(":"));
    if (key == "descr" && !dtype.has_value()) {
      if (literals.Take("[")) return Error("a structured type", "an array of numbers");
      ASSIGN_OR_RETURN(const absl::string_view descr, literals.String());
      ASSIGN_OR_RETURN(dtype, DTypeOfDescr(descr));
    } else if (key == "fortran_order" && !fortran_order.has_value()) {
      ASSIGN_OR_RETURN(fortran_order, literals.Bool());
    } else if (key == "shape" && !shape.has_value()) {
      ASSIGN_OR_RETURN(shape, literals.Tuple());
    } else {
      return Error(absl::StrCat("the key ", Quoted(key), " in the header"), "descr, fortran_order and shape once each");
    }
    if (literals.Take(",")) continue;
    RETURN_IF_ERROR(literals.Expect("}"));
    break;
  }
  if (literals.rest().find_first_not_of(" \n") != absl::string_view::npos || !absl::EndsWith(text, "\n")) {
    return Error(absl::StrCat(Quoted(literals.rest()), " behind the header"), "spaces and a newline");
  }
  if (!dtype.has_value() || !fortran_order.has_value() || !shape.has_value()) {
    return Error("a header that lacks one", "descr, fortran_order and shape");
  }
  if (*fortran_order) return Error("Fortran order", "C order: numpy.ascontiguousarray(a)");
  TensorType type{*dtype, *std::move(shape), std::nullopt, Layout::kRowMajor};
  RETURN_IF_ERROR(CheckedNumElements(type.shape).status());
  return type;
}

}  // namespace

absl::StatusOr<Header> ParseHeader(absl::string_view bytes) {
  const auto byte = [&](int i) { return static_cast<int64_t>(static_cast<uint8_t>(bytes[i])); };
  if (bytes.size() < kPrefix || !absl::StartsWith(bytes, kMagic)) {
    return Error(absl::StrCat(bytes.size() < kPrefix ? "the end" : "other bytes"),
                 "the first ten bytes of a .npy file");
  }
  const int64_t major = byte(6);
  if (major < 1 || major > 3 || byte(7) != 0) {
    return Error(absl::StrCat("version ", major, ".", byte(7)), "1.0, 2.0 or 3.0 of the .npy format");
  }
  const int prefix = major == 1 ? kPrefix : kPrefix + 2;
  if (bytes.size() < prefix) return Error("the end in the header's length", "four bytes");
  int64_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (static_cast<int64_t>(bytes.size()) - prefix < length) {
    return Error(absl::StrCat("the end after ", bytes.size() - prefix, " bytes of the header"), absl::StrCat(length));
  }
  Header header;
  ASSIGN_OR_RETURN(header.type, ParseDictionary(bytes.substr(prefix, length)));
  header.size = prefix + length;
  return header;
}

std::string HeaderOf(const TensorType& type) {
  absl::string_view descr;
  for (const Descr& known : kDescrs) {
    if (known.dtype == type.dtype) descr = known.text;
  }
  std::string text = absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (",
                                  absl::StrJoin(type.shape, ", "), type.rank() == 1 ? ",), }" : "), }");
  // NumPy maps files, and so aligns the data.
  text.append(kAlignment - 1 - (kPrefix + text.size()) % kAlignment, ' ');
  text.push_back('\n');
  const char length[] = {static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return absl::StrCat(kMagic, absl::string_view("\x01\x00", 2), absl::string_view(length, 2), text);
}

}  // namespace fuselage::npz
