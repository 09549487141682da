// SharedUploads: a device's constants, each there once. Who uploads the same bytes gets the same memory, which goes
// with the last who has it: sessions of one network share their weights, whatever their batch sizes, as far as kernels
// pack them alike.
#ifndef FUSELAGE_KERNELS_CUDA_SHARED_UPLOADS_H_
#define FUSELAGE_KERNELS_CUDA_SHARED_UPLOADS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fuselage::cuda {

// Any thread may use it.
class SharedUploads {
 public:
  using Memory = std::shared_ptr<void>;

  // What `upload` gives: memory that holds `bytes` for whatever stream reads it next. Or what it gave before and
  // somebody has. Nobody may write it.
  absl::StatusOr<Memory> Get(absl::string_view bytes, absl::FunctionRef<absl::StatusOr<Memory>()> upload);

 private:
  // The number of bytes and two hashes that have nothing in common: 128 bits tell contents apart.
  using Key = std::tuple<size_t, size_t, size_t>;

  std::mutex mutex_;  // Held during an upload too: who finds memory finds it written.
  std::map<Key, std::weak_ptr<void>> uploads_;
};

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_SHARED_UPLOADS_H_
