// A constant argument of an operator: typed, comparable, with one canonical text.
#ifndef FUSELAGE_IR_BASE_ATTRIBUTE_H_
#define FUSELAGE_IR_BASE_ATTRIBUTE_H_

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/base/dtype.h"

namespace fuselage {

enum class AttributeKind { kBool, kInt, kFloat, kString, kDType, kInts, kFloats, kStrings };

absl::string_view AttributeKindName(AttributeKind kind);  // "bool", "int", "float", ..., "ints", "floats", "strings"

class Attribute {
 public:
  Attribute(bool value) : value_(value) {}                                 // NOLINT
  Attribute(int value) : value_(int64_t{value}) {}                         // NOLINT
  Attribute(int64_t value) : value_(value) {}                              // NOLINT
  Attribute(double value) : value_(value) {}                               // NOLINT
  Attribute(float value) : value_(double{value}) {}                        // NOLINT
  Attribute(const char* value) : value_(std::string(value)) {}             // NOLINT
  Attribute(std::string value) : value_(std::move(value)) {}               // NOLINT
  Attribute(DType value) : value_(value) {}                                // NOLINT
  Attribute(std::vector<int64_t> value) : value_(std::move(value)) {}      // NOLINT
  Attribute(std::vector<double> value) : value_(std::move(value)) {}       // NOLINT
  Attribute(std::vector<std::string> value) : value_(std::move(value)) {}  // NOLINT

  AttributeKind kind() const { return static_cast<AttributeKind>(value_.index()); }

  // Aborts where the kind is another: the verifier has checked attributes against the op's schema.
  bool as_bool() const { return std::get<bool>(value_); }
  int64_t as_int() const { return std::get<int64_t>(value_); }
  double as_float() const { return std::get<double>(value_); }
  const std::string& as_string() const { return std::get<std::string>(value_); }
  DType as_dtype() const { return std::get<DType>(value_); }
  const std::vector<int64_t>& as_ints() const { return std::get<std::vector<int64_t>>(value_); }
  const std::vector<double>& as_floats() const { return std::get<std::vector<double>>(value_); }
  const std::vector<std::string>& as_strings() const { return std::get<std::vector<std::string>>(value_); }

  // true, 3, 0.5, "text", f32, [1, 2], [0.5, 2.0], ["a"]. A float always shows a point, an exponent, inf or nan, so
  // that 1 and 1.0 differ. An empty list is [] of the kind that the schema says.
  std::string ToString() const;

  friend bool operator==(const Attribute& a, const Attribute& b) { return a.value_ == b.value_; }
  friend bool operator!=(const Attribute& a, const Attribute& b) { return !(a == b); }

 private:
  // libstdc++ (<variant>, __never_valueless) holds a variant of the others alone for never empty, and runs into the
  // index -1 of a copy whose allocation failed. With this one, which no attribute is, it looks first.
  struct Never {
    ~Never() {}
    bool operator==(const Never&) const { return true; }
  };

  std::variant<bool, int64_t, double, std::string, DType, std::vector<int64_t>, std::vector<double>,
               std::vector<std::string>, Never>
      value_;
};

// Sorted by name, so that printing and comparing need no further order.
using AttributeMap = std::map<std::string, Attribute, std::less<>>;

// A string in double quotes, with \" \\ \n \t \xNN escapes.
std::string Quoted(absl::string_view text);

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_ATTRIBUTE_H_
