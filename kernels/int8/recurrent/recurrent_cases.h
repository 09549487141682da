// Cases for the tests of int8.rnn, int8.gru and int8.lstm, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_RECURRENT_RECURRENT_CASES_H_
#define FUSELAGE_KERNELS_INT8_RECURRENT_RECURRENT_CASES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/recurrent.h"
#include "kernels/core/testing/testing.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::recurrent {

struct Sizes {
  int64_t steps, sequences, inputs, units, directions;
};

inline Tensor Scaled(Shape shape, uint64_t seed, float scale) {
  Tensor x = SeededTensor(kernels::Floats(std::move(shape)), seed);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] *= scale;
  return x;
}

// Scales such that gates are neither 0 nor 1, another one for each row.
inline Tensor Weight(Shape shape, uint64_t seed) {
  std::vector<float> scales;
  for (int64_t row = 0; row < shape[1]; ++row) scales.push_back(0.0008f + 0.0003f * static_cast<float>(row % 7));
  return SeededTensor({DType::kI8, std::move(shape), PerAxis(1, std::move(scales)), Layout::kRowMajor}, seed);
}

// Everything that may be absent is there if `full`; i8 codes then, otherwise u8.
inline kernels::OpCall Layer(const std::string& op, const Sizes& s, bool full, AttributeMap attributes = {}) {
  const int64_t rows = fuselage::recurrent::GatesOf(op) * s.units;
  const TensorType x = kernels::Codes(full ? DType::kI8 : DType::kU8, {s.steps, s.sequences, s.inputs}, 0.01f, 7);
  kernels::OpCall call{
      absl::StrCat("int8.", op),
      {SeededTensor(x, 1), Weight({s.directions, rows, s.inputs}, 2), Weight({s.directions, rows, s.units}, 3)},
      std::move(attributes)};
  if (s.directions == 2) call.attributes.emplace("direction", "bidirectional");
  if (!full) return call;
  Tensor lengths(DType::kI32, {s.sequences});
  for (int64_t n = 0; n < s.sequences; ++n) lengths.Set(n, static_cast<double>((n * 3 + 1) % (s.steps + 1)));
  call.operands.push_back(Scaled({s.directions, 2 * rows}, 4, 0.5f));
  call.operands.push_back(lengths);
  call.operands.push_back(Scaled({s.directions, s.sequences, s.units}, 5, 1.1f));  // Some saturate.
  if (op == "lstm") {
    call.operands.push_back(Scaled({s.directions, s.sequences, s.units}, 6, 2));
    call.operands.push_back(Scaled({s.directions, 3 * s.units}, 7, 0.5f));
  }
  return call;
}

struct Case {
  std::string name;
  kernels::OpCall call;
};

inline std::vector<Case> Cases() {
  using Strings = std::vector<std::string>;
  using Doubles = std::vector<double>;
  std::vector<Case> cases;
  const auto add = [&](const std::string& op, const Sizes& s, bool full, AttributeMap attributes, const char* what) {
    cases.push_back({absl::StrCat(op, " of ", s.steps, " steps, ", s.sequences, " sequences, ", s.units,
                                  " units, full ", full, ", ", what),
                     Layer(op, s, full, std::move(attributes))});
  };
  const Sizes sizes[] = {{4, 1, 3, 1, 1},  {3, 2, 5, 7, 2},   {5, 7, 8, 8, 1},   {2, 3, 1, 9, 2},   {3, 1, 33, 40, 2},
                         {60, 2, 3, 5, 1}, {2, 3, 70, 65, 1}, {3, 20, 4, 64, 1}, {2, 4, 16, 300, 1}};
  const Sizes few{4, 3, 5, 9, 1};
  for (const char* op : {"rnn", "gru", "lstm"}) {
    for (const Sizes& s : sizes) {
      for (const bool full : {false, true}) add(op, s, full, {}, "of any size");
    }
    for (const Sizes& s : {Sizes{0, 2, 3, 4, 2}, Sizes{3, 0, 2, 4, 1}, Sizes{3, 2, 0, 4, 1}}) {
      add(op, s, true, {}, "without steps, sequences or inputs");
    }
    add(op, few, true, {{"clip", 0.2}}, "clip");
    add(op, few, true, {{"direction", "reverse"}}, "reverse");
    cases.push_back({absl::StrCat(op, " with one scale for all rows"), Layer(op, few, true)});
    for (const int i : {1, 2}) {
      TensorType type = cases.back().call.operands[i]->type();
      type.quant = PerTensor(0.002f);
      cases.back().call.operands[i]->set_type(type);
    }
  }
  add("gru", few, true, {{"linear_before_reset", true}}, "linear_before_reset");
  add("gru", {40, 4, 64, 64, 2}, false, {{"linear_before_reset", true}}, "linear_before_reset");
  add("lstm", few, true, {{"input_forget", true}}, "input_forget");
  for (const char* name : {"hard_sigmoid", "sigmoid", "softsign", "tanh"}) {
    add("rnn", {4, 2, 3, 9, 1}, true,
        {{"activations", Strings{name}}, {"alpha", Doubles{0.25}}, {"beta", Doubles{0.5}}}, name);
  }
  // Another one in each place, and in each direction.
  add("lstm", {3, 2, 3, 9, 2}, true,
      {{"activations", Strings{"hard_sigmoid", "softsign", "sigmoid", "sigmoid", "tanh", "hard_sigmoid"}},
       {"alpha", Doubles{0.25, 0, 0, 0, 0, 0.125}},
       {"beta", Doubles{0.5, 0, 0, 0, 0, 0.375}}},
      "its own activations");
  add("gru", {3, 2, 3, 9, 2}, true,
      {{"activations", Strings{"hard_sigmoid", "softsign", "sigmoid", "tanh"}},
       {"alpha", Doubles{0.25, 0, 0, 0}},
       {"beta", Doubles{0.5, 0, 0, 0}}},
      "its own activations");
  return cases;
}

}  // namespace fuselage::int8::recurrent

#endif  // FUSELAGE_KERNELS_INT8_RECURRENT_RECURRENT_CASES_H_
