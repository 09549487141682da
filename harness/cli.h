// The harness as a command: arguments in, tables and files out, an exit code.
#ifndef FUSELAGE_HARNESS_CLI_H_
#define FUSELAGE_HARNESS_CLI_H_

#include <ostream>
#include <string>
#include <vector>

namespace fuselage::harness {

struct Terminal {
  std::ostream& out;  // Tables.
  std::ostream& err;  // Progress and errors.
  bool err_is_terminal = false;
};

// `args` without the program's name. Returns an ExitCode.
int RunCommand(const std::vector<std::string>& args, const Terminal& terminal);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_CLI_H_
