// A text as bytes, for language models over bytes.
#ifndef FUSELAGE_HARNESS_DATASETS_TEXT_H_
#define FUSELAGE_HARNESS_DATASETS_TEXT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "harness/datasets/dataset.h"

namespace fuselage::datasets {

struct TextOptions {
  int64_t window = 0;      // Bytes.
  int64_t test_bytes = 0;  // At the end of the file.
};

// A sample is a window: its bytes are the one input, i64 [batch, window], and the label of each is the byte that
// follows it in the text. Windows lie side by side; those to train on come in the order of a fixed shuffle, so that the
// first hundred are from the whole text. Networks are judged by the bits that they need for a byte (next_byte.h).
// InvalidArgument where the part has not one window and a byte behind it.
absl::StatusOr<std::unique_ptr<Dataset>> OpenText(const std::string& path, const TextOptions& options, bool train);

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_TEXT_H_
