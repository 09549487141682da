#include "passes/quantize/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::quantize {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr char kNetwork[] = R"(graph @g {
  param @w: f32[2,2] = [1, 0.5, 0.25, -1]
  module @fc = linear(weight=@w)
  %x: f32[1,2] = placeholder
  %r: f32[1,2] = call_function relu(%x)
  %fc: f32[1,2] = call_module @fc(%r)
  output(%fc)
}
)";

// Gives each node the same values in each sample; `poison` is what element 1 of the last node's last sample becomes.
class FakeRunner : public passes::Runner {
 public:
  explicit FakeRunner(int samples, float value = 1, float poison = 1)
      : samples_(samples), value_(value), poison_(poison) {}

  absl::Status ForEachSample(
      const ir::Graph&, absl::Span<const ir::Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) override {
    for (int sample = 0; sample < samples_; ++sample) {
      std::vector<Tensor> tensors;
      for (const ir::Node* node : nodes) {
        tensors.push_back(Tensor::Of<float>(node->tensor_type().shape, {value_, value_ == 1 ? -2 : value_}));
      }
      if (sample == samples_ - 1 && poison_ != 1) tensors.back().data<float>()[1] = poison_;
      std::vector<const Tensor*> values;
      for (const Tensor& tensor : tensors) values.push_back(&tensor);
      RETURN_IF_ERROR(visit(sample, values));
    }
    return absl::OkStatus();
  }

 private:
  int samples_;
  float value_, poison_;
};

class QuantizeTest : public ::testing::Test {
 protected:
  QuantizeTest() { ops::RegisterAll(ops_); }

  absl::StatusOr<bool> Run(passes::Runner* runner) {
    graph_ = *ir::Parse(kNetwork, ops_);
    remarks_ = {};
    return Quantize(QuantizeOptions(), runner).Run(*graph_, remarks_);
  }

  static bool IsUsage(const absl::Status& status) { return status.GetPayload("fuselage.usage").has_value(); }

  ir::OpRegistry ops_;
  std::unique_ptr<ir::Graph> graph_;
  passes::Remarks remarks_;
};

TEST_F(QuantizeTest, NeedsARunner) {
  const absl::Status status = Run(nullptr).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("quantize needs calibration data")));
  EXPECT_TRUE(IsUsage(status));
}

TEST_F(QuantizeTest, NeedsSamples) {
  FakeRunner runner(0);
  const absl::Status status = Run(&runner).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the calibration set is empty")));
  EXPECT_TRUE(IsUsage(status));
}

TEST_F(QuantizeTest, WarnsAboutASingleSample) {
  FakeRunner one(1), two(2);
  EXPECT_OK(Run(&one));
  EXPECT_THAT(remarks_.list(), Contains(Field(&passes::Remark::message, HasSubstr("single sample"))));
  EXPECT_OK(Run(&two));
  EXPECT_THAT(remarks_.list(), Not(Contains(Field(&passes::Remark::message, HasSubstr("single sample")))));
}

TEST_F(QuantizeTest, NamesTheSampleAndTheTensorThatIsNotFinite) {
  FakeRunner nan(3, 1, std::numeric_limits<float>::quiet_NaN()), inf(3, 1, std::numeric_limits<float>::infinity());
  const absl::Status status = Run(&nan).status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("calibration sample 2: %r: element 1 is nan")));
  EXPECT_FALSE(IsUsage(status));
  EXPECT_THAT(Run(&inf), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("element 1 is inf")));
}

TEST_F(QuantizeTest, NotesConstantsAndGivesThemAFiniteScale) {
  FakeRunner zeros(2, 0), threes(2, 3);
  EXPECT_OK(Run(&zeros));
  EXPECT_THAT(remarks_.list(), Contains(Field(&passes::Remark::message, HasSubstr("is 0 in all calibration samples"))));
  EXPECT_EQ(graph_->FindNodeOrNull("x_q")->tensor_type().quant, PerTensor(1));
  EXPECT_OK(graph_->Verify());
  EXPECT_OK(Run(&threes));
  EXPECT_THAT(remarks_.list(), Contains(Field(&passes::Remark::message, HasSubstr("is 3 in all calibration samples"))));
  EXPECT_EQ(graph_->FindNodeOrNull("x_q")->tensor_type().quant, PerTensor(static_cast<float>(3.0 / 255)));
}

TEST_F(QuantizeTest, RepeatsToTheByte) {
  std::string first;
  for (int i = 0; i < 3; ++i) {
    FakeRunner runner(2);
    EXPECT_OK(Run(&runner));
    if (i == 0) first = ir::Print(*graph_);
    EXPECT_EQ(ir::Print(*graph_), first);
  }
}

TEST_F(QuantizeTest, SourcesNameWhatAPairBelongsTo) {
  FakeRunner runner(2);
  EXPECT_OK(Run(&runner));
  EXPECT_THAT(graph_->FindNodeOrNull("r_q")->sources(), ::testing::ElementsAre("r"));
  EXPECT_THAT(graph_->FindNodeOrNull("r_dq")->sources(), ::testing::ElementsAre("fc"));
}

TEST_F(QuantizeTest, KeepsALayerWithNonFiniteWeightsInFp32) {
  graph_ = *ir::Parse(kNetwork, ops_);
  Tensor weight = *graph_->FindParameterOrNull("w")->tensor;
  weight.data<float>()[3] = std::numeric_limits<float>::infinity();
  const std::string name = graph_->AddParameter("bad", std::make_shared<const Tensor>(weight));
  ASSERT_OK(graph_->UpdateModule(graph_->FindModuleOrNull("fc"), "linear", {}, {{"weight", name}}));
  FakeRunner runner(2);
  ASSERT_OK(Quantize(QuantizeOptions(), &runner).Run(*graph_, remarks_));
  EXPECT_THAT(remarks_.list(), Contains(Field(&passes::Remark::message, "weight: element 3 is inf")));
  EXPECT_EQ(graph_->FindModuleOrNull("fc")->parameters.at("weight"), name);
}

}  // namespace
}  // namespace fuselage::quantize
