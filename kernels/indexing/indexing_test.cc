#include "kernels/indexing/indexing.h"

#include <cstring>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/op.h"
#include "ir/ops/register_all.h"
#include "kernels/core/testing/testing.h"

namespace fuselage::indexing {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string op;
  std::vector<Tensor> operands;
  AttributeMap attributes;
};

const ir::OpRegistry& Ops() {
  static const auto* registry = [] {
    auto* created = new ir::OpRegistry;
    ops::RegisterAll(*created);
    return created;
  }();
  return *registry;
}

// The kernel's result for a case, in guarded memory, and its status.
struct Run {
  absl::Status status;
  std::vector<Tensor> results;
};

Run RunReference(const Case& test) {
  const ir::OpSchema& schema = *Ops().FindOrNull(test.op);
  std::vector<ir::Type> types;
  std::vector<std::vector<Tensor>> values;
  for (const Tensor& operand : test.operands) {
    types.emplace_back(operand.type());
    values.push_back({operand});
  }
  std::vector<const ir::Type*> type_pointers;
  std::vector<const std::vector<Tensor>*> operands;
  for (size_t i = 0; i < types.size(); ++i) {
    type_pointers.push_back(&types[i]);
    operands.push_back(&values[i]);
  }
  const auto type = ir::Infer(schema, test.attributes, type_pointers);
  EXPECT_TRUE(type.ok()) << test.op << type.status();
  auto results = ir::Evaluate(schema, test.attributes, operands, *type);
  Run run{results.status(), {}};
  if (results.ok()) run.results = *std::move(results);
  for (const TensorType& element : type->elements()) {
    if (!results.ok()) run.results.emplace_back(element);
  }
  return run;
}

kernels::KernelDesc Desc(const Case& test, const Run& reference, int threads) {
  kernels::KernelDesc desc;
  desc.op = test.op;
  desc.threads = threads;
  for (const ir::AttributeSpec& spec : Ops().FindOrNull(test.op)->attributes) {
    const auto it = test.attributes.find(spec.name);
    desc.attributes.emplace(spec.name, it != test.attributes.end() ? it->second : *spec.default_value);
  }
  for (const Tensor& operand : test.operands) desc.inputs.push_back(operand.type());
  for (const Tensor& result : reference.results) desc.outputs.push_back(result.type());
  return desc;
}

// Bit for bit the reference, on one thread and three, or the reference's error; operands that no run changes or not.
void ExpectReference(const Case& test) {
  SCOPED_TRACE(test.op + " of " + ToString(test.operands[0].type()));
  const Run reference = RunReference(test);
  for (const auto& [threads, constant] : {std::pair{1, false}, {3, false}, {3, true}}) {
    kernels::KernelDesc desc = Desc(test, reference, threads);
    const ir::OpSchema& schema = *Ops().FindOrNull(test.op);
    for (size_t i = 1; constant && i < test.operands.size(); ++i) {
      desc.parameters[schema.operands[i].name] = &test.operands[i];
    }
    const auto kernel = Create(desc);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    std::vector<kernels::ConstBuffer> in;
    for (const Tensor& operand : test.operands) in.push_back({operand.raw_data(), operand.byte_size()});
    std::vector<kernels::GuardedMemory> memory;
    memory.reserve(reference.results.size());
    std::vector<kernels::Buffer> out;
    for (const Tensor& result : reference.results) {
      memory.emplace_back(result.byte_size());
      out.push_back({memory.back().data(), result.byte_size()});
    }
    kernels::GuardedMemory scratch((*kernel)->scratch_bytes());
    kernels::TestThreads parallel(threads);
    const absl::Status status = (*kernel)->Run(in, out, {&parallel, {scratch.data(), scratch.size()}});
    EXPECT_EQ(status.ok(), reference.status.ok()) << status;
    EXPECT_THAT(std::string(reference.status.message()), HasSubstr(std::string(status.message())));
    EXPECT_TRUE(scratch.guards_intact());
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_TRUE(memory[i].guards_intact());
      if (!status.ok() || out[i].bytes == 0) continue;
      EXPECT_EQ(std::memcmp(out[i].data, reference.results[i].raw_data(), out[i].bytes), 0) << "result " << i;
    }
  }
}

