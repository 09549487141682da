// How scales and zero points of a node become attributes, where they are constants, or operands.
#ifndef FUSELAGE_FRONTEND_ONNX_QUANT_H_
#define FUSELAGE_FRONTEND_ONNX_QUANT_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "frontend/onnx/call.h"

namespace fuselage::onnx {

// The operands that quantize one tensor.
struct QuantOperands {
  int scale;
  int zero_point;  // May be absent.
};

// The parameters of codes of type `dtype` with shape `shape`, where scale and zero point are constants, and checked:
// scales normal and > 0, zero points in range. nullopt where one is computed. `axis` counts where the scale has more
// than one element.
absl::StatusOr<std::optional<QuantParams>> ReadQuantParams(const Call& call, QuantOperands operands, DType dtype,
                                                           const Shape& shape, int64_t axis);

// scale * (codes - zero_point) as a call of `dequantize`. Constant codes become a parameter whose type carries the
// parameters. `suffix` empty: the call has the node's own name.
absl::StatusOr<Value> Dequantize(Call& call, absl::string_view suffix, const Value& codes, QuantOperands operands,
                                 int64_t axis);
absl::StatusOr<Value> DequantizeBy(Call& call, absl::string_view suffix, const Value& codes, const QuantParams& params);

// The bias of a layer: i32 codes of rank 1 whose scale is x_scale * w_scale.
absl::StatusOr<Value> DequantizeBias(Call& call, int bias, int x_scale, int w_scale);

// Operand i holds one value, as scalars do, or lists of one that exporters write for them.
absl::Status CheckScalar(const Call& call, int i, absl::string_view name);

// Codes of `dtype` as a call of `quantize` with the node's name.
absl::StatusOr<Value> Quantize(Call& call, const Value& real, QuantOperands operands, DType dtype, int64_t axis);
// The same by known parameters; `suffix` as above.
absl::StatusOr<Value> QuantizeBy(Call& call, absl::string_view suffix, const Value& real, DType dtype,
                                 const QuantParams& params);

// The zero point of the u8 or i8 codes that are input `codes`, shaped to broadcast to them; an absent value where it is
// absent. One with several elements lies along `axis`.
absl::StatusOr<Value> ZeroPointOf(Call& call, absl::string_view suffix, int codes, int zero_point, int axis);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_QUANT_H_
