// Embeds the compiler: from a network's file to INT8, and from an image to logits.
//   bazel run //compiler:example -- $PWD/models/resnet18_fashion_mnist.onnx
#include <algorithm>
#include <iostream>

#include "fuselage/compiler.h"

// `samples`: images to calibrate with, as many as dimension 0 says. For networks of one input.
absl::StatusOr<fuselage::Tensor> Logits(const std::string& path, const fuselage::Tensor& samples,
                                        const fuselage::Tensor& image) {
  absl::StatusOr<fuselage::Model> network = fuselage::Load(path);
  if (!network.ok()) return network.status();
  const std::string input = network->inputs()[0].name, output = network->outputs()[0].name;
  absl::StatusOr<fuselage::Model> int8 = fuselage::Compile(*network, {{input, samples}});
  if (!int8.ok()) return int8.status();
  absl::StatusOr<fuselage::Session> session = fuselage::Prepare(*int8);
  if (!session.ok()) return session.status();
  fuselage::Tensor logits;
  absl::Status ran = session->Run({{input, image}}, {{output, &logits}});
  if (!ran.ok()) return ran;
  return logits;
}

// With random values in place of images.
absl::Status Run(const std::string& path) {
  absl::StatusOr<fuselage::Model> network = fuselage::Load(path);
  if (!network.ok()) return network.status();
  fuselage::TensorType samples = network->inputs()[0].type;
  const fuselage::Tensor image = SeededTensor(samples, /*seed=*/1);
  samples.shape[0] = 16;
  absl::StatusOr<fuselage::Tensor> logits = Logits(path, SeededTensor(samples, /*seed=*/2), image);
  if (!logits.ok()) return logits.status();
  std::cout << network->outputs()[0].name << " " << ToString(logits->type()) << ":";
  for (int64_t i = 0; i < std::min<int64_t>(logits->num_elements(), 10); ++i) std::cout << " " << logits->At(i);
  std::cout << "\n";
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  const absl::Status status = argc == 2 ? Run(argv[1]) : absl::InvalidArgumentError("want the path of a network");
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
