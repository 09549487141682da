#include "passes/core/kept_message.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "ir/base/tensor.h"

namespace fuselage::passes {
namespace {

namespace fs = std::filesystem;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// Keeps the first error, and off the standard error stream.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

const google::protobuf::FieldDescriptor* FingerprintField(const Message& message) {
  return message.GetDescriptor()->FindFieldByName("fingerprint");
}

std::string FingerprintOf(const Message& message) {
  const std::unique_ptr<Message> copy(message.New());
  copy->CopyFrom(message);
  copy->GetReflection()->ClearField(copy.get(), FingerprintField(message));
  return TextFingerprint(TextOf(*copy));
}

}  // namespace

std::string TextFingerprint(const std::string& text) {
  Tensor bytes(TensorType{DType::kU8, {static_cast<int64_t>(text.size())}, std::nullopt, Layout::kRowMajor});
  std::copy(text.begin(), text.end(), bytes.data<uint8_t>());
  return absl::StrCat(absl::Hex(Fingerprint(bytes), absl::kZeroPad16));
}

std::string TextOf(const Message& message) {
  TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  printer.PrintToString(message, &text);
  return text;
}

absl::Status ParseText(const std::string& text, Message* message) {
  FirstError error;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(text, message)) return absl::OkStatus();
  return absl::InvalidArgumentError(error.text());
}

absl::Status ReadKeptMessage(const std::string& path, Message* message) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::NotFoundError(path);
  std::stringstream text;
  text << stream.rdbuf();
  const absl::Status parsed = ParseText(text.str(), message);
  if (!parsed.ok()) return absl::DataLossError(parsed.message());
  if (message->GetReflection()->GetString(*message, FingerprintField(*message)) != FingerprintOf(*message)) {
    return absl::DataLossError("its fingerprint is that of other contents");
  }
  return absl::OkStatus();
}

absl::Status KeepMessage(const std::string& path, Message* message) {
  message->GetReflection()->SetString(message, FingerprintField(*message), FingerprintOf(*message));
  const std::string folder = fs::path(path).parent_path().string();
  std::error_code error;
  fs::create_directories(folder, error);
  std::string temporary = path + ".XXXXXX";
  const int descriptor = mkstemp(&temporary[0]);
  if (descriptor < 0) return absl::UnavailableError(absl::StrCat("cannot write to ", folder));
  close(descriptor);
  std::ofstream stream(temporary, std::ios::binary);
  stream << TextOf(*message);
  stream.close();
  if (stream) fs::rename(temporary, path, error);
  if (stream && !error) return absl::OkStatus();
  fs::remove(temporary, error);
  return absl::UnavailableError(absl::StrCat("cannot write ", path));
}

}  // namespace fuselage::passes
