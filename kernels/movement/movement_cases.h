// Cases for the tests of the movement operators, on all devices.
#ifndef FUSELAGE_KERNELS_MOVEMENT_MOVEMENT_CASES_H_
#define FUSELAGE_KERNELS_MOVEMENT_MOVEMENT_CASES_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/base/check.h"
#include "ir/op.h"
#include "kernels/core/kernel.h"

namespace fuselage::movement {

using Ints = std::vector<int64_t>;

inline TensorType Of(DType dtype, Shape shape) { return {dtype, std::move(shape), std::nullopt, Layout::kRowMajor}; }

struct Case {
  const char* op;
  std::vector<Shape> inputs;
  AttributeMap attributes;
  std::optional<QuantParams> codes = std::nullopt;  // Of operands of u8.
};

// Of an operand of this shape.
inline TensorType TypeOf(const Case& test, DType dtype, const Shape& shape) {
  TensorType type = Of(dtype, shape);
  if (dtype == DType::kU8) type.quant = test.codes;
  return type;
}

inline std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"permute", {{2, 3, 4}}, {{"dims", Ints{2, 0, 1}}}},
      {"permute", {{2, 3, 4, 5}}, {{"dims", Ints{0, 2, 3, 1}}}},
      {"permute", {{2, 1, 4, 5}}, {{"dims", Ints{-1, 1, 0, 2}}}},
      {"permute", {{}}, {{"dims", Ints{}}}},
      // Two rows by turns: fewer elements than a vector has, as many, and a rest.
      {"permute", {{3, 2, 1}}, {{"dims", Ints{0, 2, 1}}}},
      {"permute", {{3, 2, 7}}, {{"dims", Ints{0, 2, 1}}}},
      {"permute", {{3, 2, 16}}, {{"dims", Ints{0, 2, 1}}}},
      {"permute", {{3, 2, 58}}, {{"dims", Ints{0, 2, 1}}}},
      {"permute", {{2, 3, 4, 5, 16}}, {{"dims", Ints{3, 2, 1, 0, 4}}}},
      // Matrices whose rows become columns: of blocks of 2 to 16 rows and columns, of less, and of a rest.
      {"permute", {{2, 16, 16}}, {{"dims", Ints{0, 2, 1}}}},
      {"permute", {{3, 17, 83}}, {{"dims", Ints{0, 2, 1}}}},
      {"permute", {{1, 9, 40}}, {{"dims", Ints{0, 2, 1}}}},
      {"permute", {{2, 130, 8}}, {{"dims", Ints{0, 2, 1}}}},
      {"permute", {{7, 31}}, {{"dims", Ints{1, 0}}}},
      {"permute", {{2, 19, 3, 21}}, {{"dims", Ints{0, 3, 2, 1}}}},
      {"permute", {{18, 3, 5, 20}}, {{"dims", Ints{3, 2, 1, 0}}}},
      {"slice", {{5, 6}}, {{"starts", Ints{1, -2}}, {"ends", Ints{4, 100}}}},
      {"slice", {{2, 5, 3, 3}}, {{"starts", Ints{4}}, {"ends", Ints{-100}}, {"axes", Ints{1}}, {"steps", Ints{-2}}}},
      {"slice", {{4, 4}}, {{"starts", Ints{100}}, {"ends", Ints{0}}, {"axes", Ints{-1}}, {"steps", Ints{-1}}}},
      {"slice", {{4, 4}}, {{"starts", Ints{2}}, {"ends", Ints{2}}, {"axes", Ints{0}}}},
      {"slice", {{4}}, {{"starts", Ints{1}}, {"ends", Ints{4}}, {"axes", Ints{0}}, {"steps", Ints{1000}}}},
      {"split", {{2, 7, 3, 2}}, {{"sizes", Ints{3, 0, 4}}, {"dim", 1}}},
      {"split", {{7, 2}}, {{"sizes", Ints{1, 6}}, {"dim", -2}}},
      {"cat", {{2, 1, 3, 2}, {2, 4, 3, 2}, {2, 0, 3, 2}}, {{"dim", 1}}},
      {"cat", {{3, 2}, {3, 5}}, {{"dim", -1}}},
      {"cat", {{100, 200}, {60, 200}}, {{"dim", 0}}},
      {"pad", {{2, 3, 2, 2}}, {{"pads", Ints{0, 1, 2, 3, 1, 0, 0, 1}}, {"value", 7.0}}},
      {"pad", {{3}}, {{"pads", Ints{0, 0}}}},
      {"pad", {{0, 2}}, {{"pads", Ints{1, 0, 1, 0}}}},
      {"pad", {{5, 4, 3, 6}}, {{"pads", Ints{-1, 2, 0, -2, -1, -3, 1, 1}}, {"value", 3.0}}},
      {"pad", {{5, 4}}, {{"pads", Ints{-3, -4, -2, 1}}, {"value", 3.0}}},
      {"pad", {{6}}, {{"pads", Ints{2, -8}}, {"value", 3.0}}},
      {"pad", {{6}}, {{"pads", Ints{-8, 3}}, {"value", 3.0}}},
      {"pad", {{2, 3, 4, 5}}, {{"pads", Ints{0, 1, 3, 2, 0, 2, 1, 4}}, {"mode", "reflect"}}},
      {"pad", {{2, 1, 4}}, {{"pads", Ints{1, 0, 0, 1, 0, 3}}, {"mode", "reflect"}}},
      {"pad", {{2, 3, 4, 5}}, {{"pads", Ints{0, 1, 7, 2, 3, 0, 0, 9}}, {"mode", "edge"}}},
      {"pad", {{2, 3, 4, 5}}, {{"pads", Ints{0, 1, 7, 2, 3, 0, 0, 13}}, {"mode", "wrap"}}},
      {"pad", {{1}}, {{"pads", Ints{3, 4}}, {"mode", "wrap"}}},
      {"pad", {{0, 3}}, {{"pads", Ints{0, 1, 0, 1}}, {"mode", "edge"}}},
      {"pad", {{2, 3, 4, 5}}, {{"pads", Ints{0, 1, 3, 2, 0, 2, -1, 4}}}, PerTensor(0.5f, 9)},
      {"stack_frames", {{6, 5, 3, 2}}, {{"frames", 3}, {"kernel_size", Ints{2}}}},
      {"stack_frames",
       {{8, 16, 3, 2}},
       {{"frames", 4}, {"kernel_size", Ints{3}}, {"padding", Ints{1, 1}}},
       PerTensor(0.5f, 9)},
      {"stack_frames",
       {{10, 6, 3, 2}},
       {{"frames", 5}, {"kernel_size", Ints{3}}, {"padding", Ints{0, 7}}, {"stride", Ints{2}}, {"as_rows", true}}},
      {"stack_frames",
       {{3, 2, 2, 2}},
       {{"frames", 3}, {"kernel_size", Ints{3}}, {"padding", Ints{5, 0}}, {"dilation", Ints{3}}}},
      {"stack_frames", {{5, 2, 2, 2}}, {{"frames", 5}, {"kernel_size", Ints{1}}, {"stride", Ints{3}}}},
  };
  for (int64_t channels = 1; channels <= 132; channels += channels < 20 ? 1 : 14) {  // Rows of all lengths.
    cases.push_back({"cat", {{1, channels, 3, 5}, {1, channels + 1, 3, 5}}, {{"dim", 1}}});
  }
  return cases;
}

