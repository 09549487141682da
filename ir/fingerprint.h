// A hash of a whole graph: tells cheaply whether a rewrite changed it.
#ifndef FUSELAGE_IR_FINGERPRINT_H_
#define FUSELAGE_IR_FINGERPRINT_H_

#include <cstdint>

#include "ir/graph.h"

namespace fuselage::ir {

// Covers all that the canonical text (ir/text.h) shows, parameter values too: equal texts have equal fingerprints, and
// different texts have different ones but for a chance of 2^-64. The same on every machine of one byte order; guards
// against no adversary. Of a graph that verifies: Graph::Verify computes it on the way, without building the text.
uint64_t Fingerprint(const Graph& graph);

// Covers a tensor's type and values; what Parameter::fingerprint holds. fuselage::Fingerprint, which texts and files
// show, takes longer.
uint64_t ValueFingerprint(const Tensor& tensor);

}  // namespace fuselage::ir

#endif  // FUSELAGE_IR_FINGERPRINT_H_
