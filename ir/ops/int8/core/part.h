// Part: one of the operators that another one is made of. It reads its attributes from the whole's, under a prefix
// where the whole has several parts, and gives the types and values that it has alone.
#ifndef FUSELAGE_IR_OPS_INT8_CORE_PART_H_
#define FUSELAGE_IR_OPS_INT8_CORE_PART_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/op.h"

namespace fuselage::ops::int8 {

class Part {
 public:
  // `op` is one of those that `register_ops` registers.
  Part(void (*register_ops)(ir::OpRegistry&), absl::string_view op, absl::string_view prefix = "");

  const ir::OpSchema& schema() const { return *schema_; }
  // Its attributes, as the whole has them.
  std::vector<ir::AttributeSpec> Attributes() const;

  // `whole` gives the attributes; the operands are the part's own.
  absl::StatusOr<ir::Type> Infer(const ir::OpCall& whole, const std::vector<const ir::Type*>& operands) const;
  absl::StatusOr<std::vector<Tensor>> Evaluate(const ir::OpCall& whole,
                                               const std::vector<const std::vector<Tensor>*>& operands) const;
  // `ops` has the part and the float op whose form it is.
  ir::Cost CostOf(const ir::OpRegistry& ops, const ir::OpCall& whole, const std::vector<const ir::Type*>& operands,
                  const ir::Type& result) const;

 private:
  AttributeMap AttributesOf(const ir::OpCall& whole) const;

  std::shared_ptr<const ir::OpRegistry> ops_;
  const ir::OpSchema* schema_;
  std::string prefix_;
};

}  // namespace fuselage::ops::int8

#endif  // FUSELAGE_IR_OPS_INT8_CORE_PART_H_
