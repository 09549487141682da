#include "kernels/pointwise/pointwise.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/elementwise.h"
#include "kernels/core/broadcast.h"
#include "kernels/fused_elementwise/fused_elementwise.h"

namespace fuselage::pointwise {
namespace {

using kernels::Kernel;
using kernels::KernelDesc;

constexpr int kMostOperands = 3;
constexpr int64_t kBlock = 1024;        // Elements that are gathered at once.
constexpr int64_t kTask = 16 * kBlock;  // Elements that are worth a thread's while.
constexpr int64_t kMostElementBytes = 8;

// y[i] = f(x[0][i], x[1][i], ...)
using Function = void(const void* const* x, void* y, int64_t n);

// --- The functions, by element. Integers wrap.

template <typename T>
using Unsigned = std::make_unsigned_t<T>;
template <typename T>
T Wrap(Unsigned<T> x) {
  return static_cast<T>(x);
}

constexpr auto kAdd = [](auto a, auto b) -> decltype(a) {
  return Wrap<decltype(a)>(static_cast<Unsigned<decltype(a)>>(a) + static_cast<Unsigned<decltype(a)>>(b));
};
constexpr auto kSub = [](auto a, auto b) -> decltype(a) {
  return Wrap<decltype(a)>(static_cast<Unsigned<decltype(a)>>(a) - static_cast<Unsigned<decltype(a)>>(b));
};
constexpr auto kMul = [](auto a, auto b) -> decltype(a) {
  return Wrap<decltype(a)>(static_cast<Unsigned<decltype(a)>>(a) * static_cast<Unsigned<decltype(a)>>(b));
};
constexpr auto kNeg = [](auto a) -> decltype(a) {
  return Wrap<decltype(a)>(Unsigned<decltype(a)>{0} - static_cast<Unsigned<decltype(a)>>(a));
};
constexpr auto kAbs = [](auto a) -> decltype(a) { return a < 0 ? kNeg(a) : a; };
constexpr auto kSign = [](auto a) -> decltype(a) { return (a > 0) - (a < 0); };
constexpr auto kRelu = [](auto a) -> decltype(a) { return a < 0 ? decltype(a){0} : a; };
constexpr auto kMaximum = [](auto a, auto b) -> decltype(a) { return a >= b ? a : b; };
constexpr auto kMinimum = [](auto a, auto b) -> decltype(a) { return a <= b ? a : b; };
constexpr auto kDiv = [](auto a, auto b) -> decltype(a) { return b == -1 ? kNeg(a) : a / b; };
constexpr auto kFmod = [](auto a, auto b) -> decltype(a) { return b == -1 ? 0 : a % b; };
constexpr auto kRemainder = [](auto a, auto b) -> decltype(a) {
  const auto r = kFmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
};
constexpr auto kNot = [](auto a) -> decltype(a) { return ~a; };
constexpr auto kAnd = [](auto a, auto b) -> decltype(a) { return a & b; };
constexpr auto kOr = [](auto a, auto b) -> decltype(a) { return a | b; };
constexpr auto kXor = [](auto a, auto b) -> decltype(a) { return a ^ b; };
constexpr auto kShiftLeft = [](auto a, auto b) -> decltype(a) {
  return b >= 0 && b < 64 ? static_cast<decltype(a)>(static_cast<uint64_t>(a) << b) : decltype(a){0};
};
constexpr auto kShiftRight = [](auto a, auto b) -> decltype(a) {
  const int64_t by = b >= 0 && b < 63 ? static_cast<int64_t>(b) : 63;
  return static_cast<decltype(a)>(static_cast<int64_t>(a) >> by);
};
constexpr auto kEq = [](auto a, auto b) { return a == b; };
constexpr auto kNe = [](auto a, auto b) { return a != b; };
constexpr auto kGt = [](auto a, auto b) { return a > b; };
constexpr auto kGe = [](auto a, auto b) { return a >= b; };
constexpr auto kLt = [](auto a, auto b) { return a < b; };
constexpr auto kLe = [](auto a, auto b) { return a <= b; };
constexpr auto kLogicalNot = [](bool a) { return !a; };
constexpr auto kIsNan = [](float a) { return a != a; };
constexpr auto kIsInf = [](float a) { return __builtin_fabsf(a) == __builtin_inff(); };

template <const auto& f, typename T>
void Map1(const void* const* x, void* y, int64_t n) {
  const T* a = static_cast<const T*>(x[0]);
  auto* to = static_cast<decltype(f(T{}))*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = f(a[i]);
}
template <const auto& f, typename T>
void Map2(const void* const* x, void* y, int64_t n) {
  const T *a = static_cast<const T*>(x[0]), *b = static_cast<const T*>(x[1]);
  auto* to = static_cast<decltype(f(T{}, T{}))*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = f(a[i], b[i]);
}
template <typename T>
void Select(const void* const* x, void* y, int64_t n) {
  const bool* condition = static_cast<const bool*>(x[0]);
  const T *a = static_cast<const T*>(x[1]), *b = static_cast<const T*>(x[2]);
  T* to = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = condition[i] ? a[i] : b[i];
}

// --- Which loop runs elements of a type; null: none.

template <const auto& f, typename T>
constexpr Function* LoopOf() {
  if constexpr (std::is_invocable_v<decltype(f), T, T>) {
    return Map2<f, T>;
  } else {
    return Map1<f, T>;
  }
}
template <const auto& f>
Function* OfIntegers(DType dtype) {
  switch (dtype) {
    case DType::kU8: return LoopOf<f, uint8_t>();
    case DType::kI8: return LoopOf<f, int8_t>();
    case DType::kI32: return LoopOf<f, int32_t>();
    case DType::kI64: return LoopOf<f, int64_t>();
    default: return nullptr;
  }
}
template <const auto& f, DType wanted, typename T>
Function* Only(DType dtype) {
  return dtype == wanted ? LoopOf<f, T>() : nullptr;
}
template <const auto& f>
Function* OfAll(DType dtype) {
  if (dtype == DType::kBool) return LoopOf<f, bool>();
  return dtype == DType::kF32 ? LoopOf<f, float>() : OfIntegers<f>(dtype);
}
Function* ToSelect(DType dtype) {
  switch (ByteSize(dtype)) {
    case 1: return Select<uint8_t>;
    case 2: return Select<uint16_t>;
    case 4: return Select<uint32_t>;
    default: return Select<uint64_t>;
  }
}

struct Row {
  const char* op;
  Function* (*loop)(DType dtype);  // By the element type of the last operand.
};
constexpr Row kRows[] = {
    {"abs", OfIntegers<kAbs>},
    {"add", OfIntegers<kAdd>},
    {"bitwise_and", OfIntegers<kAnd>},
    {"bitwise_left_shift", OfIntegers<kShiftLeft>},
    {"bitwise_not", OfIntegers<kNot>},
    {"bitwise_or", OfIntegers<kOr>},
    {"bitwise_right_shift", OfIntegers<kShiftRight>},
    {"bitwise_xor", OfIntegers<kXor>},
    {"div", OfIntegers<kDiv>},
    {"eq", OfAll<kEq>},
    {"fmod", OfIntegers<kFmod>},
    {"ge", OfAll<kGe>},
    {"gt", OfAll<kGt>},
    {"isinf", Only<kIsInf, DType::kF32, float>},
    {"isnan", Only<kIsNan, DType::kF32, float>},
    {"le", OfAll<kLe>},
    {"logical_and", Only<kAnd, DType::kBool, bool>},
    {"logical_not", Only<kLogicalNot, DType::kBool, bool>},
    {"logical_or", Only<kOr, DType::kBool, bool>},
    {"logical_xor", Only<kXor, DType::kBool, bool>},
    {"lt", OfAll<kLt>},
    {"maximum", OfIntegers<kMaximum>},
    {"minimum", OfIntegers<kMinimum>},
    {"mul", OfIntegers<kMul>},
    {"ne", OfAll<kNe>},
    {"neg", OfIntegers<kNeg>},
    {"relu", OfIntegers<kRelu>},
    {"remainder", OfIntegers<kRemainder>},
    {"sign", OfIntegers<kSign>},
    {"sub", OfIntegers<kSub>},
    {"where", ToSelect},
};

const Row* FindRowOrNull(absl::string_view op) {
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == op; });
  return row == std::end(kRows) ? nullptr : row;
}

