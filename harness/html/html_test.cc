#include "harness/html/html.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fuselage::html {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Pages of builds without D3 and dagre have no place for results.
class HtmlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (absl::StrContains(Page(Results()), "No report")) GTEST_SKIP() << "built without D3 and dagre";
  }
};

TEST_F(HtmlTest, EverythingIsInsideAndNothingElseMayRun) {
  Results results;
  results.set_config("resnet18");
  const std::string page = Page(results);
  EXPECT_THAT(page, HasSubstr("\"config\": \"resnet18\""));
  EXPECT_THAT(page, Not(AnyOf(HasSubstr("<script src="), HasSubstr("<link "), HasSubstr("<!-- results -->"),
                              HasSubstr("<!-- licences -->"), HasSubstr("unsafe-inline"))));
  EXPECT_THAT(page,
              HasSubstr("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-"));
  // A digest for each script that runs, one for the style; the data is in blocks that do not run.
  EXPECT_EQ(Count(page, "'sha256-"), Count(page, "<script>") + 1);
  EXPECT_EQ(Count(page, "<script type=\"application/json\""), 3);
  EXPECT_EQ(Count(page, "</script"), Count(page, "<script>") + 3);
  EXPECT_THAT(page, HasSubstr("Bostock")) << "D3's licence";
}

TEST_F(HtmlTest, HostileNamesAddNoTags) {
  const std::string quiet = Page(Results());
  Results results;
  for (const std::string name : {"</script><script>alert(1)</script>", "<!--<script>", "\"'>&lt;", "<!-- before -->",
                                 "<script src=\"main.js\"></script>"}) {
    results.set_config(name);
    results.add_variants()->set_name(name + std::string(10'000, 'x') + "\x1b[2J\xff");
    results.add_warnings(name);
  }
  for (const std::string& page : {Page(results), Page(results, &results)}) {
    EXPECT_EQ(Count(page, "<script"), Count(quiet, "<script"));
    EXPECT_EQ(Count(page, "</script"), Count(quiet, "</script"));
    EXPECT_EQ(Count(page, "<!--"), Count(quiet, "<!--"));
    EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cscript>alert(1)\\u003c/script>"));
  }
}

TEST_F(HtmlTest, TwoRunsSideBySide) {
  Results now, before;
  now.set_config("now");
  before.set_config("then");
  EXPECT_THAT(Page(now), HasSubstr("id=\"before\">null</script>"));
  const std::string page = Page(now, &before);
  EXPECT_THAT(page, HasSubstr("\"config\": \"now\""));
  EXPECT_THAT(page, HasSubstr("\"config\": \"then\""));
}

}  // namespace
}  // namespace fuselage::html
