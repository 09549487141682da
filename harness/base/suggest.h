#ifndef FUSELAGE_HARNESS_BASE_SUGGEST_H_
#define FUSELAGE_HARNESS_BASE_SUGGEST_H_

#include "ir/base/suggest.h"  // IWYU pragma: export

#endif  // FUSELAGE_HARNESS_BASE_SUGGEST_H_
