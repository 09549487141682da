#include "harness/report/table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/base/check.h"

namespace fuselage::report {
namespace {

std::string Padded(const std::string& text, size_t width, Align align) {
  const std::string fill(width - text.size(), ' ');
  return align == Align::kLeft ? text + fill : fill + text;
}

void AppendLine(std::string line, std::string* out) {
  line.erase(line.find_last_not_of(' ') + 1);
  absl::StrAppend(out, line, "\n");
}

}  // namespace

void Table::AddRow(std::vector<std::string> cells) {
  FUSELAGE_CHECK(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = Escaped(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::ToString() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(columns_[i].title.size());
    for (const auto& row : rows_) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out = title_ + "\n";
  std::string header, rule;
  for (size_t i = 0; i < columns_.size(); ++i) {
    absl::StrAppend(&header, i == 0 ? "" : "  ", Padded(columns_[i].title, widths[i], columns_[i].align));
    absl::StrAppend(&rule, i == 0 ? "" : "  ", std::string(widths[i], '-'));
  }
  AppendLine(header, &out);
  AppendLine(rule, &out);
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&line, i == 0 ? "" : "  ", Padded(row[i], widths[i], columns_[i].align));
    }
    AppendLine(line, &out);
  }
  return out;
}

std::string Escaped(absl::string_view text) {
  std::string out;
  for (unsigned char c : text) {
    if (c < 0x20 || c >= 0x7f) {
      absl::StrAppendFormat(&out, "\\x%02x", c);
    } else {
      out.push_back(static_cast<char>(c));
    }
  }
  return out;
}

std::string Shortened(absl::string_view text, int width) {
  const size_t limit = static_cast<size_t>(width);
  if (text.size() <= limit) return std::string(text);
  std::string brief;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('/', begin), text.size() - 1) + 1;
    const absl::string_view part = text.substr(begin, end - begin), rest = text.substr(end);
    const size_t length = part.size() - 1;
    const bool repeated =
        length > 0 && absl::StartsWith(rest, part.substr(0, length)) && absl::StartsWith(rest.substr(length), ".");
    if (!repeated) absl::StrAppend(&brief, part);
    begin = end;
  }
  if (brief.size() <= limit) return brief;
  const size_t head = (limit - 2) / 2, tail = limit - 2 - head;
  return absl::StrCat(brief.substr(0, head), "..", brief.substr(brief.size() - tail));
}

std::string Number(double value, int decimals) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return absl::StrFormat("%.*f", decimals, value);
}

std::string Number(const std::optional<double>& value, int decimals) {
  return value.has_value() ? Number(*value, decimals) : "-";
}

std::string Megabytes(int64_t bytes) {
  if (bytes < 100'000) return absl::StrFormat("%.1f kB", static_cast<double>(bytes) / 1e3);
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace fuselage::report
