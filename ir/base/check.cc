#include "ir/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace fuselage {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: internal error: %s does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace fuselage
