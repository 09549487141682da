// Values of which data says how many rows there are: what NonZero, NonMaxSuppression and Compress find, and what
// follows from it. Types are static, so there is room for as many rows as there can be (ir/ops/selection): the first
// *count elements along an axis exist. What is computed from them is computed for all the room, and no row that exists
// depends on one that does not: an operator that would mix rows gets 0, an infinity or whatever changes nothing in
// their place, or is declined.
//
// A constant that follows from the room, such as a folded Shape, is known for one row more, too: where its own shape
// changes, that axis is of rows.
#ifndef FUSELAGE_FRONTEND_ONNX_ROWS_H_
#define FUSELAGE_FRONTEND_ONNX_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "frontend/onnx/builder.h"

namespace fuselage::onnx {

bool HasRows(const std::vector<Value>& operands);

// A call, some of whose operands have rows: its results, with their own. Unimplemented where it would mix rows.
// `wanted`: as EmitTuple's; null for a call with one result.
absl::StatusOr<std::vector<Value>> EmitOnRows(Builder& builder, const std::string& name, absl::string_view target,
                                              std::vector<Value> operands, AttributeMap attributes,
                                              const std::vector<bool>* wanted);

// The value with `fill` in place of rows that do not exist.
absl::StatusOr<Value> FillRows(Builder& builder, const std::string& name, const Value& value, double fill);

// The positions of the elements that are not 0, i64[elements, rank], as rows.
absl::StatusOr<Value> EmitNonzero(Builder& builder, const std::string& name, const Value& value);

// What `nms` keeps of boxes f32[images, n, 4] by scores f32[images, classes, n], i64[most, 3], as rows.
absl::StatusOr<Value> EmitNms(Builder& builder, const std::string& name, Value boxes, Value scores,
                              AttributeMap attributes);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_ROWS_H_
