// What all contestants read: one network, quantized once, in the forms that each of them takes.
//
//   int8.ir, .safetensors    the end of the pipeline: our kernels'
//   int8_lowered.ir, ...     the same network after the step lower, a layer a node: oneDNN's
//   fastest.ir, .safetensors the end of the pipeline with quantize's precision FASTEST, where weights for each channel may
//                            have seven bits: our kernels'
//   fp32.ir, .safetensors    fused, in floats
//   int8.onnx                the quantized graph as QuantizeLinear and DequantizeLinear; the batch is "N" in all models
//   int8_codes.onnx          the same, with the codes of every quantize as further outputs
//   int8_sums.onnx           the same network, with every convolution's result quantized before a residual is added:
//                            onnxruntime makes an integer convolution of no other
//   fp32.onnx                the float graph
//   samples.safetensors      "input 0", "input 1", ...: the first samples; a tensor for each output of int8_codes.onnx:
//                            ours for them
//   results.json             of the passes
#ifndef FUSELAGE_TOOLS_PEERS_BUNDLE_H_
#define FUSELAGE_TOOLS_PEERS_BUNDLE_H_

#include "absl/status/status.h"
#include "harness/recorder.h"
#include "harness/report/progress.h"
#include "harness/request.h"

namespace fuselage::peers {

// Runs the passes of the request's config into the recorder's folder. The config's first variant is the float network,
// its last the INT8 one, and the graphs after the steps quant_lift and lower the quantized and the lowered one; a usage
// error says which is missing. The caller finishes the recorder.
absl::Status WriteBundle(const harness::RunRequest& request, int samples, report::Progress& progress,
                         harness::Recorder& recorder);

}  // namespace fuselage::peers

#endif  // FUSELAGE_TOOLS_PEERS_BUNDLE_H_
