#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/scanner.h"
#include "ir/text.h"

namespace fuselage::ir {
namespace {

class Parser {
 public:
  // `limits` may be null.
  Parser(Scanner in, const OpRegistry& ops, const UntrustedText* limits, const ParameterSource& source)
      : in_(std::move(in)), ops_(ops), limits_(limits), source_(source) {}

  absl::StatusOr<std::unique_ptr<Graph>> ParseGraph() {
    // Generous: a line of 20 characters is a node, or a parameter, of less than a kilobyte.
    constexpr int64_t kBytesPerCharacter = 64;
    if (limits_ != nullptr) {
      RETURN_IF_ERROR(limits_->budget.Charge(kBytesPerCharacter * in_.remaining(), "the parsed text"));
    }
    RETURN_IF_ERROR(in_.Expect("graph"));
    RETURN_IF_ERROR(in_.Expect("@"));
    ASSIGN_OR_RETURN(std::string name, in_.Name());
    graph_ = std::make_unique<Graph>(name, ops_);
    RETURN_IF_ERROR(in_.Expect("{"));
    while (!in_.Accept("}")) {
      in_.SkipSpace();
      const size_t begin = in_.position();
      absl::Status status = ParseLine();
      if (!status.ok()) return located_ ? status : AtPlace(begin, status);
    }
    if (!in_.AtEnd()) return in_.Error("wanted the end of the text");
    absl::Status status = graph_->Verify();
    if (!status.ok()) return in_.Error(status.message());
    return std::move(graph_);
  }

 private:
  absl::Status AtPlace(size_t begin, const absl::Status& status) const {
    const absl::Status placed = in_.ErrorAt(begin, status.message());
    return absl::IsResourceExhausted(status) ? absl::ResourceExhaustedError(placed.message()) : placed;
  }

  // Errors of the scanner carry their place; those of the graph get that of the line.
  absl::Status Located(absl::Status status) {
    located_ = located_ || !status.ok();
    return status;
  }

  absl::Status ParseLine() {
    if (in_.Accept("param")) return ParseParameter();
    if (in_.Accept("module")) return ParseModule();
    if (in_.Accept("output")) {
      std::vector<Node*> operands;
      RETURN_IF_ERROR(ParseOperands(&operands, nullptr, nullptr));
      return graph_->AddOutput(std::move(operands)).status();
    }
    return ParseNode();
  }

  absl::StatusOr<std::string> NameAfter(absl::string_view sigil) {
    RETURN_IF_ERROR(Located(in_.Expect(sigil)));
    absl::StatusOr<std::string> name = in_.Name();
    RETURN_IF_ERROR(Located(name.status()));
    return name;
  }

