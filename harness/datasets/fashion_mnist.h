// Fashion-MNIST (Xiao et al., 2017): 28x28 gray images in gzipped IDX files, as Debian's dataset-fashion-mnist has
// them.
#ifndef FUSELAGE_HARNESS_DATASETS_FASHION_MNIST_H_
#define FUSELAGE_HARNESS_DATASETS_FASHION_MNIST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/datasets/image_dataset.h"

namespace fuselage::datasets {

// Where Debian's package puts it.
std::string FashionMnistFolder();

// Reads {train or t10k}-{images-idx3,labels-idx1}-ubyte.gz below `folder`. NotFound names the package to install.
absl::StatusOr<std::unique_ptr<ImageDataset>> OpenFashionMnist(const std::string& folder, bool train);

// An IDX file of u8 (http://yann.lecun.com/exdb/mnist): two zero bytes, the type 0x08, the number of dimensions, the
// dimensions as big-endian u32, the elements.
struct Idx {
  std::vector<int64_t> dims;
  std::vector<uint8_t> data;
};
// A file with exactly `rank` dimensions; InvalidArgument on a wrong magic, a short file, or bytes after the last
// element.
absl::StatusOr<Idx> ReadIdx(const std::string& path, int rank);

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_FASHION_MNIST_H_
