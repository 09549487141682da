// Chains of elementwise operators as the op fused_elementwise holds them, and their float32 arithmetic.
//
//   steps=["add(0, 1)", "sigmoid(2)", "mul(2, 3)"]
//
// Values are numbered: first the operands, then the steps; a step reads values in front of it, the last is the result.
#ifndef FUSELAGE_IR_BASE_ELEMENTWISE_H_
#define FUSELAGE_IR_BASE_ELEMENTWISE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/base/attribute.h"
#include "ir/base/elementwise_math.h"
#include "ir/base/status.h"

namespace fuselage {

struct ElementwiseStep {
  std::string op;             // By its canonical name: "add".
  std::vector<int> operands;  // Values.
  AttributeMap attributes;    // Those that are not the schema's defaults.
};

std::string ToString(const ElementwiseStep& step);  // "add(0, 1, alpha=2.0)"

// InvalidArgument names the step, what was found and what was wanted.
absl::StatusOr<std::vector<ElementwiseStep>> ParseElementwiseSteps(absl::Span<const std::string> steps,
                                                                   int num_operands);

// The operators that can be steps, by their canonical names.
std::vector<absl::string_view> ElementwiseSteps();

// Can `op` be a step?
bool IsElementwiseStep(absl::string_view op);

// The steps as instructions. Parameters are rounded to float32; InvalidArgument: an op or attribute that no step has.
absl::StatusOr<std::vector<ElementwiseInstruction>> CompileElementwise(const std::vector<ElementwiseStep>& steps);

// The step of which CompileElementwise makes such an instruction; attributes that repeat a default are absent.
ElementwiseStep StepOf(const ElementwiseInstruction& instruction);

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_ELEMENTWISE_H_
