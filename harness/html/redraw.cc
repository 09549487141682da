#include "harness/html/redraw.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "harness/base/files.h"
#include "harness/base/output_folder.h"
#include "harness/html/html.h"
#include "ir/base/status.h"

namespace fuselage::html {
absl::StatusOr<Results> ReadResults(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, harness::ReadFile(path));
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  Results results;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, &results, options);
  if (!parsed.ok() || results.status().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no results.json: ", parsed.ok() ? "it has no status" : parsed.ToString()));
  }
  return results;
}

absl::StatusOr<std::string> Redraw(const std::string& results_path, const Results& results, const Results* before) {
  const std::string folder = std::filesystem::path(results_path).parent_path().string();
  harness::OutputFolder out(folder.empty() ? "." : folder);
  out.ReadList();
  RETURN_IF_ERROR(out.Write("report.html", Page(results, before)));
  return absl::StrCat(out.path(), "/report.html");
}

}  // namespace fuselage::html
