// For tests that need a GPU.
#ifndef FUSELAGE_THIRD_PARTY_CUDA_TESTING_NO_GPU_H_
#define FUSELAGE_THIRD_PARTY_CUDA_TESTING_NO_GPU_H_

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

// Ends the test that finds no GPU, or no toolkit to reach it with: skips it, and fails it where FUSELAGE_REQUIRE_GPU=1.
//   if (!device.ok()) FUSELAGE_NO_GPU(device.status());
#define FUSELAGE_NO_GPU(why)                                                \
  do {                                                                      \
    const char* required = std::getenv("FUSELAGE_REQUIRE_GPU");             \
    if (required != nullptr && std::string(required) == "1") FAIL() << why; \
    GTEST_SKIP() << why;                                                    \
  } while (false)

#endif  // FUSELAGE_THIRD_PARTY_CUDA_TESTING_NO_GPU_H_
