// A network, a dataset and a config so small that a whole run of the harness takes a second.
#ifndef FUSELAGE_HARNESS_TESTING_TESTING_H_
#define FUSELAGE_HARNESS_TESTING_TESTING_H_

#include <cstdint>
#include <string>

namespace fuselage::harness::testing {

// A residual network of two convolutions on [N, 3, 16, 16], with seeded weights; as an .onnx file.
// `height`: a symbol that leaves that dimension open; empty: 16.
std::string TinyModel(const std::string& height = "", int classes = 10);

// Writes Fashion-MNIST's four files with 8x8 images: 40 to train, 24 to test.
void WriteTinyDataset(const std::string& folder);

// An RGB image of seeded pixels.
void WritePng(const std::string& path, int width, int height, uint64_t seed);

// Keeps the runs of this test from measuring the machine, and from the user's cache: points XDG_CACHE_HOME at an empty
// folder of the test's own, with peaks of a plausible machine in it. Returns the cache's folder.
std::string UseFixedPeaks();

// Model, dataset and `tiny.textproto` in an empty folder of the test's own. `more` is added to the config.
struct Workplace {
  std::string folder;
  std::string config;  // The config's path.
  std::string out;     // An output folder, not there yet.
};
Workplace MakeWorkplace(const std::string& name, const std::string& more = "");

// The same with a network of your own, as IR text with small or seeded parameters, and nothing else in the config but
// `rest`.
Workplace MakeIrWorkplace(const std::string& name, const std::string& ir, const std::string& rest);

}  // namespace fuselage::harness::testing

#endif  // FUSELAGE_HARNESS_TESTING_TESTING_H_
