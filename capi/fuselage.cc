#include "capi/fuselage.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/compiler.h"
#include "ir/base/status.h"
#include "passes/core/kept_message.h"

using fuselage::DType;
using fuselage::Tensor;
using fuselage::TensorType;
using fuselage::Value;

struct fuselage_status {
  absl::Status status;
  std::string message;
};

namespace {

// What a model or a session says of its inputs or outputs, in C's terms.
struct Descriptions {
  explicit Descriptions(const std::vector<Value>& from) : values(from) {
    for (const Value& value : values) {
      tensors.push_back({value.name.c_str(), static_cast<fuselage_dtype>(value.type.dtype), value.type.rank(),
                         value.type.shape.data(), nullptr});
    }
  }
  Descriptions(const Descriptions&) = delete;

  const fuselage_tensor* Get(int32_t* count) const {
    *count = static_cast<int32_t>(tensors.size());
    return tensors.data();
  }

  const std::vector<Value> values;
  std::vector<fuselage_tensor> tensors;
};

struct Texts {
  explicit Texts(std::vector<std::string> from) : values(std::move(from)) {
    for (const std::string& value : values) pointers.push_back(value.c_str());
  }
  Texts(const Texts&) = delete;

  const char* const* Get(int32_t* count) const {
    *count = static_cast<int32_t>(pointers.size());
    return pointers.data();
  }

  const std::vector<std::string> values;
  std::vector<const char*> pointers;
};

std::vector<std::string> RemarksOf(const fuselage::Model& model) {
  std::vector<std::string> texts;
  for (const fuselage::passes::PassReport& report : model.reports()) {
    for (const fuselage::passes::Remark& remark : report.remarks) {
      texts.push_back(absl::StrCat(report.name, ": ", fuselage::passes::RemarkKindName(remark.kind), ": ",
                                   remark.node.empty() ? "" : absl::StrCat("%", remark.node, ": "), remark.message));
    }
  }
  return texts;
}

}  // namespace

struct fuselage_model {
  explicit fuselage_model(fuselage::Model given)
      : model(std::move(given)),
        inputs(model.inputs()),
        outputs(model.outputs()),
        warnings(model.warnings()),
        remarks(RemarksOf(model)) {}

  const fuselage::Model model;
  const Descriptions inputs, outputs;
  const Texts warnings, remarks;
};

struct fuselage_session {
  explicit fuselage_session(fuselage::Session given)
      : session(std::move(given)), inputs(session.inputs()), outputs(session.outputs()) {}

  fuselage::Session session;
  const Descriptions inputs, outputs;
  std::unique_ptr<const Descriptions> outputs_at;  // Of the last batch that was asked for.
};

