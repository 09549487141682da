// The trained networks, compiled, saved and loaded: to the bits of what was saved, on every instruction set.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage {
namespace {

class NetworksTest : public ::testing::TestWithParam<const char*> {};

TEST_P(NetworksTest, SavedHasTheBitsOfCompiled) {
  ASSERT_OK_AND_ASSIGN(const Model network, Load(absl::StrCat("models/", GetParam(), "_fashion_mnist.onnx")));
  const Value input = network.inputs()[0];
  TensorType type = input.type;
  type.shape[0] = 2;
  ASSERT_OK_AND_ASSIGN(const Model int8, Compile(network, {{input.name, SeededTensor(type, 1)}}));
  const std::string path = absl::StrCat(::testing::TempDir(), "/", GetParam(), ".fuse");
  const Tensor image = SeededTensor(input.type, 2);
  const auto run = [&](const Model& model, kernels::Isa isa) {
    SessionOptions options;
    options.isa = isa;
    absl::StatusOr<Session> session = Prepare(model, options);
    EXPECT_OK(session);
    Tensor logits;
    EXPECT_OK(session->Run({{input.name, image}}, {{model.outputs()[0].name, &logits}}));
    return logits;
  };
  const Tensor wanted = run(int8, kernels::BestIsa());
  SaveOptions options;
  options.isas = {kernels::Isa::kScalar, kernels::BestIsa()};
  ASSERT_OK(Save(int8, path, options));
  ASSERT_OK_AND_ASSIGN(const Model loaded, Load(path));
  EXPECT_EQ(ir::Print(loaded.graph()), ir::Print(int8.graph()));
  for (const kernels::Isa isa : kernels::SupportedIsas()) {
    EXPECT_TRUE(run(loaded, isa).SameBytes(wanted)) << kernels::IsaName(isa);
  }
}

INSTANTIATE_TEST_SUITE_P(All, NetworksTest, ::testing::Values("resnet18", "mobilenet_v2", "vit"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fuselage
