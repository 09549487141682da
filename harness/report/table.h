// A plain table: aligned columns, two spaces between them, a rule below the header.
#ifndef FUSELAGE_HARNESS_REPORT_TABLE_H_
#define FUSELAGE_HARNESS_REPORT_TABLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fuselage::report {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
};

class Table {
 public:
  Table(std::string title, std::vector<Column> columns) : title_(std::move(title)), columns_(std::move(columns)) {}

  // As many cells as columns. Control characters in a cell come out escaped.
  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // The title, the header, a rule, the rows; every line ends in "\n" and has no trailing spaces.
  std::string ToString() const;

 private:
  std::string title_;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Control characters, DEL and bytes that are not ASCII become \xNN: a name from a model must not drive the terminal.
std::string Escaped(absl::string_view text);

// At most `width` characters. A longer path loses the parts that the next one repeats: "/features.4/block.0.1" of
// "/features/features.4/block/block.0/block.0.1"; what is longer still has ".." in the middle.
std::string Shortened(absl::string_view text, int width);

std::string Number(double value, int decimals);
std::string Number(const std::optional<double>& value, int decimals);  // "-" where there is none.
std::string Megabytes(int64_t bytes);                                  // "11.2 MB", "37.9 kB": decimal.

}  // namespace fuselage::report

#endif  // FUSELAGE_HARNESS_REPORT_TABLE_H_
