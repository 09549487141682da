#include "harness/html/html.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "harness/explain/graph_diff.h"
#include "harness/html/assets.h"
#include "harness/report/json.h"
#include "ir/base/check.h"
#include "ir/base/sha256.h"

namespace fuselage::html {
namespace {

// What of page.html becomes what: the places are the page's own.
constexpr char kPolicyPlace[] = "content=\"default-src 'none'\"";
constexpr char kStylePlace[] = "<link rel=\"stylesheet\" href=\"style.css\">";
constexpr char kScriptPlace[] = "<script src=\"";
constexpr char kScriptPlaceEnd[] = "\"></script>";

constexpr char kNoScripts[] =
    "<!doctype html>\n<title>No report</title>\n<p>This build found no D3 and no dagre to draw results.json with "
    "(third_party/javascript); one that does draws it by <code>harness report results.json</code>.</p>\n";

absl::string_view AssetOrEmpty(absl::string_view name) {
  for (const Asset& asset : Assets()) {
    if (asset.name == name) return asset.text;
  }
  return "";
}

// A source of the Content-Security-Policy that allows this text (W3C CSP 3, sec. 2.3.1).
std::string HashSource(absl::string_view text) {
  Sha256 sha256;
  sha256.Update(text);
  return absl::StrCat(" 'sha256-", absl::Base64Escape(absl::HexStringToBytes(sha256.Finish())), "'");
}

// JSON in which no HTML parser finds a tag or a comment.
std::string DataBlock(const google::protobuf::Message& message) {
  return absl::StrReplaceAll(report::ToJson(message), {{"<", "\\u003c"}});
}

std::string HtmlText(absl::string_view text) { return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}}); }

void Replace(absl::string_view place, const std::string& text, std::string* page) {
  const size_t found = page->find(std::string(place));
  FUSELAGE_CHECK(found != std::string::npos);
  page->replace(found, place.size(), text);
}

}  // namespace

std::string Page(const Results& results, const Results* before) {
  absl::string_view rest = AssetOrEmpty("page.html");
  const absl::string_view style = AssetOrEmpty("style.css");
  std::string page, script_sources;
  for (size_t place; (place = rest.find(kScriptPlace)) != absl::string_view::npos;) {
    absl::StrAppend(&page, rest.substr(0, place));
    rest.remove_prefix(place + sizeof kScriptPlace - 1);
    const size_t end = rest.find(kScriptPlaceEnd);
    const absl::string_view script = AssetOrEmpty(rest.substr(0, end));
    if (script.empty()) return kNoScripts;
    FUSELAGE_CHECK(!absl::StrContains(script, "</script"));
    absl::StrAppend(&page, "<script>", script, "</script>");
    absl::StrAppend(&script_sources, HashSource(script));
    rest.remove_prefix(end + sizeof kScriptPlaceEnd - 1);
  }
  absl::StrAppend(&page, rest);
  std::string licences;
  for (const Asset& asset : Assets()) {
    if (absl::EndsWith(asset.name, ".copyright.txt")) absl::StrAppend(&licences, asset.text, "\n");
  }
  Replace(kPolicyPlace,
          absl::StrCat("content=\"default-src 'none'; script-src", script_sources, "; style-src", HashSource(style),
                       "; base-uri 'none'; form-action 'none'\""),
          &page);
  Replace(kStylePlace, absl::StrCat("<style>", style, "</style>"), &page);
  Replace("<!-- licences -->", HtmlText(licences), &page);
  Replace("<!-- before -->", before == nullptr ? "null" : DataBlock(*before), &page);
  Replace("<!-- differences -->", before == nullptr ? "null" : DataBlock(harness::DiffHistories(*before, results)),
          &page);
  Replace("<!-- results -->", DataBlock(results), &page);  // Last: names in it may look like a place.
  return page;
}

}  // namespace fuselage::html
