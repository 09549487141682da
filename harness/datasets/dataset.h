// Dataset: samples for a network's inputs, by index, and how the network's outputs on them are judged.
#ifndef FUSELAGE_HARNESS_DATASETS_DATASET_H_
#define FUSELAGE_HARNESS_DATASETS_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/samples.h"
#include "harness/config.pb.h"
#include "harness/results.pb.h"
#include "ir/base/tensor.h"
#include "ir/graph.h"
#include "kernels/core/parallel.h"

namespace fuselage::datasets {

// What the outputs of one variant are worth.
class Judge {
 public:
  virtual ~Judge() = default;

  // `output`: the network's first, of a batch whose first `rows` are samples first, first + 1, ...; they come in order.
  // `baseline`: the judge of the first variant, which this one may be itself, or which has seen these samples already;
  // null where that variant does not run. An error says what was found and wanted.
  virtual absl::Status Add(int64_t first, int64_t rows, const Tensor& output, const Judge* baseline) = 0;
  // What was found of all samples so far, into the result's fields; at least one sample.
  virtual void Record(Results::Variant* result) const = 0;
  // What may be wrong with the figures; empty: nothing.
  virtual std::string Warning() const { return ""; }
};

// Immutable once opened: any thread may read. Opening checks the files; errors name the file and the place in it.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual const char* unit() const = 0;  // What a sample is: "image".

  // The samples as the inputs of `graph`, in the order of its placeholders. Borrows the dataset and the threads. Errors
  // name the input that is not of the samples' type.
  virtual absl::StatusOr<std::unique_ptr<compiler::Samples>> Inputs(const ir::Graph& graph,
                                                                    const HarnessConfig::Preprocessing& preprocessing,
                                                                    kernels::Parallel* parallel) const = 0;
  // Borrows the dataset. Null: there is nothing to judge by, for want of labels.
  virtual std::unique_ptr<Judge> MakeJudge() const = 0;
};

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_DATASET_H_
