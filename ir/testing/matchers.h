// For tests: Status matchers, a registry of all ops in one call, and how to parse a graph or fail.
#ifndef FUSELAGE_IR_TESTING_MATCHERS_H_
#define FUSELAGE_IR_TESTING_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fuselage::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// StatusIs(code, HasSubstr("..."))
MATCHER_P2(StatusIs, code, message, "") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         ::testing::ExplainMatchResult(message, std::string(StatusOf(arg).message()), result_listener);
}

}  // namespace fuselage::testing

#define FUSELAGE_TEST_CONCAT_INNER(a, b) a##b
#define FUSELAGE_TEST_CONCAT(a, b) FUSELAGE_TEST_CONCAT_INNER(a, b)
// Declares or assigns `lhs` from a StatusOr, or fails the test.
#define ASSERT_OK_AND_ASSIGN(lhs, expression) \
  ASSERT_OK_AND_ASSIGN_INNER(FUSELAGE_TEST_CONCAT(fuselage_statusor_, __LINE__), lhs, expression)
#define ASSERT_OK_AND_ASSIGN_INNER(statusor, lhs, expression) \
  auto statusor = (expression);                               \
  ASSERT_TRUE(statusor.ok()) << statusor.status();            \
  lhs = std::move(statusor).value()

#define EXPECT_OK(expression) EXPECT_THAT(expression, ::fuselage::testing::IsOk())
#define ASSERT_OK(expression) ASSERT_THAT(expression, ::fuselage::testing::IsOk())

#endif  // FUSELAGE_IR_TESTING_MATCHERS_H_
