#include "kernels/cuda/overlap.h"

#include "gtest/gtest.h"

namespace fuselage::cuda {
namespace {

// Finish, behind a product of cuBLASLt, must not take itself for what is beside the kernel before both.
TEST(OverlapTest, WhatFollowsALibrarysKernelWaitsForIt) {
  NextLaunch() = Overlap::kBeside;
  LibraryHasLaunched();
  EXPECT_EQ(NextLaunch(), Overlap::kNext);
  NextLaunch() = Overlap::kNone;
  LibraryHasLaunched();
  EXPECT_EQ(NextLaunch(), Overlap::kNone);
}

}  // namespace
}  // namespace fuselage::cuda
