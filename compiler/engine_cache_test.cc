#include "compiler/engine_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/testing/matchers.h"

namespace fuselage::compiler {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

// Its arena has 10 bytes for each sample; those for more than 4 have other weights.
class FakeEngine final : public Engine {
 public:
  FakeEngine(int64_t batch, std::set<int64_t>* alive)
      : types_({TensorType{DType::kF32, {batch, 3}, std::nullopt, Layout::kRowMajor}}), alive_(alive) {
    alive_->insert(batch);
  }
  ~FakeEngine() override { alive_->erase(batch()); }

  absl::Status RunInto(absl::Span<const Tensor* const>, absl::Span<Tensor* const>) override { return absl::OkStatus(); }
  const std::vector<TensorType>& input_types() const override { return types_; }
  const std::vector<TensorType>& output_types() const override { return types_; }
  int64_t arena_bytes() const override { return 10 * batch(); }
  int64_t weight_bytes() const override { return batch() > 4 ? 200 : 100; }
  runtime::Executable* executable() override { return nullptr; }
  std::vector<std::string> ReferenceOps() const override { return {}; }

 private:
  const std::vector<TensorType> types_;
  std::set<int64_t>* const alive_;
};

class EngineCacheTest : public ::testing::Test {
 protected:
  // The engines that are there after a use of each.
  std::set<int64_t> After(const std::vector<int64_t>& batches, EngineCache& cache) {
    for (int64_t batch : batches) {
      const auto engine = cache.Get(batch);
      EXPECT_TRUE(engine.ok() && (*engine)->batch() == batch) << batch;
    }
    return alive_;
  }

  std::function<absl::StatusOr<std::unique_ptr<Engine>>(int64_t)> make_ =
      [this](int64_t batch) -> absl::StatusOr<std::unique_ptr<Engine>> {
    if (batch > 100) return absl::ResourceExhaustedError("too large");
    ++made_;
    return std::make_unique<FakeEngine>(batch, &alive_);
  };
  std::set<int64_t> alive_;
  int made_ = 0;
};

TEST_F(EngineCacheTest, TheLeastRecentlyUsedGoes) {
  EngineCache cache(make_, {3});
  EXPECT_THAT(After({1, 2, 3}, cache), ElementsAre(1, 2, 3));
  EXPECT_THAT(After({1, 3, 1}, cache), ElementsAre(1, 2, 3));
  EXPECT_EQ(made_, 3) << "each at its first use";
  EXPECT_THAT(After({4}, cache), ElementsAre(1, 3, 4)) << "2 was used before all others";
  EXPECT_THAT(After({3, 5}, cache), ElementsAre(3, 4, 5));
  EXPECT_EQ(cache.arena_bytes(), 120);
  EXPECT_EQ(cache.weight_bytes(), 200) << "of the one that has most";
  EXPECT_THAT(After({1}, cache), ElementsAre(1, 3, 5));
  EXPECT_EQ(made_, 6);
}

TEST_F(EngineCacheTest, AsManyAsThereIsMemoryFor) {
  EngineCache cache(make_, {8, 200});
  EXPECT_THAT(After({1, 2, 3, 4}, cache), ElementsAre(1, 2, 3, 4)) << "200 bytes";
  EXPECT_THAT(After({1, 5}, cache), ElementsAre(5)) << "250 alone: what makes it says whether that is too much";
  EXPECT_THAT(After({2, 4}, cache), ElementsAre(2, 4)) << "of smaller ones that fit again";
}

TEST_F(EngineCacheTest, WhatCannotBeMadeDrivesNothingOut) {
  EngineCache cache(make_, {1});
  EXPECT_THAT(After({1}, cache), ElementsAre(1));
  EXPECT_THAT(cache.Get(101), StatusIs(absl::StatusCode::kResourceExhausted, "too large"));
  EXPECT_THAT(After({1}, cache), ElementsAre(1));
  EXPECT_EQ(made_, 1);
}

}  // namespace
}  // namespace fuselage::compiler
