// A contestant is a process of its own, with its own libraries and its own threads, that runs when it is told to. A
// line in, a line out:
//
//   <program> GRAPH SAMPLES BATCH THREADS MODE      GRAPH.ir and .safetensors; the inputs in SAMPLES
//                    => ready VERSION ISA           or: error MESSAGE, and exit code 1
//   run N            => N times in ns               after a run that is not timed
//   outputs          => the first output's elements, in row-major order
//   (end of input)   => exit code 0
#ifndef FUSELAGE_TOOLS_PEERS_WORKER_H_
#define FUSELAGE_TOOLS_PEERS_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"

namespace fuselage::peers {

// Of the tensor in SAMPLES that is the network's input number `input`, from 0.
std::string InputName(size_t input);

struct Job {
  std::unique_ptr<ir::Graph> graph;  // At the batch size.
  std::vector<Tensor> inputs;
  int threads = 1;
  std::string mode;
};

class Contestant {
 public:
  virtual ~Contestant() = default;

  virtual std::string version() const = 0;
  virtual std::string isa() const = 0;
  virtual absl::Status Run() = 0;
  // What a device took for the last run, without the copies from and to the host. None: the host's clock says it.
  virtual std::optional<int64_t> device_ns() const { return std::nullopt; }
  // The last run's; empty where it computes no whole network.
  virtual std::vector<double> Outputs() const = 0;
};

// Reads the arguments, makes the contestant and serves until the end of the input. Returns the exit code.
int Serve(int argc, char** argv,
          const std::function<absl::StatusOr<std::unique_ptr<Contestant>>(const Job& job)>& make);

}  // namespace fuselage::peers

#endif  // FUSELAGE_TOOLS_PEERS_WORKER_H_
