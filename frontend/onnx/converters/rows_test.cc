// Models whose data says how many rows there are: what follows from rows that exist is ONNX's result, with room behind.
#include <string>
#include <vector>

#include "frontend/onnx/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"

namespace fuselage::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Of x[6] those above 0, as `kept`; `i`: where they are, i64[n]. 0, 1, 2, 3 are scalars, the others lists.
ModelBuilder Kept() {
  ModelBuilder model = Model(13, {6});
  model.Initializer("zero", Tensor::Scalar<float>(0)).Initializer("l0", I64({0})).Initializer("l1", I64({1}));
  model.Initializer("l2", I64({2})).Initializer("all", I64({-1})).Initializer("n0", Tensor::Scalar<int64_t>(0));
  model.Initializer("n1", Tensor::Scalar<int64_t>(1));
  model.Node("Greater", {"x", "zero"}, {"above"}).Node("NonZero", {"above"}, {"found"});
  model.Node("Squeeze", {"found", "l0"}, {"i"}).Node("Gather", {"x", "i"}, {"kept"});
  return model;
}

const Tensor kX = F32({6}, {1, -1, 5, 0, 2, -3}), kNone = F32({6}, {0, -1, 0, 0, -2, -3});

// Output 0 as far as output 1 counts; what is behind must be 0.
std::vector<double> Rows(const ModelBuilder& model, const Tensor& x) {
  const std::vector<Tensor> outputs = Outputs(model, {x});
  EXPECT_EQ(outputs.size(), 2);
  if (outputs.size() != 2) return {};
  std::vector<double> rows = ToDoubles(outputs[0]);
  const auto count = static_cast<size_t>(outputs[1].data<int64_t>()[0]);
  EXPECT_LE(count, static_cast<size_t>(outputs[0].dim(0)));
  const size_t size = outputs[0].dim(0) == 0 ? 0 : count * rows.size() / outputs[0].dim(0);
  for (size_t i = size; i < rows.size(); ++i) EXPECT_EQ(rows[i], 0);
  rows.resize(size);
  return rows;
}

TEST(Rows, AreCountedByAnOutput) {
  ModelBuilder model = Kept();
  model.Node("Add", {"kept", "kept"}, {"y"});
  const std::vector<Tensor> outputs = Outputs(model, {kX});
  ASSERT_EQ(outputs.size(), 2);
  EXPECT_EQ(ToDoubles(outputs[0]), std::vector<double>({2, 10, 4, 0, 0, 0}));
  EXPECT_EQ(ToDoubles(outputs[1]), std::vector<double>({3}));
  Names names;
  LoadOptions options;
  options.names = &names;
  ASSERT_TRUE(Parse(model.Bytes(), "m.onnx", Ops(), options).ok());
  EXPECT_THAT(names.outputs, ElementsAre("y", "y.count"));
  EXPECT_THAT(Rows(model, kNone), IsEmpty());
}