  absl::Status ParseParameter() {
    ASSIGN_OR_RETURN(std::string name, NameAfter("@"));
    RETURN_IF_ERROR(Located(in_.Expect(":")));
    ASSIGN_OR_RETURN(TensorType type, ParseTensorType());
    RETURN_IF_ERROR(Located(in_.Expect("=")));
    if (graph_->FindParameterOrNull(name) != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("a second parameter @", name));
    }
    const std::string what = absl::StrCat("parameter @", name);
    std::optional<uint64_t> seed;
    std::shared_ptr<const Tensor> tensor;
    if (in_.Accept("seed")) {
      RETURN_IF_ERROR(Located(in_.Expect("(")));
      absl::StatusOr<int64_t> number = in_.Integer();
      RETURN_IF_ERROR(Located(number.status()));
      RETURN_IF_ERROR(Located(in_.Expect(")")));
      if (type.num_elements() > kMostSeededElements) {
        return absl::InvalidArgumentError(absl::StrCat("seed(", *number, ") of ", type.num_elements(),
                                                       " elements, wanted at most ", kMostSeededElements));
      }
      RETURN_IF_ERROR(Charge(type, what));
      seed = static_cast<uint64_t>(*number);
      tensor = std::make_shared<Tensor>(SeededTensor(type, *seed));
    } else if (in_.Accept("data")) {
      RETURN_IF_ERROR(Located(in_.Expect("(")));
      absl::StatusOr<std::string> fingerprint = in_.Name();
      RETURN_IF_ERROR(Located(fingerprint.status()));
      RETURN_IF_ERROR(Located(in_.Expect(")")));
      tensor = source_ ? source_(name) : nullptr;
      if (tensor == nullptr) return absl::InvalidArgumentError(absl::StrCat("no data for parameter @", name));
      if (tensor->dtype() == type.dtype && tensor->shape() == type.shape && tensor->type() != type) {
        RETURN_IF_ERROR(Charge(type, what));
        auto typed = std::make_shared<Tensor>(*tensor);
        typed->set_type(type);
        tensor = std::move(typed);
      }
      if (tensor->type() != type || absl::StrFormat("%016x", Fingerprint(*tensor)) != *fingerprint) {
        return absl::InvalidArgumentError(absl::StrCat("the data of parameter @", name, " (", ToString(tensor->type()),
                                                       ") is not what the text was written with"));
      }
    } else {
      if (type.num_elements() > in_.remaining()) {  // Before anything is allocated.
        return absl::InvalidArgumentError(
            absl::StrCat("fewer values than the ", type.num_elements(), " elements of ", ToString(type)));
      }
      RETURN_IF_ERROR(Charge(type, what));
      auto values = std::make_shared<Tensor>(type);
      RETURN_IF_ERROR(ParseValues(*values));
      tensor = std::move(values);
    }
    if (limits_ != nullptr) RETURN_IF_ERROR(CheckFinite(*tensor, what, limits_->options));
    graph_->AddParameter(name, std::move(tensor), seed);
    return absl::OkStatus();
  }

  // Before the allocation.
  absl::Status Charge(const TensorType& type, absl::string_view what) {
    return limits_ == nullptr ? absl::OkStatus() : limits_->budget.Charge(type.byte_size(), what);
  }

  absl::Status CheckNode(absl::string_view name, const Type& type) const {
    if (limits_ == nullptr) return absl::OkStatus();
    if (graph_->num_nodes() >= kMostImportedNodes) {
      return absl::ResourceExhaustedError(absl::StrCat("found more than ", kMostImportedNodes, " nodes"));
    }
    for (const TensorType& element : type.elements()) {
      RETURN_IF_ERROR(limits_->budget.CheckValue(element, absl::StrCat("%", name, ":")));
    }
    return absl::OkStatus();
  }

