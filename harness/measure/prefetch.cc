#include "harness/measure/prefetch.h"

#include <algorithm>
#include <exception>

#include "ir/base/status.h"

namespace fuselage::harness {

Prefetcher::Prefetcher(const compiler::Samples& samples, absl::Span<const TensorType> types, int64_t first, int64_t end)
    : samples_(samples), first_(first), end_(end), rows_(types[0].shape[0]), count_((end - first + rows_ - 1) / rows_) {
  for (Batch& batch : batches_) {
    for (const TensorType& type : types) batch.inputs.emplace_back(type);
    batch.statuses.resize(rows_);
  }
  const int64_t threads = std::min<int64_t>(samples.threads(), rows_);
  threads_.reserve(threads);
  try {
    while (static_cast<int64_t>(threads_.size()) < threads) threads_.emplace_back([this] { Work(); });
  } catch (const std::exception&) {
    // No more threads here: those that are there, and the caller, read all.
  }
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetcher::ReadRow(std::unique_lock<std::mutex>& lock) {
  Batch& target = batch(reading_);
  const int64_t row = row_, sample = first_ + reading_ * rows_ + row_;
  if (row == 0) target.done = 0;
  if (++row_ == rows_) row_ = 0, ++reading_;
  lock.unlock();
  absl::Status status;
  std::exception_ptr thrown;
  try {
    for (size_t input = 0; input < target.inputs.size(); ++input) {
      status.Update(samples_.FillOrClear(sample, end_, static_cast<int>(input), &target.inputs[input], row));
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  lock.lock();
  if (thrown != nullptr) thrown_ = thrown;
  target.statuses[row] = std::move(status);
  if (++target.done == rows_) changed_.notify_all();
}

void Prefetcher::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    if (reading_ <= begun_ && reading_ < count_) {
      ReadRow(lock);
    } else {
      changed_.wait(lock);
    }
  }
}

absl::StatusOr<const std::vector<Tensor>*> Prefetcher::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  const int64_t wanted = begun_++;
  changed_.notify_all();
  Batch& found = batch(wanted);
  while (reading_ == wanted) ReadRow(lock);
  while (found.done < rows_) changed_.wait(lock);
  if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  for (const absl::Status& status : found.statuses) RETURN_IF_ERROR(status);
  return &found.inputs;
}

}  // namespace fuselage::harness