Tensor Values(DType dtype, Shape shape, uint64_t seed = 1) {
  return SeededTensor({dtype, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

// Seeded positions on an axis of `dim` elements, from both ends.
Tensor Index(Shape shape, int64_t dim, DType dtype = DType::kI64) {
  Tensor index(dtype, std::move(shape));
  const Tensor seeded = Values(DType::kI64, index.shape(), 5);
  for (int64_t i = 0; i < index.num_elements(); ++i) {
    index.Set(i, static_cast<double>((seeded.data<int64_t>()[i] + 1000 * dim) % (2 * dim) - dim));
  }
  return index;
}

// Whole numbers, which floats add and multiply exactly.
Tensor Whole(DType dtype, Shape shape, uint64_t seed) {
  Tensor tensor(dtype, std::move(shape));
  const Tensor seeded = Values(DType::kI64, tensor.shape(), seed);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, static_cast<double>(seeded.data<int64_t>()[i] % 4));
  return tensor;
}

TEST(Indexing, GathersOfEveryElementSize) {
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kI64, DType::kBool}) {
    for (const DType index : {DType::kI32, DType::kI64}) {
      ExpectReference({"index_select", {Values(dtype, {5, 7}), Index({3, 2}, 5, index)}, {}});
      ExpectReference({"index_select", {Values(dtype, {3, 6, 2, 2}), Index({4}, 6, index)}, {{"dim", 1}}});
      ExpectReference({"index_select", {Values(dtype, {4, 3}), Index({}, 3, index)}, {{"dim", -1}}});
      ExpectReference({"gather", {Values(dtype, {3, 4, 5}), Index({2, 6, 5}, 4, index)}, {{"dim", 1}}});
      ExpectReference({"gather", {Values(dtype, {9}), Index({20}, 9, index)}, {}});
      ExpectReference({"gather_nd", {Values(dtype, {3, 4, 5}), Index({2, 3, 2}, 3, index)}, {}});
      ExpectReference({"gather_nd", {Values(dtype, {3, 4, 5}), Index({3, 2, 1}, 4, index)}, {{"batch_dims", 1}}});
    }
  }
  ExpectReference({"index_select", {Values(DType::kF32, {500, 64}), Index({2, 300}, 500)}, {}});
  ExpectReference({"index_select", {Values(DType::kF32, {5, 0}), Index({3}, 5)}, {}});
  ExpectReference({"index_select", {Values(DType::kF32, {5, 2}), Tensor(DType::kI64, {0})}, {}});
  ExpectReference({"gather_nd", {Values(DType::kF32, {0, 4}), Tensor(DType::kI64, {0, 1})}, {{"batch_dims", 1}}});
}

TEST(Indexing, Scatters) {
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kI32, DType::kF32, DType::kI64}) {
    for (const char* reduce : {"none", "add", "mul", "max", "min"}) {
      const Tensor x = Whole(dtype, {4, 5, 6}, 1);
      const AttributeMap attributes = {{"reduce", reduce}};
      for (const int axis : {0, 1, 2}) {
        AttributeMap along = attributes;
        along.emplace("dim", axis);
        ExpectReference({"scatter", {x, Index({3, 4, 4}, 4), Whole(dtype, {3, 4, 4}, 2)}, along});
      }
      ExpectReference({"scatter_nd", {x, Index({7, 1}, 4), Whole(dtype, {7, 5, 6}, 3)}, attributes});
      ExpectReference({"scatter_nd", {x, Index({2, 9, 3}, 4), Whole(dtype, {2, 9}, 4)}, attributes});
    }
  }
  ExpectReference(
      {"scatter_nd", {Values(DType::kF32, {9, 9000}), Index({20, 1}, 9), Values(DType::kF32, {20, 9000}, 2)}, {}});
  ExpectReference({"scatter", {Values(DType::kF16, {4}), Tensor(DType::kI64, {0}), Tensor(DType::kF16, {0})}, {}});
}

// Places next to each other, as those of a slice are, some of them twice.
TEST(Indexing, ScattersSlices) {
  for (const char* reduce : {"none", "add"}) {
    for (const int64_t first : {0, 2, 5}) {
      std::vector<int64_t> tuples;
      for (int64_t i = 0; i < 2 * 24; ++i) tuples.insert(tuples.end(), {i / 12, first + i % 12 / 3, i % 3});
      ExpectReference(
          {"scatter_nd",
           {Whole(DType::kF32, {4, 9, 3}, 1), Tensor::Of<int64_t>({48, 3}, tuples), Whole(DType::kF32, {48}, 2)},
           {{"reduce", reduce}}});
      std::vector<int64_t> rows(40);
      for (int64_t i = 0; i < 40; ++i) rows[i] = (first + i) % 23;
      ExpectReference(
          {"scatter_nd",
           {Whole(DType::kF32, {23, 5}, 1), Tensor::Of<int64_t>({40, 1}, rows), Whole(DType::kF32, {40, 5}, 2)},
           {{"reduce", reduce}}});
    }
  }
}

