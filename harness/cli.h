// The harness as a command: arguments in, tables and files out, an exit code.
#ifndef FUSELAGE_HARNESS_CLI_H_
#define FUSELAGE_HARNESS_CLI_H_

#include <ostream>
#include <string>
#include <vector>

#include "compiler/library.h"

namespace fuselage::harness {

struct Terminal {
  std::ostream& out;  // Tables.
  std::ostream& err;  // Progress and errors.
  bool err_is_terminal = false;
};

// Adds ops, kernels and passes to those of this tree.
using Extend = void (*)(compiler::Library& library);

// `args` without the program's name. Returns an ExitCode.
int RunCommand(const std::vector<std::string>& args, const Terminal& terminal, Extend extend = nullptr);

// What main of a harness does: RunCommand on the process's terminal, with Ctrl-C and full disks taken care of.
int Main(int argc, char** argv, Extend extend);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_CLI_H_