// With operands and results of rank 4 in `layout`.
inline kernels::KernelDesc Desc(const Case& test, const ir::OpSchema& schema, DType dtype, Layout layout) {
  kernels::KernelDesc desc;
  desc.op = test.op;
  for (const ir::AttributeSpec& spec : schema.attributes) {
    const auto it = test.attributes.find(spec.name);
    desc.attributes.emplace(spec.name, it != test.attributes.end() ? it->second : *spec.default_value);
  }
  std::vector<ir::Type> types;
  for (const Shape& shape : test.inputs) {
    types.emplace_back(TypeOf(test, dtype, shape));
    desc.inputs.push_back(TypeOf(test, dtype, shape));
    if (shape.size() == 4) desc.inputs.back()->layout = layout;
  }
  std::vector<const ir::Type*> pointers;
  for (const ir::Type& type : types) pointers.push_back(&type);
  const auto result = ir::Infer(schema, test.attributes, pointers);
  FUSELAGE_CHECK(result.ok());
  for (TensorType output : result->elements()) {
    if (output.rank() == 4) output.layout = layout;
    desc.outputs.push_back(std::move(output));
  }
  return desc;
}

}  // namespace fuselage::movement

#endif  // FUSELAGE_KERNELS_MOVEMENT_MOVEMENT_CASES_H_