TEST(Rows, GoThroughViewsAndGathers) {
  ModelBuilder model = Kept();
  model.Initializer("table", F32({6, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  model.Node("Gather", {"table", "i"}, {"pairs"}).Node("Transpose", {"pairs"}, {"t"}).Ints("perm", {1, 0});
  model.Node("Unsqueeze", {"t", "l1"}, {"u"}).Node("Transpose", {"u"}, {"v"}).Ints("perm", {2, 1, 0});
  model.Initializer("s", I64({-1, 2})).Node("Reshape", {"v", "s"}, {"y"});
  EXPECT_THAT(Rows(model, kX), ElementsAre(0, 1, 4, 5, 8, 9));
  // Two numbers a row, and then each a row.
  ModelBuilder flat = model;
  flat.last_node().set_output(0, "rows");
  flat.Node("Reshape", {"rows", "all"}, {"f"}).Node("Neg", {"f"}, {"y"});
  EXPECT_THAT(Rows(flat, kX), ElementsAre(0, -1, -4, -5, -8, -9));
  // And back: as many as there were.
  ModelBuilder back = Kept();
  back.Initializer("table", F32({6, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})).Initializer("s", I64({-1, 2}));
  back.Node("Gather", {"table", "i"}, {"pairs"}).Node("Reshape", {"pairs", "all"}, {"f"});
  back.Node("Reshape", {"f", "s"}, {"again"}).Node("Unsqueeze", {"kept", "l1"}, {"column"});
  back.Node("Add", {"again", "column"}, {"y"});
  EXPECT_THAT(Rows(back, kX), ElementsAre(1, 2, 9, 10, 10, 11));
}

TEST(Rows, AreTheFirstOfASlice) {
  const auto run = [](int64_t start, int64_t end, const Tensor& x) {
    ModelBuilder model = Kept();
    model.Initializer("start", I64({start})).Initializer("end", I64({end}));
    model.Node("Slice", {"kept", "start", "end", "l0"}, {"y"});
    return Rows(model, x);
  };
  EXPECT_THAT(run(0, 2, kX), ElementsAre(1, 5));
  EXPECT_THAT(run(0, INT64_MAX, kX), ElementsAre(1, 5, 2));
  EXPECT_THAT(run(1, 5, kX), ElementsAre(5, 2));
  EXPECT_THAT(run(3, 6, kX), IsEmpty());
  EXPECT_THAT(run(0, 2, kNone), IsEmpty());
}

TEST(Rows, AreSortedWithoutThoseThatDoNotExist) {
  const auto run = [](bool largest, const Tensor& x) {
    ModelBuilder model = Kept();
    // k = min(4, n), as torch.topk is exported.
    model.Initializer("four", I64({4})).Node("Shape", {"kept"}, {"n"}).Node("Concat", {"four", "n"}, {"both"});
    model.Int("axis", 0).Node("ReduceMin", {"both"}, {"k"}).Ints("axes", {0}).Int("keepdims", 1);
    model.Node("Neg", {"kept"}, {"less"}).Node("TopK", {"less", "k"}, {"y", "at"}).Int("largest", largest);
    return Rows(model, x);
  };
  EXPECT_THAT(run(true, kX), ElementsAre(-1, -2, -5));
  EXPECT_THAT(run(false, kX), ElementsAre(-5, -2, -1));
  EXPECT_THAT(run(true, F32({6}, {1, 2, 3, 4, 5, 6})), ElementsAre(-1, -2, -3, -4));
  EXPECT_THAT(run(true, kNone), IsEmpty());
}

TEST(Rows, AreReducedAlone) {
  const auto run = [](const std::string& op, const Tensor& x) {
    ModelBuilder model = Kept();
    model.Node("Neg", {"kept"}, {"less"}).Node(op, {"less"}, {"y"}).Int("keepdims", 0);
    const std::vector<Tensor> outputs = Outputs(model, {x});
    EXPECT_EQ(outputs.size(), 1);
    return outputs[0].At(0);
  };
  EXPECT_EQ(run("ReduceMax", kX), -1);
  EXPECT_EQ(run("ReduceMin", kX), -5);
  EXPECT_EQ(run("ReduceSum", kX), -8);
  EXPECT_EQ(run("ReduceProd", kX), -10);
  EXPECT_NEAR(run("ReduceMean", kX), -8.0 / 3, 1e-6);
  for (const char* op : {"ReduceMax", "ReduceSum", "ReduceMean"}) EXPECT_EQ(run(op, kNone), 0);
  ModelBuilder softmax = Kept();
  softmax.Node("Softmax", {"kept"}, {"s"}).Int("axis", 0).Node("ReduceSum", {"s"}, {"y"}).Int("keepdims", 1);
  EXPECT_NEAR(Outputs(softmax, {kX})[0].At(0), 1, 1e-6);
  ModelBuilder largest = Kept();
  largest.Node("Neg", {"kept"}, {"less"}).Node("ArgMax", {"less"}, {"a"}).Int("axis", 0);
  largest.Node("Cast", {"a"}, {"y"}).Int("to", 1);
  EXPECT_EQ(Outputs(largest, {F32({6}, {4, 7, -1, 2, 3, 9})})[0].At(0), 2);
}

// Parts of as many rows as each has, with their numbers beside them.
TEST(Rows, LieOneBehindAnother) {
  ModelBuilder model = Kept();
  model.Node("Less", {"x", "zero"}, {"below"}).Node("NonZero", {"below"}, {"others"});
  model.Node("Squeeze", {"others", "l0"}, {"j"}).Node("Gather", {"x", "j"}, {"lost"});
  model.Node("Concat", {"kept", "x", "lost"}, {"joined"}).Int("axis", 0);
  model.Node("Shape", {"kept"}, {"sk"}).Node("Shape", {"lost"}, {"sl"}).Node("Shape", {"x"}, {"sx"});
  model.Node("ConstantOfShape", {"sk"}, {"a"}).Value("value", F32({1}, {10}));
  model.Node("ConstantOfShape", {"sx"}, {"b"}).Value("value", F32({1}, {20}));
  model.Node("ConstantOfShape", {"sl"}, {"c"}).Value("value", F32({1}, {30}));
  model.Node("Concat", {"a", "b", "c"}, {"labels"}).Int("axis", 0);
  model.Node("Add", {"joined", "labels"}, {"y"});
  EXPECT_THAT(Rows(model, kX), ElementsAre(11, 15, 12, 21, 19, 25, 20, 22, 17, 29, 27));
}

// What is scattered to rows that do not exist goes nowhere.
TEST(Rows, AreScattered) {
  ModelBuilder model = Kept();
  model.Initializer("into", F32({6}, {9, 9, 9, 9, 9, 9}));
  model.Node("ScatterElements", {"into", "i", "kept"}, {"y"}).Int("axis", 0);
  EXPECT_EQ(ToDoubles(Outputs(model, {kX})[0]), std::vector<double>({1, 9, 5, 9, 2, 9}));
  EXPECT_EQ(ToDoubles(Outputs(model, {kNone})[0]), std::vector<double>({9, 9, 9, 9, 9, 9}));
  // Whole rows, by positions that are repeated.
  ModelBuilder rows = Kept();
  rows.Initializer("into", F32({6, 2}, {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9})).Initializer("two", I64({1, 2}));
  rows.Node("Unsqueeze", {"kept", "l1"}, {"column"}).Node("Expand", {"column", "two"}, {"values"});
  rows.Node("Unsqueeze", {"i", "l1"}, {"at"}).Node("Shape", {"values"}, {"s"}).Node("Expand", {"at", "s"}, {"index"});
  rows.Node("ScatterElements", {"into", "index", "values"}, {"y"}).Int("axis", 0);
  EXPECT_EQ(ToDoubles(Outputs(rows, {kX})[0]), std::vector<double>({1, 1, 9, 9, 5, 5, 9, 9, 2, 2, 9, 9}));
}

// How many there are, as a number, and a result of a fixed size.
TEST(Rows, HaveASizeAndArePadded) {
  ModelBuilder size = Kept();
  size.Node("Shape", {"kept"}, {"s"}).Node("Mul", {"s", "l2"}, {"twice"}).Node("Add", {"twice", "l1"}, {"more"});
  size.Node("Cast", {"more"}, {"y"}).Int("to", 1);
  EXPECT_EQ(ToDoubles(Outputs(size, {kX})[0]), std::vector<double>({7}));
  EXPECT_EQ(ToDoubles(Outputs(size, {kNone})[0]), std::vector<double>({1}));
  ModelBuilder least = Kept();
  least.Node("Shape", {"kept"}, {"s"}).Node("Min", {"s", "l2"}, {"m"}).Node("Cast", {"m"}, {"y"}).Int("to", 1);
  ExpectError(least, "which follows from how many elements data says there are");
  for (const int64_t wanted : {8, 6, 4}) {
    ModelBuilder padded = Kept();
    padded.Initializer("wanted", I64({wanted})).Initializer("seven", Tensor::Scalar<float>(7));
    padded.Node("Shape", {"kept"}, {"s"}).Node("Sub", {"wanted", "s"}, {"missing"});
    padded.Node("Concat", {"l0", "missing"}, {"pads"}).Int("axis", 0).Node("Pad", {"kept", "pads", "seven"}, {"y"});
    std::vector<double> result = {1, 5, 2};
    result.resize(wanted, 7);
    const std::vector<Tensor> outputs = Outputs(padded, {kX});
    ASSERT_EQ(outputs.size(), 1);
    EXPECT_EQ(ToDoubles(outputs[0]), result);
  }
}

TEST(Rows, OfCompressAndRange) {
  ModelBuilder model = Kept();
  model.Node("Compress", {"x", "above"}, {"c"}).Int("axis", 0).Node("Size", {"c"}, {"n"});
  model.Node("Range", {"n0", "n", "n1"}, {"r"}).Node("Cast", {"r"}, {"f"}).Int("to", 1);
  model.Node("Add", {"c", "f"}, {"y"});
  EXPECT_THAT(Rows(model, kX), ElementsAre(1, 6, 4));
}

// A constant repeated for each row, and a branch that asks whether there are any.
TEST(Rows, OfExpandAndIf) {
  ModelBuilder model = Kept();
  model.Initializer("seven", F32({1}, {7})).Node("Shape", {"kept"}, {"s"}).Node("Expand", {"seven", "s"}, {"sevens"});
  model.Node("Concat", {"sevens", "x"}, {"y"}).Int("axis", 0);
  EXPECT_THAT(Rows(model, kX), ElementsAre(7, 7, 7, 1, -1, 5, 0, 2, -3));
  EXPECT_THAT(Rows(model, kNone), ElementsAre(0, -1, 0, 0, -2, -3));
  ModelBuilder choice = Kept();
  choice.Node("Size", {"kept"}, {"n"}).Node("Equal", {"n", "n0"}, {"none"}).Node("If", {"none"}, {"y"});
  const auto branch = [&](const char* name, const char* op) {
    auto* attribute = choice.last_node().add_attribute();
    attribute->set_name(name);
    attribute->set_type(schema::AttributeProto::GRAPH);
    auto* node = attribute->mutable_g()->add_node();
    node->set_op_type(op);
    node->add_input("kept");
    node->add_output(op);
    attribute->mutable_g()->add_output()->set_name(op);
  };
  branch("then_branch", "Neg");
  branch("else_branch", "Abs");
  EXPECT_THAT(Rows(choice, kX), ElementsAre(1, 5, 2));
  EXPECT_THAT(Rows(choice, kNone), IsEmpty());
}

// Boxes (i, i + 1) of scores x, of which those above 0 are candidates.
TEST(Rows, OfBoxes) {
  ModelBuilder model = Kept();
  model.Initializer("most", I64({3})).Initializer("iou", F32({1}, {0.5f})).Initializer("l01", I64({0, 1}));
  model.Initializer("corners", F32({6, 4}, {0, 0, 1, 1, 1, 1, 2, 2, 0, 0, 1, 1, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8}));
  model.Node("Gather", {"corners", "i"}, {"some"}).Node("Unsqueeze", {"some", "l0"}, {"boxes"});
  model.Node("Unsqueeze", {"kept", "l01"}, {"scores"});
  model.Node("NonMaxSuppression", {"boxes", "scores", "most", "iou"}, {"rows"}).Initializer("two", I64({2}));
  model.Node("Gather", {"rows", "two"}, {"column"}).Int("axis", 1).Node("Squeeze", {"column", "l1"}, {"k"});
  model.Node("Gather", {"kept", "k"}, {"y"});
  EXPECT_THAT(Rows(model, kX), ElementsAre(5, 2));  // 1 is of the same box as 5.
  EXPECT_THAT(Rows(model, kNone), IsEmpty());
}

TEST(Rows, ThatWouldMixAreDeclined) {
  ModelBuilder different = Kept();
  different.Node("Less", {"x", "zero"}, {"below"}).Node("NonZero", {"below"}, {"others"});
  different.Node("Squeeze", {"others", "l0"}, {"j"}).Node("Gather", {"x", "j"}, {"lost"});
  different.Node("Add", {"kept", "lost"}, {"y"}, "sum");
  ExpectError(different,
              "node 'sum' (Add): input 1: found f32[6] with as many elements along axis 0 as data says, wanted "
              "as many as another operand has (add)");
  ModelBuilder padded = Kept();
  padded.Initializer("pads", I64({0, 1})).Node("Pad", {"kept", "pads"}, {"y"});
  ExpectError(padded, "wanted an operator that keeps them apart (pad)");
  ModelBuilder last = Kept();
  last.Node("Gather", {"kept", "all"}, {"y"}, "g");
  ExpectError(last, "node 'g' (Gather): input 1: found index -1 of as many elements as data says");
  ModelBuilder ranks = Kept();
  ranks.Node("Unsqueeze", {"x", "l1"}, {"column"}).Node("Concat", {"kept", "column"}, {"y"}, "c").Int("axis", 0);
  ExpectError(ranks, "node 'c' (Concat)");
  ModelBuilder flat = Kept();
  flat.Node("NonMaxSuppression", {"kept", "kept", "l2"}, {"y"}, "nms");
  ExpectError(flat, "node 'nms' (NonMaxSuppression): found boxes f32[6] and scores f32[6], wanted rank 3");
  ModelBuilder scalar = Kept();
  scalar.Node("Unsqueeze", {"i", "l1"}, {"at"}).Node("ScatterND", {"zero", "at", "kept"}, {"y"}, "s");
  ExpectError(scalar, "node 's' (ScatterND)");
  ModelBuilder first = Kept();
  first.Node("Shape", {"kept"}, {"n"}).Node("Slice", {"x", "l0", "n"}, {"y"}, "s");
  ExpectError(first, "node 's' (Slice): input 2: found 'n', which follows from how many elements data says there are");
  ModelBuilder repeated = Kept();
  repeated.Node("Shape", {"kept"}, {"n"}).Node("Tile", {"x", "n"}, {"y"}, "t");
  ExpectError(repeated, "node 't' (Tile): input 1: found 'n', which follows");
  ModelBuilder end = Kept();
  end.Initializer("start", I64({-2})).Initializer("end", I64({INT64_MAX}));
  end.Node("Slice", {"kept", "start", "end", "l0"}, {"y"}, "s");
  ExpectError(end, "wanted a slice from the front (slice)");
}

}  // namespace
}  // namespace fuselage::onnx
