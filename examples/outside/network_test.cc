// The library that fuselage_model makes computes what its network says: a ReLU.
#include <cstdio>

#include "double_relu_network.h"

int main() {
  constexpr int kValues = 64 * 56 * 56;
  static float x[kValues], y[kValues];
  for (int i = 0; i < kValues; ++i) x[i] = i % 2 == 0 ? i : -i;
  double_relu_network::Network network;
  if (!network.Init() || !network.Run(x, y)) {
    std::fprintf(stderr, "%s\n", network.error());
    return 1;
  }
  for (int i = 0; i < kValues; ++i) {
    if (y[i] != (x[i] > 0 ? x[i] : 0)) {
      std::fprintf(stderr, "y[%d] is %g, wanted the ReLU of %g\n", i, y[i], x[i]);
      return 1;
    }
  }
  return 0;
}
