#include "ir/safetensors.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/mapped_file.h"

namespace fuselage::ir {
namespace {

constexpr uint64_t kMostHeaderBytes = 100'000'000;  // The format's own limit.

struct FormatName {
  DType dtype;
  absl::string_view name;
};
constexpr FormatName kFormatNames[] = {
    {DType::kBool, "BOOL"}, {DType::kU8, "U8"},   {DType::kI8, "I8"},   {DType::kI16, "I16"}, {DType::kI32, "I32"},
    {DType::kI64, "I64"},   {DType::kF16, "F16"}, {DType::kF32, "F32"}, {DType::kF64, "F64"},
};

struct Entry {
  std::string name;
  TensorType type;
  int64_t begin = 0, end = 0;  // Bytes after the header.
};

absl::StatusOr<int64_t> Integer(const google::protobuf::Value& value) {
  const double number = value.number_value();
  if (value.kind_case() != google::protobuf::Value::kNumberValue || number < 0 || number > 9e15 ||
      number != std::floor(number)) {
    return absl::InvalidArgumentError("a shape or an offset is not a non-negative integer");
  }
  return static_cast<int64_t>(number);
}

absl::StatusOr<Entry> ParseEntry(const std::string& name, const google::protobuf::Value& value) {
  Entry entry;
  entry.name = name;
  const auto& fields = value.struct_value().fields();
  const auto dtype = fields.find("dtype"), shape = fields.find("shape"), offsets = fields.find("data_offsets");
  if (dtype == fields.end() || shape == fields.end() || offsets == fields.end() ||
      offsets->second.list_value().values_size() != 2) {
    return absl::InvalidArgumentError("wanted dtype, shape and two data_offsets");
  }
  const auto* format = std::find_if(std::begin(kFormatNames), std::end(kFormatNames),
                                    [&](const FormatName& f) { return f.name == dtype->second.string_value(); });
  if (format == std::end(kFormatNames)) {
    return absl::UnimplementedError(absl::StrCat("element type '", dtype->second.string_value(), "'"));
  }
  entry.type.dtype = format->dtype;
  for (const auto& dim : shape->second.list_value().values()) {
    ASSIGN_OR_RETURN(const int64_t size, Integer(dim));
    entry.type.shape.push_back(size);
  }
  ASSIGN_OR_RETURN(entry.begin, Integer(offsets->second.list_value().values(0)));
  ASSIGN_OR_RETURN(entry.end, Integer(offsets->second.list_value().values(1)));
  ASSIGN_OR_RETURN(const int64_t elements, CheckedNumElements(entry.type.shape));
  if (entry.end < entry.begin || entry.end - entry.begin != elements * ByteSize(entry.type.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("bytes ", entry.begin, " to ", entry.end, " for ", fuselage::ToString(entry.type)));
  }
  return entry;
}

// The header's entries in the order of their data, which must cover the data without gap or overlap.
absl::StatusOr<std::vector<Entry>> ParseHeader(const std::string& json, int64_t data_bytes) {
  google::protobuf::Struct header;
  if (!google::protobuf::util::JsonStringToMessage(json, &header).ok()) {
    return absl::InvalidArgumentError("the header is not a JSON object");
  }
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.fields()) {
    if (name == "__metadata__") continue;
    absl::StatusOr<Entry> entry = ParseEntry(name, value);
    if (!entry.ok()) return Annotate(entry.status(), absl::StrCat("tensor '", name, "'"));
    entries.push_back(*std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::make_tuple(a.begin, a.end, a.name) < std::make_tuple(b.begin, b.end, b.name);
  });
  int64_t next = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != next) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", entry.name, "' begins at byte ", entry.begin, " of the data, wanted ", next));
    }
    next = entry.end;
  }
  if (next != data_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header describes ", next, " bytes of data, the file has ", data_bytes));
  }
  return entries;
}

// Copies each tensor once, from the mapped file into its own aligned memory.
absl::StatusOr<TensorMap> Read(absl::string_view file, Budget* budget) {
  constexpr int64_t kParsedBytesPerByte = 64;  // Generous: "0," in a list is a protobuf message.
  if (file.size() < 8) {
    return absl::InvalidArgumentError(absl::StrCat("the file has ", file.size(), " bytes, its header size needs 8"));
  }
  uint64_t header_bytes;
  std::memcpy(&header_bytes, file.data(), 8);
  file.remove_prefix(8);
  if (header_bytes > kMostHeaderBytes || header_bytes > file.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a header of ", header_bytes, " bytes in a file of ", file.size() + 8));
  }
  const int64_t parsed_bytes = kParsedBytesPerByte * static_cast<int64_t>(header_bytes);
  if (budget != nullptr) RETURN_IF_ERROR(budget->Charge(parsed_bytes, "the parsed header"));
  const std::string json(file.substr(0, header_bytes));
  file.remove_prefix(header_bytes);
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, ParseHeader(json, file.size()));
  TensorMap tensors;
  for (const Entry& entry : entries) {
    if (budget != nullptr) {
      RETURN_IF_ERROR(budget->Charge(entry.end - entry.begin, absl::StrCat("tensor '", entry.name, "'")));
    }
    auto tensor = std::make_shared<Tensor>(entry.type);
    if (tensor->byte_size() > 0) std::memcpy(tensor->raw_data(), file.data() + entry.begin, tensor->byte_size());
    tensors[entry.name] = std::move(tensor);
  }
  if (budget != nullptr) budget->Release(parsed_bytes);
  return tensors;
}

std::string JsonString(absl::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

absl::StatusOr<TensorMap> ReadSafetensors(const std::string& path, Budget* budget) {
  ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  absl::StatusOr<TensorMap> tensors = Read(file->bytes(), budget);
  if (!tensors.ok()) return Annotate(tensors.status(), path);
  return tensors;
}

absl::Status WriteSafetensors(const std::string& path, const TensorMap& tensors) {
  std::string header = "{";
  int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    absl::StrAppend(&header, offset == 0 && header.size() == 1 ? "" : ",", JsonString(name), ":{\"dtype\":\"",
                    kFormatNames[static_cast<int>(tensor->dtype())].name, "\",\"shape\":[",
                    absl::StrJoin(tensor->shape(), ","), "],\"data_offsets\":[", offset, ",",
                    offset + tensor->byte_size(), "]}");
    offset += tensor->byte_size();
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // The data begins aligned.
  const uint64_t header_bytes = header.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&header_bytes), 8);
  out << header;
  for (const auto& [name, tensor] : tensors) {
    out.write(static_cast<const char*>(tensor->raw_data()), tensor->byte_size());
  }
  if (!out.flush()) return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

absl::Status WriteGraph(const std::string& stem, const Graph& graph) {
  TensorMap tensors;
  for (const auto& [name, parameter] : graph.parameters()) {
    if (IsPrintedAsData(parameter)) tensors[name] = parameter.tensor;
  }
  RETURN_IF_ERROR(WriteSafetensors(stem + ".safetensors", tensors));
  std::ofstream out(stem + ".ir");
  out << Print(graph);
  if (!out.flush()) return absl::UnavailableError(absl::StrCat(stem, ".ir: cannot be written"));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Graph>> ReadGraph(const std::string& stem, const OpRegistry& ops) {
  const std::string path = stem + ".ir";
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  ASSIGN_OR_RETURN(const TensorMap tensors, ReadSafetensors(stem + ".safetensors"));
  return Parse(text, ops, path, [&tensors](absl::string_view name) -> std::shared_ptr<const Tensor> {
    const auto it = tensors.find(name);
    return it == tensors.end() ? nullptr : it->second;
  });
}

}  // namespace fuselage::ir
