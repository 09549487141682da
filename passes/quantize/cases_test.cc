// Runs cases/*.ir with a runner that calibrates on seeded inputs through the interpreter.
#include "passes/core/case_runner.h"
#include "passes/quantize/quantize.h"
#include "passes/quantize/seeded_runner.h"

int main(int argc, char** argv) {
  fuselage::passes::PassRegistry passes;
  fuselage::quantize::Register(passes);
  fuselage::quantize::SeededRunner runner;
  fuselage::passes::PassEnvironment environment;
  environment.runner = &runner;
  return fuselage::passes::RunCases(argc, argv, passes, environment);
}