// --- The kernel.

class Pointwise final : public Kernel {
 public:
  Pointwise(const KernelDesc& desc, Function* loop)
      : Kernel(desc),
        loop_(loop),
        elements_(desc.output().num_elements()),
        output_bytes_(ByteSize(desc.output().dtype)) {
    for (const auto& input : desc.inputs) {
      const bool whole = input->shape == desc.output().shape;
      operands_.push_back(
          {ByteSize(input->dtype), whole ? nullptr : std::make_unique<kernels::Broadcast>(*input, desc.output())});
    }
    set_scratch_bytes(std::max(desc.threads, 1) * kThreadBytes);
    set_variant("loops");
  }

 private:
  static constexpr int64_t kThreadBytes = kMostOperands * kBlock * kMostElementBytes;

  struct Operand {
    int64_t bytes;                                  // An element's.
    std::unique_ptr<kernels::Broadcast> broadcast;  // Null: as large as the result.
  };

  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    context.parallel->For(static_cast<int>((elements_ + kTask - 1) / kTask), [&](int task, int thread) {
      uint8_t* scratch = static_cast<uint8_t*>(context.scratch.data) + thread * kThreadBytes;
      const int64_t end = std::min(elements_, (task + int64_t{1}) * kTask);
      for (int64_t begin = task * kTask; begin < end; begin += kBlock) {
        const int64_t n = std::min(kBlock, end - begin);
        const void* x[kMostOperands];
        for (size_t i = 0; i < operands_.size(); ++i) {
          x[i] = Block(operands_[i], inputs[i].data, begin, n, scratch + i * kBlock * kMostElementBytes);
        }
        loop_(x, static_cast<uint8_t*>(outputs[0].data) + begin * output_bytes_, n);
      }
    });
  }

  // Elements [begin, begin + n) of an operand that is as large as the result.
  static const void* Block(const Operand& operand, const void* x, int64_t begin, int64_t n, void* scratch) {
    if (operand.broadcast == nullptr) return static_cast<const uint8_t*>(x) + begin * operand.bytes;
    const auto gather = [&](auto element) {
      using T = decltype(element);
      operand.broadcast->Gather(static_cast<const T*>(x), begin, n, static_cast<T*>(scratch));
    };
    switch (operand.bytes) {
      case 1: gather(uint8_t{}); break;
      case 2: gather(uint16_t{}); break;
      case 4: gather(uint32_t{}); break;
      default: gather(uint64_t{}); break;
    }
    return scratch;
  }

  Function* const loop_;
  const int64_t elements_, output_bytes_;
  std::vector<Operand> operands_;
};