namespace {

static_assert(FUSELAGE_BOOL == static_cast<int>(DType::kBool) && FUSELAGE_U8 == static_cast<int>(DType::kU8) &&
                  FUSELAGE_I8 == static_cast<int>(DType::kI8) && FUSELAGE_I16 == static_cast<int>(DType::kI16) &&
                  FUSELAGE_I32 == static_cast<int>(DType::kI32) && FUSELAGE_I64 == static_cast<int>(DType::kI64) &&
                  FUSELAGE_F16 == static_cast<int>(DType::kF16) && FUSELAGE_F32 == static_cast<int>(DType::kF32) &&
                  FUSELAGE_F64 == static_cast<int>(DType::kF64),
              "the header repeats DType");

// Runs `f`, which returns an absl::Status.
template <typename F>
fuselage_status* Call(F f) {
  absl::Status status;
  try {
    status = f();
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("found too little memory");
  } catch (const std::exception& e) {
    status = absl::InternalError(e.what());
  }
  return status.ok() ? nullptr : new fuselage_status{status, std::string(status.message())};
}

absl::Status TensorError(const fuselage_tensor& tensor, absl::string_view found) {
  return fuselage::UsageError(absl::StrCat("tensor \"", tensor.name, "\": ", found));
}

absl::StatusOr<fuselage::Shape> ShapeOf(const fuselage_tensor& tensor) {
  if (tensor.rank < 0 || (tensor.rank > 0 && tensor.shape == nullptr)) {
    return TensorError(tensor,
                       absl::StrCat("rank is ", tensor.rank, tensor.shape == nullptr ? " without a shape" : ""));
  }
  fuselage::Shape shape(tensor.shape, tensor.shape + tensor.rank);
  const absl::StatusOr<int64_t> elements = fuselage::CheckedNumElements(shape);
  if (!elements.ok()) return TensorError(tensor, elements.status().message());
  return shape;
}

absl::StatusOr<TensorType> TypeOf(const fuselage_tensor& tensor) {
  if (tensor.dtype < FUSELAGE_BOOL || tensor.dtype > FUSELAGE_F64) {
    return TensorError(tensor,
                       absl::StrCat("dtype is ", static_cast<int>(tensor.dtype), ", wanted one of fuselage_dtype"));
  }
  TensorType type;
  type.dtype = static_cast<DType>(tensor.dtype);
  ASSIGN_OR_RETURN(type.shape, ShapeOf(tensor));
  if (tensor.data == nullptr) return TensorError(tensor, "data is NULL");
  return type;
}

// The caller's memory, which must stay; a copy where its elements are not aligned.
absl::StatusOr<Tensor> View(const fuselage_tensor& from) {
  ASSIGN_OR_RETURN(TensorType type, TypeOf(from));
  if (reinterpret_cast<uintptr_t>(from.data) % fuselage::ByteSize(type.dtype) == 0) {
    return Tensor::Borrow(std::move(type), from.data, std::shared_ptr<const void>(std::shared_ptr<void>(), from.data));
  }
  Tensor copy(std::move(type));
  std::memcpy(copy.raw_data(), from.data, copy.byte_size());
  return copy;
}

bool Overlap(const Tensor& a, const Tensor& b) {
  const auto* at = static_cast<const char*>(a.raw_data());
  const auto* bt = static_cast<const char*>(b.raw_data());
  return at < bt + b.byte_size() && bt < at + a.byte_size();
}

absl::Status CheckNamed(const fuselage_tensor* tensors, int32_t count, const char* what) {
  if (count < 0) return fuselage::UsageError(absl::StrCat("the number of ", what, " is ", count));
  for (int32_t i = 0; i < count; ++i) {
    if (tensors[i].name == nullptr) return fuselage::UsageError(absl::StrCat(what, ": number ", i, " has no name"));
    for (int32_t k = 0; k < i; ++k) {
      if (std::strcmp(tensors[i].name, tensors[k].name) == 0) {
        return fuselage::UsageError(absl::StrCat(what, ": \"", tensors[i].name, "\" is there twice"));
      }
    }
  }
  return absl::OkStatus();
}

// The caller's options in this version's struct: a caller compiled with an older header gives fewer fields, and one
// with a newer header may set none that this version lacks.
template <typename Options>
absl::StatusOr<Options> OptionsOf(const Options* given) {
  Options options = {};
  if (given == nullptr) return options;
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(Options); i < given->size; ++i) {
    if (bytes[i] != 0) {
      return absl::UnimplementedError(
          absl::StrCat("an option at byte ", i, " is newer than version ", FUSELAGE_VERSION));
    }
  }
  if (given->size < sizeof(size_t)) {
    return fuselage::UsageError(absl::StrCat("options.size is ", given->size, ", wanted the size of the struct"));
  }
  std::memcpy(&options, given, given->size < sizeof(Options) ? given->size : sizeof(Options));
  return options;
}

absl::StatusOr<std::vector<float>> ValuesOf(const float* values, int32_t count, const char* what) {
  if (count < 0) return fuselage::UsageError(absl::StrCat("the number of values of ", what, " is ", count));
  if (count > 0 && values == nullptr) return fuselage::UsageError(absl::StrCat(what, " is NULL"));
  return std::vector<float>(values, values + count);
}

absl::StatusOr<fuselage::LoadOptions> LoadOptionsOf(const fuselage_load_options& given) {
  fuselage::LoadOptions load;
  RETURN_IF_ERROR(CheckNamed(given.shapes, given.num_shapes, "shapes"));
  for (int32_t i = 0; i < given.num_shapes; ++i) {
    ASSIGN_OR_RETURN(load.shapes[given.shapes[i].name], ShapeOf(given.shapes[i]));
  }
  RETURN_IF_ERROR(CheckNamed(given.constants, given.num_constants, "constants"));
  for (int32_t i = 0; i < given.num_constants; ++i) {
    ASSIGN_OR_RETURN(const Tensor view, View(given.constants[i]));
    load.constants.emplace(given.constants[i].name, view);  // A copy: the model outlives the caller's.
  }
  if (given.num_outputs < 0) return fuselage::UsageError(absl::StrCat("the number of outputs is ", given.num_outputs));
  for (int32_t i = 0; i < given.num_outputs; ++i) {
    if (given.outputs[i] == nullptr) return fuselage::UsageError(absl::StrCat("outputs: number ", i, " is NULL"));
    load.outputs.push_back(given.outputs[i]);
  }
  load.allow_nonfinite = given.allow_nonfinite != 0;
  load.max_memory_bytes = given.max_memory_bytes;
  if (given.max_memory_bytes < 0) {
    return fuselage::UsageError(absl::StrCat("max_memory_bytes is ", given.max_memory_bytes, ", want 0 or more"));
  }
  fuselage::ByteInput bytes;
  bytes.pixels = given.image == FUSELAGE_PIXELS;
  ASSIGN_OR_RETURN(bytes.mean, ValuesOf(given.mean, given.num_mean, "mean"));
  ASSIGN_OR_RETURN(bytes.std, ValuesOf(given.std, given.num_std, "std"));
  switch (given.image) {
    case FUSELAGE_FLOATS:
      if (bytes.mean.empty() && bytes.std.empty()) return load;
      return fuselage::UsageError("mean and std are for bytes: image is FUSELAGE_FLOATS");
    case FUSELAGE_PLANES:
    case FUSELAGE_PIXELS: load.bytes = std::move(bytes); return load;
  }
  return fuselage::UsageError(absl::StrCat("image is ", static_cast<int>(given.image), ", want a fuselage_image"));
}

