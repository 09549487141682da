#include "compiler/samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/sha256.h"
#include "ir/base/status.h"

namespace fuselage::compiler {
absl::Status Samples::Fill(int64_t first, int64_t end, Tensor* batch, int input) const {
  const int rows = static_cast<int>(batch->dim(0));
  std::vector<absl::Status> statuses(rows);
  parallel_->For(rows, [&](int row, int) { statuses[row] = FillOrClear(first + row, end, input, batch, row); });
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status Samples::FillOrClear(int64_t sample, int64_t end, int input, Tensor* batch, int64_t row) const {
  if (sample < end) return FillRow(sample, input, batch, row);
  const int64_t bytes = batch->byte_size() / batch->dim(0);
  std::memset(static_cast<uint8_t*>(batch->raw_data()) + row * bytes, 0, bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Samples::Batch(int64_t first, absl::Span<const TensorType> types) const {
  std::vector<Tensor> batch;
  for (size_t input = 0; input < types.size(); ++input) {
    batch.emplace_back(types[input]);
    for (int64_t row = 0; row < batch.back().dim(0); ++row) {
      RETURN_IF_ERROR(FillRow((first + row) % size(), static_cast<int>(input), &batch.back(), row));
    }
  }
  return batch;
}

std::string TensorSamples::Key(int64_t count) const {
  Sha256 digest;
  for (const Tensor& input : *inputs_) {
    digest.UpdateArray<int64_t>(input.shape());
    digest.UpdateArray<uint8_t>(
        {static_cast<const uint8_t*>(input.raw_data()), static_cast<size_t>(input.byte_size() / input.dim(0) * count)});
  }
  return absl::StrCat("inputs, sha256 ", digest.Finish());
}

absl::Status TensorSamples::FillRow(int64_t sample, int input, Tensor* batch, int64_t row) const {
  const Tensor& values = (*inputs_)[input];
  const int64_t bytes = values.byte_size() / values.dim(0);
  std::memcpy(static_cast<uint8_t*>(batch->raw_data()) + row * bytes,
              static_cast<const uint8_t*>(values.raw_data()) + sample * bytes, bytes);
  return absl::OkStatus();
}

namespace {

// The shortest axis in which values of the node are positions, as they are or moved about.
int64_t PositionsOf(const ir::Node& node) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const ir::Use& use : node.uses()) {
    const ir::OpSchema* op = use.user->op();
    if (op == nullptr) continue;
    if (use.index == 0 && (op->view != ir::View::kNone || op->name == "to")) {
      least = std::min(least, PositionsOf(*use.user));
    } else if (use.index < static_cast<int>(op->operands.size()) && op->operands[use.index].positions) {
      const Shape& shape = use.user->operand(0)->tensor_type().shape;
      const int64_t dim = use.user->attribute("dim").as_int();
      least = std::min(least, shape[dim < 0 ? dim + shape.size() : dim]);
    }
  }
  return least;
}

}  // namespace

std::vector<int64_t> IntegerBounds(const ir::Graph& graph) {
  std::vector<int64_t> bounds;
  for (const ir::Node* input : graph.placeholders()) {
    const DType dtype = input->tensor_type().dtype;
    const bool integers = dtype == DType::kI16 || dtype == DType::kI32 || dtype == DType::kI64;
    const int64_t positions = integers ? PositionsOf(*input) : 0;
    bounds.push_back(positions == std::numeric_limits<int64_t>::max() ? 2 : positions);
  }
  return bounds;
}

std::string RandomSamples::Key(int64_t) const {
  std::string key = absl::StrCat("random inputs, seed ", seed_);
  if (std::any_of(bounds_.begin(), bounds_.end(), [](int64_t bound) { return bound > 0; })) {
    absl::StrAppend(&key, ", integers below ", absl::StrJoin(bounds_, ", "));
  }
  return key;
}

absl::Status RandomSamples::FillRow(int64_t sample, int input, Tensor* batch, int64_t row) const {
  TensorType type = batch->type();
  type.shape[0] = 1;
  // Odd multipliers spread the three numbers over 64 bits (Knuth, TAOCP 3, 6.4: multiplicative hashing).
  const uint64_t seed = seed_ * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(sample) * 0xc2b2ae3d27d4eb4fu +
                        static_cast<uint64_t>(input) * 0x165667b19e3779f9u;
  Tensor values = SeededTensor(type, seed);
  if (const int64_t bound = bounds_.empty() ? 0 : bounds_[input]; bound > 0) {
    type.dtype = DType::kF32;
    const Tensor fractions = SeededTensor(std::move(type), seed);  // In [-1, 1).
    for (int64_t i = 0; i < values.num_elements(); ++i) values.Set(i, std::floor((fractions.At(i) + 1) / 2 * bound));
  }
  std::memcpy(static_cast<uint8_t*>(batch->raw_data()) + row * values.byte_size(), values.raw_data(),
              values.byte_size());
  return absl::OkStatus();
}

}  // namespace fuselage::compiler
