// A program that classifies one image, all of whose pixels are 0.
#include <cstdio>

#include "harness/model/resnet18.h"

int main() {
  static float image[3 * 224 * 224];
  float logits[10];
  resnet18::Network network;
  if (!network.Init() || !network.Run(image, logits)) {
    std::fprintf(stderr, "%s\n", network.error());
    return 1;
  }
  for (const float logit : logits) std::printf("%g\n", logit);
}
