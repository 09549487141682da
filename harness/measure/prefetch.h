// Batches of samples, read ahead: while the network runs on one, threads of their own read the next.
#ifndef FUSELAGE_HARNESS_MEASURE_PREFETCH_H_
#define FUSELAGE_HARNESS_MEASURE_PREFETCH_H_

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/samples.h"

namespace fuselage::harness {

// Not for what is timed: the threads take the cores' time from the network where it leaves none.
class Prefetcher {
 public:
  // Samples first ... end - 1 as batches of `types`, one for each of the network's inputs. Borrows the samples, and has
  // as many threads as they are spread over. Two batches are held at most.
  Prefetcher(const compiler::Samples& samples, absl::Span<const TensorType> types, int64_t first, int64_t end);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The next batch, to be called once for each; valid until the next call. Rows past the last sample are zeros. An
  // error is that of the first row that has one. The caller reads along while it waits, and gets what a reader throws.
  absl::StatusOr<const std::vector<Tensor>*> Next();

 private:
  struct Batch {
    std::vector<Tensor> inputs;
    std::vector<absl::Status> statuses;  // One for each row.
    int64_t done = 0;                    // Rows.
  };

  void Work();
  Batch& batch(int64_t i) { return batches_[i % 2]; }
  // Reads the next row; the lock is not held meanwhile.
  void ReadRow(std::unique_lock<std::mutex>& lock);

  const compiler::Samples& samples_;
  const int64_t first_, end_, rows_, count_;  // Samples, rows of a batch, batches.
  std::mutex mutex_;                          // Guards what follows, but for rows that a thread reads.
  std::condition_variable changed_;
  Batch batches_[2];
  int64_t reading_ = 0, row_ = 0;  // The next row that nobody reads yet, and its batch.
  int64_t begun_ = 0;              // Calls of Next: the last one's batch is in use, the one after it is read ahead.
  bool stop_ = false;
  std::exception_ptr thrown_;  // By a row's reader; the caller's to catch.
  std::vector<std::thread> threads_;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_PREFETCH_H_
