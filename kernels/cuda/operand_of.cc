#include "kernels/cuda/operand_of.h"

#include "kernels/core/broadcast.h"

namespace fuselage::cuda {

Operand OperandOf(const TensorType& type, const TensorType& result) {
  static_assert(kernels::kMostBroadcastAxes <= kMostOperandAxes);
  const kernels::Broadcast broadcast(type, result);
  Operand operand;
  operand.axes = static_cast<int>(broadcast.shape().size());
  operand.whole = operand.axes == 1 && broadcast.strides()[0] == 1;
  for (int i = 0; i < operand.axes; ++i) {
    const int axis = operand.axes - 1 - i;
    operand.axis[i] = {static_cast<uint32_t>(broadcast.shape()[axis]), broadcast.strides()[axis]};
  }
  return operand;
}

}  // namespace fuselage::cuda
