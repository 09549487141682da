#include "compiler/library.h"

#include "ir/ops/register_all.h"
#include "kernels/register_all.h"
#include "passes/register_all.h"

namespace fuselage::compiler {

Library::Library() {
  ops::RegisterAll(ops);
  kernels::RegisterAll(kernels);
  passes::RegisterAll(passes);
}

const Library& BuiltIn() {
  static const Library& library = *new Library();
  return library;
}

}  // namespace fuselage::compiler
