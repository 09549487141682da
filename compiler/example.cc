// Embeds the compiler: a network from its file to INT8 and to the classes of an image.
//   bazel run //compiler:example -- resnet18.onnx
#include <algorithm>
#include <iostream>

#include "fuselage/compiler.h"

// The first output in floats and in INT8.
absl::Status Run(const std::string& path) {
  absl::StatusOr<fuselage::Model> network = fuselage::Load(path);
  if (!network.ok()) return network.status();
  const auto& [input, type] = network->inputs()[0];
  fuselage::TensorType samples_type = type;
  samples_type.shape[0] = 16;  // Samples: real ones, in a real program.
  absl::StatusOr<fuselage::Model> int8 = fuselage::Compile(*network, {{input, SeededTensor(samples_type, /*seed=*/1)}});
  if (!int8.ok()) return int8.status();

  const fuselage::Tensor x = SeededTensor(type, /*seed=*/2);
  for (const auto& [name, model] : {std::pair("floats", *network), std::pair("INT8", *int8)}) {
    absl::StatusOr<fuselage::Session> session = fuselage::Prepare(model);
    if (!session.ok()) return session.status();
    fuselage::Tensor y;
    absl::Status ran = session->Run({{input, x}}, {{model.outputs()[0].name, &y}});
    if (!ran.ok()) return ran;
    std::cout << name << ": " << session->weight_bytes() << " bytes of weights, first output " << y.At(0) << "\n";
  }
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  const absl::Status status = argc == 2 ? Run(argv[1]) : absl::InvalidArgumentError("want the path of a network");
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
