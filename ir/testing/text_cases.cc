#include "ir/testing/text_cases.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::testing {
namespace {

struct TextCase {
  std::string file;
  int line = 0;  // Its first line, from 1.
  std::string comment;
  std::string step, input, expected, error;
  bool unchanged = false;
  std::vector<std::string> remarks;
};

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  if (!in) {
    fprintf(stderr, "cannot read the case file %s\n", path.c_str());
    std::abort();
  }
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TextCase ParseCase(absl::string_view text, const std::string& file, int line) {
  TextCase result;
  result.file = file;
  result.line = line;
  bool after = false;
  for (absl::string_view row : absl::StrSplit(text, '\n')) {
    absl::string_view rest = row;
    if (absl::ConsumePrefix(&rest, "// step:")) {
      absl::StrAppend(&result.step, rest, "\n");
    } else if (absl::StartsWith(row, "// ----")) {
      after = true;
    } else if (absl::StartsWith(row, "// unchanged")) {
      result.unchanged = true;
    } else if (absl::ConsumePrefix(&rest, "// error:")) {
      result.error = std::string(absl::StripAsciiWhitespace(rest));
    } else if (absl::ConsumePrefix(&rest, "// remark:")) {
      result.remarks.emplace_back(absl::StripAsciiWhitespace(rest));
    } else if (absl::ConsumePrefix(&rest, "//")) {
      if (!after) absl::StrAppend(&result.comment, rest, "\n");
    } else if (!absl::StripAsciiWhitespace(row).empty()) {
      absl::StrAppend(after ? &result.expected : &result.input, row, "\n");
    }
  }
  return result;
}

std::vector<TextCase> ParseCases(const std::string& file) {
  std::vector<TextCase> cases;
  std::string block;
  int line = 1, first = 1;
  const std::string text = ReadFile(file);
  const auto flush = [&] {
    if (block.find("graph @") != std::string::npos) cases.push_back(ParseCase(block, file, first));
    block.clear();
    first = line + 1;
  };
  for (absl::string_view row : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(row, "// ====")) {
      flush();
    } else {
      absl::StrAppend(&block, row, "\n");
    }
    ++line;
  }
  flush();
  return cases;
}

bool Updating() { return std::getenv("FUSELAGE_UPDATE_CASES") != nullptr; }

// Rewrites the case's expected text in the file of the workspace; a new case has none yet.
void UpdateCase(const TextCase& test, const std::string& printed) {
  const std::string path = absl::StrCat(std::getenv("FUSELAGE_UPDATE_CASES"), "/", test.file);
  const std::string text = ReadFile(path);
  const std::string bar = "// ----\n";
  const size_t input = text.find(test.input), below = text.find(bar, input);
  const size_t at = below == std::string::npos ? below : text.find(test.expected, below + bar.size());
  ASSERT_NE(at, std::string::npos) << "the case is not in " << path << " as parsed; remove blank lines in it";
  std::ofstream(path) << text.substr(0, at) << printed << text.substr(at + test.expected.size());
}

void RunCase(const TextCase& test, const TextCaseHooks& hooks) {
  SCOPED_TRACE(absl::StrCat(test.file, ":", test.line, ":", test.comment));
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<ir::Graph> graph, ir::Parse(test.input, *hooks.ops, test.file));
  EXPECT_EQ(ir::Print(*graph), test.input) << "the input is not in canonical form";
  const std::unique_ptr<ir::Graph> before = graph->Clone();
  EXPECT_EQ(ir::Print(*before), ir::Print(*graph)) << "Clone is not a copy";

  absl::StatusOr<RewriteResult> result = hooks.rewrite(test.step, *graph);
  if (!test.error.empty()) {
    ASSERT_FALSE(result.ok()) << "wanted an error with '" << test.error << "'";
    EXPECT_THAT(std::string(result.status().message()), ::testing::HasSubstr(test.error));
    return;
  }
  ASSERT_OK(result);
  ASSERT_OK(graph->Verify());
  const std::string printed = ir::Print(*graph);
  EXPECT_EQ(result->changed, printed != ir::Print(*before)) << "the changed bit is wrong";

  const std::string& expected = test.unchanged ? test.input : test.expected;
  if (Updating() && !test.unchanged) {
    if (printed != expected) UpdateCase(test, printed);
  } else {
    EXPECT_EQ(printed, expected);
  }
  if (printed.find("= data(") == std::string::npos) {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<ir::Graph> reparsed, ir::Parse(printed, *hooks.ops, "<result>"));
    EXPECT_EQ(ir::Print(*reparsed), printed) << "the result does not parse back to itself";
  }
  for (const std::string& remark : test.remarks) {
    EXPECT_THAT(result->remarks, ::testing::Contains(::testing::HasSubstr(remark)));
  }
  if (hooks.compare) {
    EXPECT_OK(hooks.compare(test.step, *before, *graph));
  }

  absl::StatusOr<RewriteResult> again = hooks.rewrite(test.step, *graph);
  ASSERT_OK(again);
  EXPECT_FALSE(again->changed) << "a second run changes the graph";
  EXPECT_EQ(ir::Print(*graph), printed);
}

class TextCaseTest : public ::testing::Test {
 public:
  TextCaseTest(TextCase test, TextCaseHooks hooks) : test_(std::move(test)), hooks_(std::move(hooks)) {}
  void TestBody() override { RunCase(test_, hooks_); }

 private:
  TextCase test_;
  TextCaseHooks hooks_;
};

}  // namespace

void RegisterTextCases(const std::vector<std::string>& files, const TextCaseHooks& hooks) {
  for (const std::string& file : files) {
    const std::string base = file.substr(file.rfind('/') + 1);
    for (const TextCase& test : ParseCases(file)) {
      const std::string name = absl::StrCat(base, ":", test.line);
      ::testing::RegisterTest("Cases", name.c_str(), nullptr, nullptr, test.file.c_str(), test.line,
                              [test, hooks]() -> TextCaseTest* { return new TextCaseTest(test, hooks); });
    }
  }
}

}  // namespace fuselage::testing