  absl::Status ParseValues(Tensor& tensor) {
    int64_t count = 0;
    const auto item = [&]() -> absl::Status {
      if (tensor.dtype() == DType::kI64) {
        ASSIGN_OR_RETURN(int64_t value, in_.Integer());
        if (count < tensor.num_elements()) tensor.data<int64_t>()[count] = value;
      } else {
        ASSIGN_OR_RETURN(double value, in_.Float());
        if (count < tensor.num_elements()) tensor.Set(count, value);
      }
      ++count;
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(Located(in_.List("[", "]", item)));
    if (count != tensor.num_elements()) {
      return absl::InvalidArgumentError(
          absl::StrCat(count, " values for a tensor of ", tensor.num_elements(), " elements"));
    }
    return absl::OkStatus();
  }

  absl::Status ParseModule() {
    ASSIGN_OR_RETURN(std::string path, NameAfter("@"));
    RETURN_IF_ERROR(Located(in_.Expect("=")));
    absl::StatusOr<std::string> op_name = in_.Name();
    RETURN_IF_ERROR(Located(op_name.status()));
    const OpSchema* op = ops_.FindOrNull(*op_name);
    if (op == nullptr) return absl::InvalidArgumentError(absl::StrCat("unknown operator '", *op_name, "'"));
    AttributeMap attributes;
    std::map<std::string, std::string> parameters;
    const auto item = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(std::string name, in_.Name());
      RETURN_IF_ERROR(in_.Expect("="));
      if (in_.Accept("@")) {
        ASSIGN_OR_RETURN(parameters[name], in_.Name());
        return absl::OkStatus();
      }
      ASSIGN_OR_RETURN(Attribute attribute, ParseAttribute(in_, op->FindAttributeOrNull(name)));
      if (!attributes.emplace(name, std::move(attribute)).second) {
        return in_.Error(absl::StrCat("a second attribute '", name, "'"));
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(Located(in_.List("(", ")", item)));
    return graph_->AddModule(path, *op_name, std::move(attributes), std::move(parameters)).status();
  }

  absl::Status ParseNode() {
    ASSIGN_OR_RETURN(std::string name, NameAfter("%"));
    RETURN_IF_ERROR(Located(in_.Expect(":")));
    ASSIGN_OR_RETURN(Type type, ParseType());
    RETURN_IF_ERROR(Located(in_.Expect("=")));
    if (graph_->FindNodeOrNull(name) != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("a second node %", name));
    }
    RETURN_IF_ERROR(CheckNode(name, type));
    absl::StatusOr<Node*> node = nullptr;
    if (in_.Accept("placeholder")) {
      if (!type.is_tensor()) return absl::InvalidArgumentError("a placeholder has a tensor type");
      node = graph_->AddPlaceholder(name, type.tensor());
    } else if (in_.Accept("get_attr")) {
      ASSIGN_OR_RETURN(std::string parameter, NameAfter("@"));
      node = graph_->AddGetAttr(name, parameter);
    } else if (in_.Accept("call_module")) {
      ASSIGN_OR_RETURN(std::string path, NameAfter("@"));
      std::vector<Node*> operands;
      RETURN_IF_ERROR(ParseOperands(&operands, nullptr, nullptr));
      node = graph_->AddModuleCall(name, path, std::move(operands));
    } else {
      const bool function = in_.Accept("call_function");
      if (!function) RETURN_IF_ERROR(Located(in_.Expect("call_method")));
      absl::StatusOr<std::string> target = in_.Name();
      RETURN_IF_ERROR(Located(target.status()));
      const OpSchema* op = ops_.FindOrNull(*target);
      if (op == nullptr) return absl::InvalidArgumentError(absl::StrCat("unknown operator '", *target, "'"));
      std::vector<Node*> operands;
      AttributeMap attributes;
      RETURN_IF_ERROR(ParseOperands(&operands, op, &attributes));
      node = function ? graph_->AddFunction(name, *target, std::move(operands), std::move(attributes))
                      : graph_->AddMethod(name, *target, std::move(operands), std::move(attributes));
    }
    RETURN_IF_ERROR(node.status());
    if ((*node)->type() != type) {
      return absl::InvalidArgumentError(
          absl::StrCat("%", name, ": type ", ToString(type), " is stated, ", ToString((*node)->type()), " inferred"));
    }
    if (in_.Accept("from")) {
      std::vector<std::string> sources;
      RETURN_IF_ERROR(Located(in_.List("(", ")", [&]() -> absl::Status {
        ASSIGN_OR_RETURN(std::string source, in_.Name());
        sources.push_back(std::move(source));
        return absl::OkStatus();
      })));
      (*node)->AddSources(sources);
    }
    return absl::OkStatus();
  }

  // "(%x, none, %y, name=value)"; attributes only with an op.
  absl::Status ParseOperands(std::vector<Node*>* operands, const OpSchema* op, AttributeMap* attributes) {
    return Located(in_.List("(", ")", [&]() -> absl::Status {
      if (in_.Accept("none")) {
        operands->push_back(nullptr);
        return absl::OkStatus();
      }
      in_.SkipSpace();
      const size_t begin = in_.position();
      if (in_.Accept("%")) {
        ASSIGN_OR_RETURN(std::string name, in_.Name());
        Node* node = graph_->FindNodeOrNull(name);
        if (node == nullptr) return in_.ErrorAt(begin, absl::StrCat("%", name, " is not defined before its use"));
        operands->push_back(node);
        return absl::OkStatus();
      }
      if (op == nullptr) return in_.Error("wanted an operand: %name or none");
      ASSIGN_OR_RETURN(std::string name, in_.Name());
      RETURN_IF_ERROR(in_.Expect("="));
      ASSIGN_OR_RETURN(Attribute attribute, ParseAttribute(in_, op->FindAttributeOrNull(name)));
      if (!attributes->emplace(name, std::move(attribute)).second) {
        return in_.Error(absl::StrCat("a second attribute '", name, "'"));
      }
      return absl::OkStatus();
    }));
  }

  absl::StatusOr<Type> ParseType() {
    if (in_.Peek() != '(') {
      ASSIGN_OR_RETURN(TensorType type, ParseTensorType());
      return Type(std::move(type));
    }
    std::vector<TensorType> elements;
    RETURN_IF_ERROR(in_.List("(", ")", [&]() -> absl::Status {
      ASSIGN_OR_RETURN(TensorType type, ParseTensorType());
      elements.push_back(std::move(type));
      return absl::OkStatus();
    }));
    return Type::Tuple(std::move(elements));
  }

  absl::StatusOr<TensorType> ParseTensorType() {
    absl::StatusOr<TensorType> type = ParseTensorTypeUnlocated();
    RETURN_IF_ERROR(Located(type.status()));
    absl::StatusOr<int64_t> count = CheckedNumElements(type->shape);
    if (!count.ok()) return count.status();
    if (*count > kMostElements) {
      return absl::InvalidArgumentError(absl::StrCat("shape ", fuselage::ToString(type->shape), " is too large"));
    }
    if (type->quant) RETURN_IF_ERROR(CheckQuantParams(*type->quant, type->dtype, type->shape));
    return type;
  }

  absl::StatusOr<TensorType> ParseTensorTypeUnlocated() {
    TensorType type;
    ASSIGN_OR_RETURN(std::string name, in_.Name());
    absl::StatusOr<DType> dtype = DTypeFromName(name);
    if (!dtype.ok()) return in_.Error(dtype.status().message());
    type.dtype = *dtype;
    RETURN_IF_ERROR(in_.List("[", "]", [&]() -> absl::Status {
      ASSIGN_OR_RETURN(int64_t dim, in_.Integer());
      type.shape.push_back(dim);
      return absl::OkStatus();
    }));
    if (in_.Accept("{")) {
      RETURN_IF_ERROR(in_.Expect("nhwc"));
      RETURN_IF_ERROR(in_.Expect("}"));
      type.layout = Layout::kNhwc;
    }
    if (in_.Peek() == '<') {
      ASSIGN_OR_RETURN(type.quant, ParseQuantParams());
    }
    return type;
  }

  absl::StatusOr<QuantParams> ParseQuantParams() {
    QuantParams quant;
    RETURN_IF_ERROR(in_.List("<", ">", [&]() -> absl::Status {
      ASSIGN_OR_RETURN(std::string field, in_.Name());
      RETURN_IF_ERROR(in_.Expect("="));
      const auto number = [&]() -> absl::Status {
        ASSIGN_OR_RETURN(double value, in_.Float());
        if (field == "scale") {
          quant.scales.push_back(static_cast<float>(value));
        } else if (field == "zp") {
          quant.zero_points.push_back(static_cast<int32_t>(std::fmin(std::fmax(value, INT32_MIN), INT32_MAX)));
        } else if (field == "axis" && value >= 0 && value < 64) {
          quant.axis = static_cast<int>(value);
        } else {
          return in_.Error("wanted scale, zp or axis");
        }
        return absl::OkStatus();
      };
      return in_.Peek() == '[' ? in_.List("[", "]", number) : number();
    }));
    if (quant.zero_points.empty()) quant.zero_points.assign(quant.scales.size(), 0);
    return quant;
  }

  static constexpr int64_t kMostElements = int64_t{1} << 32;
  static constexpr int64_t kMostSeededElements = int64_t{1} << 28;  // Made up from a few characters of text.

  Scanner in_;
  const OpRegistry& ops_;
  const UntrustedText* const limits_;
  const ParameterSource& source_;
  std::unique_ptr<Graph> graph_;
  bool located_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> Parse(absl::string_view text, const OpRegistry& ops, absl::string_view file,
                                             const ParameterSource& source) {
  return Parser(Scanner(text, file), ops, nullptr, source).ParseGraph();
}

absl::StatusOr<std::unique_ptr<Graph>> ParseUntrusted(const UntrustedText& in, const OpRegistry& ops) {
  return Parser(Scanner(in.text, in.file), ops, &in, in.source).ParseGraph();
}

}  // namespace fuselage::ir
