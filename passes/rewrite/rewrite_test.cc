#include "passes/rewrite/rewrite.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/rewrite/rule.h"

namespace fuselage::rewrite {
namespace {

using ::testing::HasSubstr;

class RewriteTest : public ::testing::Test {
 protected:
  void SetUp() override { ops::RegisterAll(ops_); }

  std::string Error(const char* pattern, const char* replacement = "graph @r { %x = placeholder output(%x) }") {
    RewriteOptions::Rule rule;
    rule.set_name("r");
    rule.set_pattern(pattern);
    rule.set_replacement(replacement);
    return std::string(ParseRule(rule, ops_).status().message());
  }

  ir::OpRegistry ops_;
};

TEST_F(RewriteTest, ErrorsSayWhere) {
  EXPECT_THAT(Error("%x"), HasSubstr("rule \"r\" pattern:1:1: wanted 'graph'"));
  EXPECT_THAT(Error("graph @p {\n  %y = call relu(%x)"), HasSubstr("pattern:2:18: %x is not defined before its use"));
  EXPECT_THAT(Error("graph @p { %x = argument }"), HasSubstr("wanted placeholder, get_attr, call_function"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %y = call rectify(%x) output(%y) }"),
              HasSubstr("unknown operator 'rectify'"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %y = call relu(%x, slope=1.0) output(%y) }"),
              HasSubstr("relu has no attribute or parameter 'slope'"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %y = call_module linear(%x, weight=3) output(%y) }"),
              HasSubstr("parameter 'weight' takes a capture"));
  EXPECT_THAT(Error("graph @p { %x = placeholder output(%x) }"), HasSubstr("the output %x, wanted a call"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %z = call tanh(%x) %y = call relu(%x) output(%y) }"),
              HasSubstr("%z is not above the output"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %y = call relu(%x) output(%y, %x) }"),
              HasSubstr("2 outputs, wanted one"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %x = call relu(%x) output(%x) }"), HasSubstr("a second node %x"));
  const char* pattern = "graph @p { %x = placeholder %y = call clamp(%x, max=$m) output(%y) }";
  EXPECT_THAT(Error(pattern, "graph @r { %z = placeholder output(%z) }"),
              HasSubstr("replacement: %z is no placeholder or get_attr of the pattern"));
  EXPECT_THAT(Error(pattern, "graph @r { %x = placeholder %y = call relu(%x) output(%y) }"),
              HasSubstr("%y: wanted call_function or call_module"));
  EXPECT_THAT(Error(pattern, "graph @r { %x = placeholder %y = call_function clamp(%x, max=$n) output(%y) }"),
              HasSubstr("$n is no capture of the pattern"));
  EXPECT_EQ(Error(pattern), "");
}

TEST_F(RewriteTest, ErrorsOfNumbersAndProducts) {
  const char* product = "graph @p { %x = placeholder %y = product(%x^2, $c in [0, 1]) output(%y) }";
  EXPECT_EQ(Error(product), "");
  EXPECT_THAT(Error("graph @p { %x = placeholder %y = product(%x, 2, 3) output(%y) }"), HasSubstr("a second number"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %y = product(2) output(%y) }"), HasSubstr("0 factors, wanted 1 to 4"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %y = product(%x, %x) output(%y) }"),
              HasSubstr("a second factor %x, wanted its power"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %c = get_attr half %y = call mul(%x, %c) output(%y) }"),
              HasSubstr("wanted '%'"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %y = call softmax(%x, dim=only($d)) output(%y) }"),
              HasSubstr("dim=only(...), which only a replacement has"));
  EXPECT_THAT(Error(product, "graph @r { %x = placeholder %y = product(%x) output(%y) }"),
              HasSubstr("%y: wanted call_function or call_module"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %c = get_attr $c %y = call mul(%x, %c) output(%y) }",
                    "graph @r { %x = placeholder %c = get_attr 2 %y = call_function mul(%x, %c) output(%y) }"),
              HasSubstr("%c has a number, and is the pattern's too"));
  EXPECT_THAT(
      Error(product, "graph @r { %x = placeholder %n = get_attr $c %y = call_function mul(%x, %n) output(%y) }"),
      HasSubstr("%n: a new constant is a number"));
  EXPECT_THAT(
      Error(product, "graph @r { %x = placeholder %y = call_function clamp(%x, min=product($c, $d)) output(%y) }"),
      HasSubstr("$d is no capture of the pattern"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %y = maybe call relu(%x) output(%y) }"),
              HasSubstr("the output %y, wanted a call"));
  EXPECT_THAT(Error("graph @p { %x = placeholder %a = maybe call add(none, %x) %y = call relu(%a) output(%y) }"),
              HasSubstr("%a has no operand that could stand in its place"));
}

TEST_F(RewriteTest, ABadRuleIsTheCallersMistake) {
  ASSERT_OK_AND_ASSIGN(auto graph, ir::Parse("graph @g { %x: f32[1] = placeholder output(%x) }", ops_));
  RewriteOptions options;
  options.add_rules()->set_name("broken");
  passes::Remarks remarks;
  const absl::Status status = Rewrite(options).Run(*graph, remarks).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(IsUsageError(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("rule \"broken\" pattern:1:1"));
}

TEST_F(RewriteTest, NewNodesListTheirSources) {
  ASSERT_OK_AND_ASSIGN(auto graph, ir::Parse(R"(graph @g {
    %x: f32[1] = placeholder
    %a: f32[1] = call_function relu(%x) from(first, second)
    %b: f32[1] = call_function tanh(%a)
    output(%b)
  })",
                                             ops_));
  RewriteOptions options;
  RewriteOptions::Rule& rule = *options.add_rules();
  rule.set_name("swap");
  rule.set_pattern("graph @p { %x = placeholder %a = call relu(%x) %b = call tanh(%a) output(%b) }");
  rule.set_replacement(
      "graph @r { %x = placeholder %a = call_function tanh(%x) %b = call_function relu(%a) output(%b) }");
  passes::Remarks remarks;
  ASSERT_OK_AND_ASSIGN(const bool changed, Rewrite(options).Run(*graph, remarks));
  EXPECT_TRUE(changed);
  const ir::Node* relu = graph->output()->operand(0);
  EXPECT_EQ(relu->name(), "b");
  EXPECT_THAT(relu->sources(), ::testing::UnorderedElementsAre("first", "second", "b"));
  EXPECT_THAT(relu->operand(0)->sources(), ::testing::UnorderedElementsAre("first", "second", "b"));
  ASSERT_OK(graph->Verify());
}

}  // namespace
}  // namespace fuselage::rewrite