// NaN wins; sums of i64 wrap around.
TEST(Indexing, ScattersAtTheEnds) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor index = Tensor::Of<int64_t>({2}, {0, 1});
  for (const char* reduce : {"max", "min"}) {
    ExpectReference(
        {"scatter", {Tensor::Of<float>({2}, {nan, 1}), index, Tensor::Of<float>({2}, {1, nan})}, {{"reduce", reduce}}});
  }
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const char* reduce : {"add", "mul"}) {
    ExpectReference({"scatter",
                     {Tensor::Of<int64_t>({2}, {most, most}), index, Tensor::Of<int64_t>({2}, {3, most})},
                     {{"reduce", reduce}}});
  }
}

// The first position that is beyond its axis, whatever thread meets it.
TEST(Indexing, NamesAPositionBeyondItsAxis) {
  Tensor index = Index({5000}, 40);
  for (const int64_t i : {4990, 100, 2500}) index.data<int64_t>()[i] = 40 + i;
  const Tensor x = Values(DType::kF32, {40, 8}), line = Values(DType::kF32, {40});
  ExpectReference({"index_select", {x, index}, {}});
  ExpectReference({"gather", {line, index}, {}});
  ExpectReference({"scatter", {line, index, Values(DType::kF32, {5000})}, {}});
  Tensor rows = index;
  rows.set_type({DType::kI64, {5000, 1}, std::nullopt, Layout::kRowMajor});
  ExpectReference({"gather_nd", {x, rows}, {}});
  ExpectReference({"scatter_nd", {x, rows, Values(DType::kF32, {5000, 8})}, {}});
  ExpectReference({"index_select", {x, Tensor::Of<int64_t>({1}, {std::numeric_limits<int64_t>::min()})}, {}});
  ExpectReference({"reverse_sequence", {x, Tensor::Of<int64_t>({8}, {0, 1, 2, 3, 4, 5, 6, 41})}, {}});
}

TEST(Indexing, OneHot) {
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kI64}) {
    for (const int axis : {0, 1, -1}) {
      Tensor index = Index({3, 50}, 9);
      index.data<int64_t>()[7] = 9;
      index.data<int64_t>()[8] = -10;
      ExpectReference({"one_hot", {index, Values(dtype, {2})}, {{"num_classes", 9}, {"dim", axis}}});
    }
  }
  ExpectReference({"one_hot", {Index({3}, 4, DType::kI32), Values(DType::kF32, {2})}, {{"num_classes", 0}}});
}

TEST(Indexing, ReversesSequences) {
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kI64}) {
    const Tensor lengths = Tensor::Of<int64_t>({4}, {0, 3, 5, 1});
    ExpectReference({"reverse_sequence", {Values(dtype, {5, 4, 3}), lengths}, {}});
    ExpectReference({"reverse_sequence", {Values(dtype, {4, 2, 5}), lengths}, {{"batch_dim", 0}, {"time_dim", 2}}});
    ExpectReference({"reverse_sequence", {Values(dtype, {2, 5, 1, 4}), lengths}, {{"batch_dim", -1}, {"time_dim", 1}}});
  }
}

TEST(Indexing, Triangles) {
  for (const char* op : {"tril", "triu"}) {
    for (const DType dtype : {DType::kBool, DType::kF16, DType::kF32, DType::kI64}) {
      for (const int64_t diagonal :
           {int64_t{-9}, int64_t{-1}, int64_t{0}, int64_t{2}, int64_t{9}, INT64_MAX, INT64_MIN}) {
        ExpectReference({op, {Values(dtype, {2, 4, 6})}, {{"diagonal", diagonal}}});
        ExpectReference({op, {Values(dtype, {6, 4})}, {{"diagonal", diagonal}}});
      }
    }
    ExpectReference({op, {Values(DType::kF32, {300, 100})}, {}});
    ExpectReference({op, {Values(DType::kF32, {3, 0})}, {}});
  }
}

TEST(Indexing, Topk) {
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kI32, DType::kF32, DType::kI64}) {
    for (const bool largest : {true, false}) {
      for (const int axis : {0, 1, 2}) {
        for (const int k : {0, 1, 3}) {
          ExpectReference({"topk", {Whole(dtype, {3, 5, 4}, 1)}, {{"k", k}, {"dim", axis}, {"largest", largest}}});
        }
      }
      ExpectReference({"topk", {Values(dtype, {2, 700})}, {{"k", 50}, {"largest", largest}}});
      ExpectReference({"topk", {Values(dtype, {7})}, {{"k", 7}, {"largest", largest}}});
    }
  }
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::Of<float>({6}, {infinity, nan, 1, nan, -infinity, 0});
  for (const bool largest : {true, false}) ExpectReference({"topk", {x}, {{"k", 5}, {"largest", largest}}});
}