absl::StatusOr<fuselage::PipelineConfig> PipelineOf(const char* text) {
  if (text == nullptr) return fuselage::DefaultPipeline();
  fuselage::PipelineConfig pipeline;
  const absl::Status parsed = fuselage::passes::ParseText(text, &pipeline);
  if (!parsed.ok()) return fuselage::UsageError(absl::StrCat("options.pipeline:", parsed.message()));
  return pipeline;
}

}  // namespace

const char* fuselage_version(void) { return FUSELAGE_VERSION; }

fuselage_code fuselage_status_code(const fuselage_status* status) {
  if (status == nullptr) return FUSELAGE_OK;
  switch (status->status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange: return FUSELAGE_INVALID_ARGUMENT;
    case absl::StatusCode::kNotFound: return FUSELAGE_NOT_FOUND;
    case absl::StatusCode::kResourceExhausted: return FUSELAGE_RESOURCE_EXHAUSTED;
    case absl::StatusCode::kUnimplemented: return FUSELAGE_UNIMPLEMENTED;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnavailable: return FUSELAGE_UNAVAILABLE;
    default: return FUSELAGE_INTERNAL;
  }
}

const char* fuselage_status_message(const fuselage_status* status) {
  return status == nullptr ? "" : status->message.c_str();
}

void fuselage_status_free(fuselage_status* status) { delete status; }

fuselage_status* fuselage_load(const char* path, fuselage_model** model) {
  return fuselage_load_with(path, nullptr, model);
}

fuselage_status* fuselage_load_with(const char* path, const fuselage_load_options* options, fuselage_model** model) {
  return Call([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const fuselage_load_options given, OptionsOf(options));
    ASSIGN_OR_RETURN(const fuselage::LoadOptions load, LoadOptionsOf(given));
    ASSIGN_OR_RETURN(fuselage::Model loaded, fuselage::Load(path, load));
    *model = new fuselage_model(std::move(loaded));
    return absl::OkStatus();
  });
}

fuselage_status* fuselage_compile(const fuselage_model* model, const fuselage_tensor* samples, int32_t num_samples,
                                  const fuselage_compile_options* options, fuselage_model** compiled) {
  return Call([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const fuselage_compile_options given, OptionsOf(options));
    fuselage::CompileOptions compile;
    if (given.threads != 0) compile.threads = given.threads;
    ASSIGN_OR_RETURN(compile.pipeline, PipelineOf(given.pipeline));
    RETURN_IF_ERROR(CheckNamed(samples, num_samples, "samples"));
    std::map<std::string, Tensor> tensors;
    for (int32_t i = 0; i < num_samples; ++i) {
      ASSIGN_OR_RETURN(tensors[samples[i].name], View(samples[i]));
    }
    ASSIGN_OR_RETURN(fuselage::Model made, fuselage::Compile(model->model, std::move(tensors), compile));
    *compiled = new fuselage_model(std::move(made));
    return absl::OkStatus();
  });
}

fuselage_status* fuselage_save(const fuselage_model* model, const char* path, const fuselage_save_options* options) {
  return Call([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const fuselage_save_options given, OptionsOf(options));
    fuselage::SaveOptions save;
    if (given.isas != nullptr) {
      save.isas.clear();
      for (const absl::string_view name : absl::StrSplit(given.isas, ',', absl::SkipEmpty())) {
        ASSIGN_OR_RETURN(const fuselage::kernels::Isa isa, fuselage::kernels::IsaFromName(name));
        save.isas.push_back(isa);
      }
    }
    return fuselage::Save(model->model, path, save);
  });
}

