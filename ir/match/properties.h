// What several passes ask of nodes and values, and no schema says.
#ifndef FUSELAGE_IR_MATCH_PROPERTIES_H_
#define FUSELAGE_IR_MATCH_PROPERTIES_H_

#include "ir/graph.h"

namespace fuselage::match {

// A tensor of f32. Quantized values never are: floats have no quantization parameters.
bool IsF32(const ir::Node& value);

// conv1d, conv2d or conv3d.
bool IsConvolution(const ir::Node& node);

// To codes or from them, with parameters of the whole tensor.
bool ConvertsAll(const ir::Node& node);

// The axis of the channels in a value of this type that `layer`, a linear or a convolution, reads or gives.
int ChannelAxis(const ir::Node& layer, const TensorType& value);

// A slice of everything, in any batch: the first of one image is not all of two.
bool TakesAll(const ir::Node& slice);

}  // namespace fuselage::match

#endif  // FUSELAGE_IR_MATCH_PROPERTIES_H_
