#include "harness/measure/accuracy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/measure/prefetch.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

// 64-bit FNV-1a (Fowler, Noll, Vo), continued over all samples.
void Hash(const uint8_t* bytes, int64_t count, uint64_t* hash) {
  for (int64_t i = 0; i < count; ++i) *hash = (*hash ^ bytes[i]) * 0x100000001b3u;
}

}  // namespace

absl::StatusOr<std::string> Evaluate(compiler::Engine& engine, const compiler::Samples& samples, SampleRange range,
                                     datasets::Judge* judge, const datasets::Judge* baseline,
                                     const std::function<void(int64_t done)>& progress) {
  const int64_t batch = engine.batch();
  Prefetcher batches(samples, engine.input_types(), range.first, range.end);
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t first = range.first; first < range.end; first += batch) {
    ASSIGN_OR_RETURN(const std::vector<Tensor>* inputs, batches.Next());
    ASSIGN_OR_RETURN(const std::vector<Tensor>* outputs, engine.Run(*inputs));
    const Tensor& output = (*outputs)[0];
    if (output.rank() == 0 || output.dim(0) != batch) {
      return absl::InvalidArgumentError(absl::StrCat("the model's output is ", ToString(output.type()), ", want ",
                                                     batch, " rows, one for each of the batch"));
    }
    const int64_t rows = std::min(batch, range.end - first);
    RETURN_IF_ERROR(judge->Add(first, rows, output, baseline));
    Hash(static_cast<const uint8_t*>(output.raw_data()), output.byte_size() / batch * rows, &hash);
    if (progress) progress(first + rows - range.first);
  }
  return absl::StrFormat("%016x", hash);
}

}  // namespace fuselage::harness
