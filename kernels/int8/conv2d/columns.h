// Threads that share the columns of one row: most drivers share rows, output channels and images, of which sequences
// have one, often few, and one.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_COLUMNS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_COLUMNS_H_

#include <memory>

#include "kernels/int8/conv2d/core/problem.h"

namespace fuselage::int8::conv2d {

// A row of a dense image, with more to read of it than of the weights, or too few output channels to share, and work
// for several threads.
bool SharesColumns(const Problem& problem);

// Each thread has an algorithm of its own, for its part of the columns; they share the packed weight.
std::unique_ptr<Algorithm> MakeColumns(const Problem& problem,
                                       std::unique_ptr<Algorithm> (*make)(const Problem& problem));

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_COLUMNS_H_
