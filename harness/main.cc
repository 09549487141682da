#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "harness/base/interrupt.h"
#include "harness/cli.h"

int main(int argc, char** argv) {
  fuselage::harness::WatchInterrupts();
  // A closed pipe or a full disk is an error of write(), which says so, not the end.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  return fuselage::harness::RunCommand({argv + 1, argv + argc}, {std::cout, std::cerr, isatty(STDERR_FILENO) == 1});
}
