// Values as products of powers, however an exporter wrote them out: x * 0.5 * y, x * (y / 2), x / (2 / y).
#ifndef FUSELAGE_PASSES_REWRITE_PRODUCT_H_
#define FUSELAGE_PASSES_REWRITE_PRODUCT_H_

#include <optional>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace fuselage::rewrite {

// coefficient * factor0^exponent0 * factor1^exponent1 * ...
struct Product {
  double coefficient = 1;
  std::vector<std::pair<ir::Node*, double>> factors;  // None twice.
  std::vector<ir::Node*> calls;                       // What computes it; empty where `result` is its only factor.
};

// Looks through mul, div, neg, reciprocal, and sqrt and pow by a constant, of floats: `result` itself, and whatever of
// its operands nobody else reads. No further than a root, for the root of x^2 is not x, nor its square; at most 16
// calls.
Product ProductOf(ir::Node* result);

// The number that a constant of floats is in every element; infinite maybe. nullopt: it is none, or NaN.
std::optional<double> NumberOf(const ir::Node& node);

}  // namespace fuselage::rewrite

#endif  // FUSELAGE_PASSES_REWRITE_PRODUCT_H_
