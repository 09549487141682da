// Library: what a compiler knows, and what more a user gives it.
#ifndef FUSELAGE_COMPILER_LIBRARY_H_
#define FUSELAGE_COMPILER_LIBRARY_H_

#include "ir/op.h"
#include "kernels/core/registry.h"
#include "passes/core/registry.h"

namespace fuselage::compiler {

// Begins with all ops, kernels and passes of this tree; Register adds to it, before anything uses it.
struct Library {
  Library();

  ir::OpRegistry ops;
  kernels::KernelRegistry kernels;  // The CPU's.
  passes::PassRegistry passes;
};

// With nothing added; made once, and never destroyed.
const Library& BuiltIn();

}  // namespace fuselage::compiler

#endif  // FUSELAGE_COMPILER_LIBRARY_H_
