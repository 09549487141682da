// Convolutions over volumes, and what stands between them.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/testing/draft.h"

namespace fuselage::testing::recipes::volumes {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;

// A convolution of a 3x1x1, 1x3x1, 1x1x3 or larger kernel, which keeps the size unless it strides along the depth;
// transposed at times, with taps along the depth that meet or do not.
Node* AddConv(Draft& draft, Node* x, bool strides) {
  Random& random = draft.random();
  const int64_t channels = x->tensor_type().shape[1];
  const bool transposed = strides && random.OneIn(3), depthwise = !transposed && random.OneIn(4);
  Shape weight = {channels, depthwise ? 1 : channels};
  Ints padding(6, 0), stride(3, 1);
  for (int i = 0; i < 3; ++i) {
    weight.push_back(random.OneIn(2) ? 3 : 1);
    padding[i] = padding[3 + i] = weight.back() / 2;
  }
  if (strides) stride[0] = 2;
  if (transposed) weight[2] = random.Between(2, 4);
  RandomCall call{transposed ? "conv_transpose3d" : "conv3d", {x}, {}, {{"stride", stride}, {"padding", padding}}};
  call.attributes.emplace("groups", depthwise ? channels : 1);
  call.parameters["weight"] = draft.SeededParameter("volume.weight", Of(DType::kF32, weight));
  if (random.OneIn(2)) {
    call.parameters["bias"] = draft.SeededParameter("volume.bias", Of(DType::kF32, {channels}));
  }
  Node* conv = draft.AddAsModule(call);
  if (conv != nullptr) draft.set_magnitude(*conv, draft.magnitude(*x) * std::sqrt(9.0 * channels));
  return conv;
}

// x times a gate for each channel.
Node* AddGates(Draft& draft, Node* x) {
  Node* gates = draft.AddAsModule({"global_avg_pool", {x}, {}, {}});
  if (gates != nullptr) gates = draft.AddAsModule({"sigmoid", {gates}, {}, {}});
  return gates == nullptr ? nullptr : draft.AddAsModule({"mul", {x, gates}, {}, {}});
}

Node* AddPool(Draft& draft, Node* x) {
  Random& random = draft.random();
  Ints kernel, stride, padding(6, 0);
  for (int i = 0; i < 3; ++i) {
    kernel.push_back(random.Between(1, std::min<int64_t>(2, x->tensor_type().shape[2 + i])));
    stride.push_back(random.Between(1, 2));
    padding[i] = padding[3 + i] = kernel.back() - 1;
  }
  AttributeMap attributes = {
      {"kernel_size", kernel}, {"stride", stride}, {"padding", padding}, {"ceil_mode", random.OneIn(4)}};
  return draft.AddAsModule({random.OneIn(2) ? "max_pool3d" : "avg_pool3d", {x}, {}, std::move(attributes)});
}

// An image's rows as frames.
bool Volumes(Draft& draft) {
  Node* x = draft.PickOrNull([&](const Node& node) {
    if (!node.type().is_tensor() || draft.magnitude(node) > 1e3) return false;
    const TensorType& type = node.tensor_type();
    return type.dtype == DType::kF32 && type.rank() == 4 && type.num_elements() > 0 && type.num_elements() <= 200;
  });
  if (x == nullptr) return false;
  Random& random = draft.random();
  x = draft.AddInRandomSpelling({"unsqueeze", {x}, {}, {{"dims", Ints{random.OneIn(2) ? 4 : 3}}}});
  if (x != nullptr) x = AddConv(draft, x, random.OneIn(3));
  for (int64_t left = random.Between(0, 3); x != nullptr && left > 0; --left) {
    switch (random.Between(0, 6)) {
      case 0: x = draft.AddAsModule({"relu", {x}, {}, {}}); break;
      case 1: x = AddPool(draft, x); break;
      case 2: x = AddGates(draft, x); break;
      case 3: x = draft.AddInRandomSpelling({"cat", {x, x}, {}, {{"dim", 1}}}); break;
      case 4: {
        RandomCall norm{"instance_norm", {x}, {}, {{"eps", 0.5}}};
        if (random.OneIn(2)) norm = {"group_norm", {x}, {}, {{"num_groups", int64_t{1}}, {"eps", 0.5}}};
        x = draft.AddAsModule(norm);
        break;
      }
      case 5: {
        Node* y = AddConv(draft, x, false);
        x = y == nullptr ? nullptr : draft.AddAsModule({"add", {y, x}, {}, {}});
        break;
      }
      default: x = AddConv(draft, x, random.OneIn(2)); break;
    }
  }
  return x != nullptr;
}

}  // namespace

void Register(Recipes& recipes) { recipes.Add(Graphs::kEvery, {{4, Volumes}}); }

}  // namespace fuselage::testing::recipes::volumes