const fuselage_tensor* fuselage_model_inputs(const fuselage_model* model, int32_t* count) {
  return model->inputs.Get(count);
}
const fuselage_tensor* fuselage_model_outputs(const fuselage_model* model, int32_t* count) {
  return model->outputs.Get(count);
}

const char* const* fuselage_model_warnings(const fuselage_model* model, int32_t* count) {
  return model->warnings.Get(count);
}
const char* const* fuselage_model_remarks(const fuselage_model* model, int32_t* count) {
  return model->remarks.Get(count);
}

void fuselage_model_free(fuselage_model* model) { delete model; }

fuselage_status* fuselage_prepare(const fuselage_model* model, const fuselage_session_options* options,
                                  fuselage_session** session) {
  return Call([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const fuselage_session_options given, OptionsOf(options));
    fuselage::SessionOptions prepare;
    if (given.threads != 0) prepare.threads = given.threads;
    if (given.batch != 0) prepare.batch = given.batch == FUSELAGE_ANY_BATCH ? 0 : given.batch;
    if (given.kept_batches != 0) prepare.kept_batches = given.kept_batches;
    if (given.isa != nullptr) {
      ASSIGN_OR_RETURN(prepare.isa, fuselage::kernels::IsaFromName(given.isa));
    }
    prepare.max_memory_bytes = given.max_memory_bytes;
    ASSIGN_OR_RETURN(fuselage::Session prepared, fuselage::Prepare(model->model, prepare));
    *session = new fuselage_session(std::move(prepared));
    return absl::OkStatus();
  });
}

const fuselage_tensor* fuselage_session_inputs(const fuselage_session* session, int32_t* count) {
  return session->inputs.Get(count);
}
const fuselage_tensor* fuselage_session_outputs(const fuselage_session* session, int32_t* count) {
  return session->outputs.Get(count);
}

fuselage_status* fuselage_session_outputs_at(fuselage_session* session, int64_t batch, int32_t* count,
                                             const fuselage_tensor** outputs) {
  return Call([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<Value> found, session->session.OutputsAt(batch));
    session->outputs_at = std::make_unique<const Descriptions>(found);
    *outputs = session->outputs_at->Get(count);
    return absl::OkStatus();
  });
}

fuselage_status* fuselage_run(fuselage_session* session, const fuselage_tensor* inputs, int32_t num_inputs,
                              const fuselage_tensor* outputs, int32_t num_outputs) {
  return Call([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckNamed(inputs, num_inputs, "inputs"));
    RETURN_IF_ERROR(CheckNamed(outputs, num_outputs, "outputs"));
    std::vector<Tensor> read, written;
    for (int32_t i = 0; i < num_inputs; ++i) {
      ASSIGN_OR_RETURN(Tensor tensor, View(inputs[i]));
      read.push_back(std::move(tensor));
    }
    for (int32_t i = 0; i < num_outputs; ++i) {
      ASSIGN_OR_RETURN(Tensor tensor, View(outputs[i]));
      // What a kernel writes, no other may still have to read, nor write.
      const auto overlaps = [&](const Tensor& other) { return Overlap(tensor, other); };
      if (std::any_of(read.begin(), read.end(), overlaps) || std::any_of(written.begin(), written.end(), overlaps)) {
        tensor = Tensor(tensor.type());
      }
      written.push_back(std::move(tensor));
    }
    std::map<std::string, fuselage::Input> named_inputs;
    std::map<std::string, Tensor*> named_outputs;
    for (int32_t i = 0; i < num_inputs; ++i) named_inputs.emplace(inputs[i].name, read[i]);
    for (int32_t i = 0; i < num_outputs; ++i) named_outputs.emplace(outputs[i].name, &written[i]);
    RETURN_IF_ERROR(session->session.Run(named_inputs, named_outputs));
    for (int32_t i = 0; i < num_outputs; ++i) {
      ASSIGN_OR_RETURN(const TensorType given, TypeOf(outputs[i]));
      if (given == written[i].type()) continue;  // Else Run has left the caller's memory.
      return absl::InvalidArgumentError(absl::StrCat("output \"", outputs[i].name, "\" is ", fuselage::ToString(given),
                                                     ", wanted ", fuselage::ToString(written[i].type())));
    }
    for (int32_t i = 0; i < num_outputs; ++i) {
      if (written[i].raw_data() == outputs[i].data) continue;
      std::memcpy(outputs[i].data, written[i].raw_data(), written[i].byte_size());
    }
    return absl::OkStatus();
  });
}

void fuselage_session_free(fuselage_session* session) { delete session; }
