#include "harness/sweep/units.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "harness/datasets/open.h"
#include "harness/load_config.h"
#include "ir/base/sha256.h"
#include "ir/base/status.h"

namespace fuselage::harness::sweep {
namespace {

constexpr int kMostUnits = 1 << 20;  // Each has a folder.

// Lists that `set` has, everywhere in `config`.
void ClearLists(const google::protobuf::Message& set, google::protobuf::Message* config) {
  const auto* reflection = config->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  set.GetReflection()->ListFields(set, &fields);
  for (const auto* field : fields) {
    if (field->is_repeated()) {
      reflection->ClearField(config, field);
    } else if (field->message_type() != nullptr && reflection->HasField(*config, field)) {
      ClearLists(set.GetReflection()->GetMessage(set, field), reflection->MutableMessage(config, field));
    }
  }
}

// Name and size of each file at or below a path: enough to tell data apart that nobody means to confuse.
absl::StatusOr<std::string> StampOf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return absl::StrCat(Stem(path), " ", std::filesystem::file_size(path, error), "\n");
  }
  std::set<std::string> lines;
  for (std::filesystem::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file(error)) continue;
    lines.insert(absl::StrCat(it->path().lexically_relative(path).string(), " ", it->file_size(error), "\n"));
  }
  if (error) return ErrnoError(error.value(), "cannot read", path);
  return absl::StrJoin(lines, "");
}

// What is read once for many units.
class Digests {
 public:
  explicit Digests(const SearchPath& search) : search_(search) {}

  absl::StatusOr<std::string> OfFiles(const std::vector<std::string>& paths) {
    return Once(absl::StrJoin(paths, "\n"), [&]() -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const FileDigest digest, DigestFiles(paths));
      return digest.sha256;
    });
  }

  // With what lies beside it under its name: model.onnx.data, model.safetensors.
  absl::StatusOr<std::string> OfModel(const std::string& given) {
    const std::string path = search_.Find(given), stem = Stem(path);
    std::set<std::string> files = {path};
    std::error_code error;
    const auto folder = std::filesystem::path(path).parent_path();
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      const bool beside = absl::StartsWith(it->path().filename().string(), stem + ".");
      if (beside && it->is_regular_file(error)) files.insert(it->path().string());
    }
    return OfFiles({files.begin(), files.end()});
  }

  absl::StatusOr<std::string> OfData(const HarnessConfig& config) {
    if (!config.has_dataset())
      return config.inputs().empty() ? std::string() : OfFiles({search_.InCaller(config.inputs())});
    return Once(config.dataset().SerializeAsString(), [&]() -> absl::StatusOr<std::string> {
      std::string stamp;
      for (const auto split : {HarnessConfig::TRAIN, HarnessConfig::TEST}) {
        ASSIGN_OR_RETURN(const auto opened, datasets::Open(config.dataset(), split, search_));
        ASSIGN_OR_RETURN(const std::string files, StampOf(opened.path));
        absl::StrAppend(&stamp, files);
      }
      return stamp;
    });
  }

 private:
  template <typename Make>
  absl::StatusOr<std::string> Once(const std::string& what, Make make) {
    const auto known = known_.find(what);
    if (known != known_.end()) return known->second;
    ASSIGN_OR_RETURN(const std::string made, make());
    return known_[what] = made;
  }

  const SearchPath& search_;
  std::map<std::string, std::string> known_;
};

std::string Readable(const std::vector<std::string>& choices) {
  std::string name = absl::StrJoin(choices, "-");
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  }
  return name.substr(0, 80);
}

absl::StatusOr<std::string> KeyOf(const Unit& unit, Digests* digests) {
  ASSIGN_OR_RETURN(const std::string program, digests->OfFiles({"/proc/self/exe"}));
  ASSIGN_OR_RETURN(const std::string model, digests->OfModel(unit.config.model().path()));
  ASSIGN_OR_RETURN(const std::string data, digests->OfData(unit.config));
  Sha256 digest;
  for (const std::string& part : {program, model, data, unit.config.DebugString()}) {
    digest.UpdateArray(absl::MakeConstSpan(part));
  }
  return absl::StrCat(Readable(unit.choices), unit.choices.empty() ? "" : "-", digest.Finish().substr(0, 16));
}

absl::Status Check(const Sweep& sweep, const std::string& file) {
  const auto error = [&](absl::string_view text) { return UsageError(absl::StrCat(file, ": ", text)); };
  for (int i = 0; i < sweep.axes_size(); ++i) {
    if (sweep.axes(i).choices().empty()) return error(absl::StrCat("axes[", i, "].choices is empty, want one"));
    std::set<std::string> names;
    for (const auto& choice : sweep.axes(i).choices()) {
      if (choice.name().empty()) return error(absl::StrCat("axes[", i, "].choices: a name is empty"));
      if (!names.insert(choice.name()).second) {
        return error(absl::StrCat("axes[", i, "].choices: two are named ", choice.name()));
      }
    }
  }
  if (sweep.shards() < 0) return error(absl::StrCat("shards is ", sweep.shards(), ", want at least 0"));
  if (sweep.attempts() < 0) return error(absl::StrCat("attempts is ", sweep.attempts(), ", want at least 0"));
  int64_t units = std::max(1, sweep.shards());
  for (const auto& axis : sweep.axes()) units = std::min<int64_t>(units, kMostUnits + 1) * axis.choices_size();
  if (units > kMostUnits) return error(absl::StrCat("choices and shards make more than ", kMostUnits, " units"));
  if (sweep.latency() && sweep.shards() > 1) return error("latency wants no shards: each would be timed");
  return absl::OkStatus();
}

}  // namespace

void Override(const HarnessConfig& set, HarnessConfig* config) {
  ClearLists(set, config);
  config->MergeFrom(set);
}

absl::StatusOr<std::vector<Unit>> UnitsOf(const Sweep& sweep, const HarnessConfig& base, const std::string& file,
                                          const SearchPath& search) {
  RETURN_IF_ERROR(Check(sweep, file));
  std::vector<Unit> units(1);
  units[0].config = base;
  for (const auto& axis : sweep.axes()) {
    std::vector<Unit> product;
    for (const Unit& unit : units) {
      for (const auto& choice : axis.choices()) {
        product.push_back(unit);
        product.back().choices.push_back(choice.name());
        Override(choice.set(), &product.back().config);
      }
    }
    units = std::move(product);
  }
  const int shards = std::max(1, sweep.shards());
  Digests digests(search);
  std::set<std::string> saved;
  std::vector<Unit> result;
  for (const Unit& whole : units) {
    for (int shard = 0; shard < shards; ++shard) {
      Unit unit = whole;
      unit.name = absl::StrJoin(unit.choices, ", ");
      if (shards > 1) {
        unit.config.mutable_evaluation()->set_shard(shard);
        unit.config.mutable_evaluation()->set_shards(shards);
        absl::StrAppend(&unit.name, unit.name.empty() ? "" : ", ", "shard ", shard + 1, " of ", shards);
      }
      RETURN_IF_ERROR(ValidateConfig(unit.config, absl::StrCat(file, ": ", unit.name)));
      for (const std::string& path : {unit.config.save_outputs(), unit.config.save_onnx(), unit.config.save_fuse()}) {
        if (path.empty() || saved.insert(path).second) continue;
        return UsageError(absl::StrCat(file, ": ", unit.name, ": ", path, " is saved by two units, want one"));
      }
      ASSIGN_OR_RETURN(unit.key, KeyOf(unit, &digests));
      result.push_back(std::move(unit));
    }
  }
  return result;
}

}  // namespace fuselage::harness::sweep