absl::Status CheckAttributes(const KernelDesc& desc) {
  if (desc.op == "add" && (desc.GetFloat("alpha") != 1 || desc.GetString("activation") != "none")) {
    return absl::UnimplementedError("an add of integers with an alpha or an activation");
  }
  // Division by zero is an error of the run, which names the element: the reference's.
  if (desc.op == "div" || desc.op == "fmod" || desc.op == "remainder") {
    const Tensor* divisor = desc.ParameterOrNull("other");
    bool divides = divisor != nullptr;
    for (int64_t i = 0; divides && i < divisor->num_elements(); ++i) divides = divisor->At(i) != 0;
    if (!divides) return absl::UnimplementedError(absl::StrCat(desc.op, " by integers that may be 0"));
  }
  if (desc.op == "isinf" && !(desc.GetBool("detect_negative") && desc.GetBool("detect_positive"))) {
    return absl::UnimplementedError("isinf of one sign");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc) {
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    if (!desc.inputs[i]) return absl::InvalidArgumentError(absl::StrCat(desc.op, ": operand ", i, " is absent"));
  }
  if (desc.inputs.empty() || desc.inputs.size() > kMostOperands) {
    return absl::InvalidArgumentError(absl::StrCat(desc.op, ": ", desc.inputs.size(), " operands"));
  }
  const DType dtype = desc.inputs.back()->dtype;
  const bool floats = dtype == DType::kF32 && desc.output().dtype == DType::kF32;
  if (floats && IsElementwiseStep(desc.op)) return fused_elementwise::Create(desc);
  const Row* row = FindRowOrNull(desc.op);
  Function* loop = row == nullptr ? nullptr : row->loop(dtype);
  if (loop == nullptr || desc.output().rank() > kernels::kMostBroadcastAxes) {
    return absl::UnimplementedError(absl::StrCat(desc.op, " of ", ToString(*desc.inputs.back())));
  }
  RETURN_IF_ERROR(CheckAttributes(desc));
  return std::make_unique<Pointwise>(desc, loop);
}

void RegisterAll(kernels::KernelRegistry& registry) {
  const auto add = [&](absl::string_view op) {
    registry.Register({std::string(op), kernels::LayoutRule::kSame, Create});
  };
  for (const absl::string_view op : ElementwiseSteps()) add(op);
  for (const Row& row : kRows) {
    if (!IsElementwiseStep(row.op)) add(row.op);
  }
}

}  // namespace fuselage::pointwise
