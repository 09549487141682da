// The machine's peaks, for the roofline: measured once on one thread, in about a second, and kept in a file.
#ifndef FUSELAGE_HARNESS_MEASURE_PEAKS_H_
#define FUSELAGE_HARNESS_MEASURE_PEAKS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/results.pb.h"
#include "ir/op.h"
#include "kernels/core/registry.h"
#include "passes/core/pass.h"

namespace fuselage::harness {

// A fully connected layer in FP32, a 3x3 convolution in INT8 (by AVX2's Winograd kernel more than one multiplies: what
// counts is what the network's convolutions get), a triad over arrays of four times the last-level cache together, and
// a chain of calls on 16 floats; the best of several runs each. When it was is for the caller to add.
absl::StatusOr<Results::Peaks> MeasurePeaks(const ir::OpRegistry& ops, const kernels::KernelRegistry& kernels);

// Where `folder` keeps the peaks of this CPU: "<folder>/peaks-<hash of its name and instruction set>.textproto".
std::string PeaksFile(const std::string& folder);

// NotFound where there is no file; InvalidArgument where it is of another CPU or holds no positive numbers.
absl::StatusOr<Results::Peaks> ReadPeaks(const std::string& file);
// Makes the folder where it is missing; replaces an old file whole.
absl::Status WritePeaks(const std::string& file, const Results::Peaks& peaks);

passes::MachinePeaks ToMachinePeaks(const Results::Peaks& peaks);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_PEAKS_H_
