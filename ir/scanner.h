// Reads the IR's text, token by token, and says where in it something is wrong. For parsers of texts like it.
#ifndef FUSELAGE_IR_SCANNER_H_
#define FUSELAGE_IR_SCANNER_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/op.h"

namespace fuselage::ir {

// The text and a position in it. `//` starts a comment.
class Scanner {
 public:
  Scanner(absl::string_view text, absl::string_view file) : text_(text), file_(file) {}

  void SkipSpace();
  bool AtEnd();
  char Peek();  // '\0' at the end.
  // Takes the token if it is next. A word ends where its name ends: "param" does not match "parameter".
  bool Accept(absl::string_view token);
  absl::Status Expect(absl::string_view token);

  absl::StatusOr<std::string> Name();    // Letters, digits, '_', '.', '/'.
  absl::StatusOr<std::string> Number();  // As written: digits, sign, point, exponent, inf, nan.
  absl::StatusOr<int64_t> Integer();
  absl::StatusOr<double> Float();
  absl::StatusOr<std::string> QuotedString();
  // Zero or more items between brackets, separated by commas.
  absl::Status List(absl::string_view open, absl::string_view close, absl::FunctionRef<absl::Status()> item);

  // InvalidArgument: "<file>:<line>:<column>: <what>, at '<what follows>'".
  absl::Status Error(absl::string_view what) const { return ErrorAt(position_, what); }
  absl::Status ErrorAt(size_t position, absl::string_view what) const;
  size_t position() const { return position_; }
  int64_t remaining() const { return static_cast<int64_t>(text_.size() - position_); }  // Characters.

 private:
  absl::string_view text_, file_;
  size_t position_ = 0;
};

// An attribute's value. `spec` settles the kind of an empty list; where it is null the literal's form decides.
absl::StatusOr<Attribute> ParseAttribute(Scanner& in, const AttributeSpec* spec);

}  // namespace fuselage::ir

#endif  // FUSELAGE_IR_SCANNER_H_
