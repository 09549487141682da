#include "frontend/fx/fx.h"

#include <filesystem>
#include <fstream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/safetensors.h"
#include "ir/text.h"

namespace fuselage::fx {
namespace {

absl::StatusOr<std::string> ReadText(const std::string& path, Budget& budget) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": found no regular file"));
  }
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  const int64_t size = in.tellg();
  RETURN_IF_ERROR(budget.Charge(size, absl::StrCat(path, ": the file")));
  std::string text(size, '\0');
  if (!in.seekg(0).read(text.data(), size)) return absl::UnavailableError(absl::StrCat(path, ": cannot be read"));
  return text;
}

// The parameters' file, read when the text first asks for a tensor. Remembers what went wrong, for Parse has no names
// of files.
class Data {
 public:
  Data(std::string path, Budget* budget) : path_(std::move(path)), budget_(budget) {}

  std::shared_ptr<const Tensor> FindOrNull(absl::string_view name) {
    if (!tensors_) tensors_ = ir::ReadSafetensors(path_, budget_);
    if (!tensors_->ok()) return nullptr;
    const auto it = (*tensors_)->find(name);
    if (it != (*tensors_)->end()) return it->second;
    missing_ = std::string(name);
    return nullptr;
  }

  // What Parse reported, with the file behind it.
  absl::Status Explain(const absl::Status& status, const std::string& text_path) const {
    if (!tensors_) return status;
    if (!tensors_->ok()) return tensors_->status();
    if (!missing_.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": found no tensor '", missing_, "', which ", text_path, " has as data(...)"));
    }
    return absl::Status(status.code(), absl::StrCat(status.message(), "; its parameters are those of ", path_));
  }

 private:
  const std::string path_;
  Budget* const budget_;
  std::optional<absl::StatusOr<ir::TensorMap>> tensors_;
  std::string missing_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ir::Graph>> Load(const std::string& path, const ir::OpRegistry& ops,
                                                const ImportOptions& options) {
  if (!absl::EndsWith(path, ".ir")) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": wanted a file <stem>.ir, as tools/export_fx.py writes it"));
  }
  Budget budget(options.max_memory_bytes);
  ASSIGN_OR_RETURN(const std::string text, ReadText(path, budget));
  Data data(absl::StrCat(absl::StripSuffix(path, ".ir"), ".safetensors"), &budget);
  absl::StatusOr<std::unique_ptr<ir::Graph>> graph = ir::ParseUntrusted(
      {text, path, [&data](absl::string_view name) { return data.FindOrNull(name); }, options, budget}, ops);
  if (!graph.ok()) return data.Explain(graph.status(), path);
  return graph;
}

}  // namespace fuselage::fx
