// Recurrent layers, of floats and of codes.
#include "absl/strings/str_cat.h"
#include "ir/testing/draft.h"

namespace fuselage::testing::recipes::recurrent {
namespace {

using ir::Node;

// A layer over the first axis of `type`.
struct Form {
  std::string op, direction;
  int64_t directions, rows, units;  // Rows: of a direction's weights.
};

Form RandomForm(Random& random) {
  Form form{random.From(std::vector<std::string>{"rnn", "gru", "lstm"}),
            random.From(std::vector<std::string>{"forward", "reverse", "bidirectional"}), 1, 1, random.Between(1, 4)};
  form.directions = form.direction == "bidirectional" ? 2 : 1;
  form.rows = (form.op == "rnn" ? 1 : form.op == "gru" ? 3 : 4) * form.units;
  return form;
}

// With some of what may be absent; then parts of the results. `weight` makes a parameter of a name and shape.
template <typename Weight>
bool AddLayer(Draft& draft, Node* x, const Form& form, const std::string& op, DType dtype, Weight weight) {
  Random& random = draft.random();
  const Shape input = x->tensor_type().shape;
  const auto parameter = [&](const char* name, Shape shape) {
    return draft.SeededParameter(absl::StrCat(form.op, ".", name), Of(dtype, std::move(shape)));
  };
  RandomCall call{op, {x}, {}, {{"direction", form.direction}}};
  call.parameters["weight"] = weight("weight", {form.directions, form.rows, input[2]});
  call.parameters["recurrent_weight"] = weight("recurrent_weight", {form.directions, form.rows, form.units});
  if (random.OneIn(2)) call.parameters["bias"] = parameter("bias", {form.directions, 2 * form.rows});
  if (form.op == "lstm" && random.OneIn(3)) {
    call.parameters["peepholes"] = parameter("peepholes", {form.directions, 3 * form.units});
  }
  if (form.op == "gru") call.attributes.emplace("linear_before_reset", random.OneIn(2));
  if (random.OneIn(3)) {  // In front of initial_h: sequence_lens, absent.
    call.operands = {x, nullptr, draft.AddGetAttr(parameter("initial_h", {form.directions, input[1], form.units}))};
  }
  Node* results = draft.AddInRandomSpelling(call);
  if (results == nullptr) return false;
  const int64_t last = form.op == "lstm" ? 2 : 1;
  for (const int64_t index : {int64_t{0}, random.Between(1, last)}) {
    Node* part = draft.AddFunction("getitem", {results}, {{"index", index}});
    if (part != nullptr) draft.set_magnitude(*part, 1);
  }
  return true;
}

bool Recurrent(Draft& draft) {
  Node* x = draft.PickFloatOrNull(3, 3);
  if (x == nullptr || x->tensor_type().shape[2] > 32) return false;
  const Form form = RandomForm(draft.random());
  const DType dtype = x->tensor_type().dtype;
  return AddLayer(draft, x, form, form.op, dtype, [&](const char* name, Shape shape) {
    return draft.SeededParameter(absl::StrCat(form.op, ".", name), Of(dtype, std::move(shape)));
  });
}

// Of codes: dequantized, or as lower leaves it.
bool QuantizedRecurrent(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(3, 3);
  if (x == nullptr || x->tensor_type().shape[2] > 32) return false;
  const double step = static_cast<float>(draft.magnitude(*x) / 100);
  const Form form = RandomForm(random);
  const bool lowered = random.OneIn(2);
  x = lowered ? draft.AddInRandomSpelling({"int8.quantize", {x}, {}, {{"out_scale", step}, {"out_zero_point", 128}}})
              : draft.AddFunction("quantize", {x}, {{"scales", std::vector<double>{step}}, {"dtype", DType::kI8}});
  if (x != nullptr && !lowered) x = draft.AddFunction("dequantize", {x});
  if (x == nullptr) return false;
  const std::string op = lowered ? absl::StrCat("int8.", form.op) : form.op;
  return AddLayer(draft, x, form, op, DType::kF32, [&](const char* name, Shape shape) {
    std::vector<float> scales;
    for (int64_t row = 0; row < shape[1]; ++row) scales.push_back(static_cast<float>(1 + row % 3) / 256);
    const QuantParams params = random.OneIn(3) ? PerTensor(0.0078125f) : PerAxis(1, std::move(scales));
    return draft.SeededParameter(absl::StrCat(name, ".i8"), Of(DType::kI8, std::move(shape), params));
  });
}

}  // namespace

void Register(Recipes& recipes) {
  recipes.Add(Graphs::kEvery, {{6, Recurrent}});
  recipes.Add(Graphs::kQuantized, {{3, QuantizedRecurrent}});
}

}  // namespace fuselage::testing::recipes::recurrent
