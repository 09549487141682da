// Invariants of our own code, checked in every build. A user's input never reaches one: it gets a Status.
#ifndef FUSELAGE_IR_BASE_CHECK_H_
#define FUSELAGE_IR_BASE_CHECK_H_

namespace fuselage {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace fuselage

#define FUSELAGE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::fuselage::CheckFailed(__FILE__, __LINE__, #condition))

#endif  // FUSELAGE_IR_BASE_CHECK_H_
