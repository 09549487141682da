// Calls one op in a test, through the framework's own checks.
#ifndef FUSELAGE_IR_OPS_CORE_TESTING_H_
#define FUSELAGE_IR_OPS_CORE_TESTING_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/op.h"

namespace fuselage::ops {

class OpTester {
 public:
  explicit OpTester(void (*register_ops)(ir::OpRegistry&)) { register_ops(registry_); }

  const ir::OpRegistry& registry() const { return registry_; }

  // Operands in schema order, nullopt where one is absent.
  using Operands = std::vector<std::optional<Tensor>>;
  using Types = std::vector<std::optional<TensorType>>;

  // Infers, then evaluates.
  absl::StatusOr<std::vector<Tensor>> RunAll(absl::string_view op, const Operands& operands,
                                             const AttributeMap& attributes = {}) const;
  // The one result; a test that meets an error here fails by aborting with its message.
  Tensor Run(absl::string_view op, const Operands& operands, const AttributeMap& attributes = {}) const;
  // The text of the inferred type, or the error's message.
  std::string Infer(absl::string_view op, const Types& operands, const AttributeMap& attributes = {}) const;

 private:
  ir::OpRegistry registry_;
};

// 0, step, 2*step, ... from `first`.
Tensor Iota(Shape shape, float first = 0, float step = 1);

}  // namespace fuselage::ops

#endif  // FUSELAGE_IR_OPS_CORE_TESTING_H_
