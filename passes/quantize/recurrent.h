// Recurrent layers that are too small to gain by codes.
#ifndef FUSELAGE_PASSES_QUANTIZE_RECURRENT_H_
#define FUSELAGE_PASSES_QUANTIZE_RECURRENT_H_

#include <string>

#include "ir/graph.h"
#include "passes/quantize/quantize.pb.h"

namespace fuselage::quantize {

// Why a module stays in FP32 by the options' least_recurrent_weights; empty where it does not, as other layers.
std::string WhyNotRecurrent(const QuantizeOptions& options, const ir::Node& node);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_RECURRENT_H_