TEST(Indexing, Nonzero) {
  for (const DType dtype : {DType::kBool, DType::kU8, DType::kI8, DType::kI32, DType::kI64, DType::kF32}) {
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 5}, Shape{2, 1, 3, 4}, Shape{4, 0}, Shape{0, 3}}) {
      ExpectReference({"nonzero", {Whole(dtype, shape, 2)}, {}});
    }
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ExpectReference({"nonzero", {Tensor::Of<float>({4}, {-0.0f, nan, 0, -1})}, {}});
}

// Coordinates and scores of few values: boxes that overlap, have no area, or are equal.
TEST(Indexing, Nms) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [images, classes, n] :
       {std::tuple{1, 1, 40}, std::tuple{2, 3, 25}, std::tuple{3, 2, 1}, std::tuple{1, 4, 0}, std::tuple{0, 2, 3}}) {
    Tensor boxes = Whole(DType::kF32, {images, n, 4}, 3), scores = Whole(DType::kF32, {images, classes, n}, 4);
    for (const bool odd : {false, true}) {
      if (odd && boxes.num_elements() > 8) boxes.data<float>()[7] = scores.data<float>()[1] = nan;
      for (const bool center : {false, true}) {
        for (const double iou : {0.0, 0.25, 0.6}) {
          for (const int most : {0, 2, 50}) {
            ExpectReference({"nms",
                             {boxes, scores},
                             {{"max_output_boxes_per_class", most},
                              {"iou_threshold", iou},
                              {"score_threshold", iou},
                              {"center_point_box", center}}});
          }
        }
      }
    }
  }
  ExpectReference({"nms",
                   {Values(DType::kF32, {1, 500, 4}), Values(DType::kF32, {1, 4, 500}, 2)},
                   {{"max_output_boxes_per_class", 100}, {"iou_threshold", 0.3}}});
}

TEST(Indexing, MaxPoolWithIndices) {
  using Ints = std::vector<int64_t>;
  for (const DType dtype : {DType::kF32, DType::kI32, DType::kU8, DType::kI8}) {
    // Whole numbers: many are equal.
    ExpectReference(
        {"max_pool1d_with_indices", {Whole(dtype, {2, 3, 9}, 1)}, {{"kernel_size", Ints{3}}, {"stride", Ints{2}}}});
    ExpectReference({"max_pool2d_with_indices",
                     {Whole(dtype, {2, 5, 6, 7}, 2)},
                     {{"kernel_size", Ints{3, 2}},
                      {"stride", Ints{1, 2}},
                      {"padding", Ints{1, 0, 2, 1}},
                      {"dilation", Ints{1, 2}},
                      {"ceil_mode", true}}});
    ExpectReference({"max_pool3d_with_indices",
                     {Values(dtype, {1, 2, 4, 3, 5}, 3)},
                     {{"kernel_size", Ints{2, 2, 3}}, {"stride", Ints{2, 1, 1}}, {"padding", Ints{0, 1, 0, 0, 0, 1}}}});
  }
  // A window of taps three apart steps over the whole input; a NaN wins.
  ExpectReference({"max_pool1d_with_indices",
                   {Tensor::Of<float>({1, 1, 2}, {1, 2})},
                   {{"kernel_size", Ints{2}}, {"stride", Ints{1}}, {"padding", Ints{1, 2}}, {"dilation", Ints{3}}}});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ExpectReference({"max_pool1d_with_indices",
                   {Tensor::Of<float>({1, 1, 4}, {3, nan, 5, 1})},
                   {{"kernel_size", Ints{3}}, {"stride", Ints{1}}}});
  const Case half{
      "max_pool1d_with_indices", {Values(DType::kF16, {1, 1, 4})}, {{"kernel_size", Ints{3}}, {"stride", Ints{1}}}};
  EXPECT_EQ(Create(Desc(half, RunReference(half), 1)).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(Indexing, Declines) {
  const Case half{"scatter", {Values(DType::kF16, {4}), Index({2}, 4), Values(DType::kF16, {2})}, {{"reduce", "add"}}};
  EXPECT_EQ(Create(Desc(half, RunReference(half), 1)).status().code(), absl::StatusCode::kUnimplemented);
  const Case topk{"topk", {Values(DType::kF64, {4})}, {{"k", 2}}};
  EXPECT_EQ(Create(Desc(topk, RunReference(topk), 1)).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::indexing
