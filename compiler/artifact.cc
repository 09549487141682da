#include "compiler/artifact.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph_message.h"
#include "ir/base/mapped_file.h"
#include "ir/base/status.h"
#include "ir/fingerprint.h"
#include "kernels/reproducible/reproducible.h"
#include "runtime/executable.h"

namespace fuselage::compiler {
namespace {

constexpr int64_t kAlignment = 64;
// No text, and what breaks text shows (as PNG's signature: RFC 2083, 12.11).
constexpr char kMagic[] = {'\x89', 'f', 'u', 's', 'e', '\r', '\n', '\x1a'};

// Little-endian, as all that follows it.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t zero;
  uint64_t index_bytes;  // An Artifact, behind the header. Sections follow it.
  uint64_t index_checksum;
  uint64_t file_bytes;
  uint64_t zeros[2];
  uint64_t checksum;  // Of the bytes before it.
};
static_assert(sizeof(Header) == kAlignment && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a file is what memory is");

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// `owner` keeps the bytes.
Tensor BytesAsTensor(absl::string_view bytes, TensorType type, std::shared_ptr<const void> owner) {
  return Tensor::Borrow(std::move(type), const_cast<char*>(bytes.data()), std::move(owner));  // Nobody writes.
}

uint64_t Checksum(absl::string_view bytes) {
  TensorType type{DType::kU8, {static_cast<int64_t>(bytes.size())}, std::nullopt, Layout::kRowMajor};
  return ir::ValueFingerprint(BytesAsTensor(bytes, std::move(type), std::make_shared<int>()));
}

uint64_t Checksum(const Header& header) {
  return Checksum({reinterpret_cast<const char*>(&header), offsetof(Header, checksum)});
}

// --- Writing.

// What kernels pack of a network's parameters.
class RecordedWeights final : public kernels::PackedWeights {
 public:
  explicit RecordedWeights(const ir::Graph& graph) {
    for (const auto& [name, parameter] : graph.parameters()) {
      index_.emplace(parameter.tensor.get(), static_cast<int>(index_.size()));
    }
  }

  std::shared_ptr<const Tensor> Get(const kernels::Parameter& parameter, const std::string& layout,
                                    absl::FunctionRef<Tensor()> pack) override {
    auto packed = PackedWeights::Get(parameter, layout, pack);
    const auto found = index_.find(parameter.get());
    if (found != index_.end()) packed_[{found->second, layout}] = packed;  // Not of what the graph computes.
    return packed;
  }

  // By parameter's index and layout.
  const std::map<std::pair<int, std::string>, std::shared_ptr<const Tensor>>& packed() const { return packed_; }

 private:
  std::map<const Tensor*, int> index_;
  std::map<std::pair<int, std::string>, std::shared_ptr<const Tensor>> packed_;
};

// Where each tensor will lie.
class Sections {
 public:
  Section Add(std::shared_ptr<const Tensor> tensor, uint64_t checksum) {
    Section section;
    section.set_offset(bytes_);
    section.set_bytes(tensor->byte_size());
    section.set_checksum(checksum);
    bytes_ += Aligned(tensor->byte_size());
    tensors_.push_back(std::move(tensor));
    return section;
  }

  int64_t bytes() const { return bytes_; }
  const std::vector<std::shared_ptr<const Tensor>>& tensors() const { return tensors_; }

 private:
  int64_t bytes_ = 0;
  std::vector<std::shared_ptr<const Tensor>> tensors_;
};

Pass MessageOf(const passes::PassReport& report) {
  Pass message;
  message.set_name(report.name);
  message.set_pass(report.pass);
  message.set_changed(report.changed);
  message.set_nodes_before(report.nodes_before);
  message.set_nodes_after(report.nodes_after);
  message.set_matches(report.matches);
  if (report.max_abs_error.has_value()) message.set_max_abs_error(*report.max_abs_error);
  if (report.snr_db.has_value()) message.set_snr_db(*report.snr_db);
  for (const passes::Remark& remark : report.remarks) {
    if (remark.kind == passes::RemarkKind::kProcess) continue;
    Pass::Remark& to = *message.add_remarks();
    to.set_kind(static_cast<int>(remark.kind));
    to.set_pass(remark.pass);
    to.set_node(remark.node);
    to.set_message(remark.message);
  }
  return message;
}

absl::StatusOr<passes::PassReport> ReportOf(const Pass& message) {
  passes::PassReport report;
  report.name = message.name();
  report.pass = message.pass();
  report.changed = message.changed();
  report.nodes_before = message.nodes_before();
  report.nodes_after = message.nodes_after();
  report.matches = message.matches();
  if (message.has_max_abs_error()) report.max_abs_error = message.max_abs_error();
  if (message.has_snr_db()) report.snr_db = message.snr_db();
  for (const Pass::Remark& remark : message.remarks()) {
    if (remark.kind() < 0 || remark.kind() > static_cast<int>(passes::RemarkKind::kNote)) {
      return absl::InvalidArgumentError(absl::StrCat("found a remark of kind ", remark.kind()));
    }
    const auto kind = static_cast<passes::RemarkKind>(remark.kind());
    report.remarks.push_back({kind, remark.pass(), remark.node(), remark.message()});
  }
  return report;
}

void Write(absl::string_view bytes, std::ostream& out) {
  constexpr char kZeros[kAlignment] = {};
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.write(kZeros, static_cast<std::streamsize>(Aligned(bytes.size()) - bytes.size()));
}

// --- Reading.

// What a file's index says, and where its tensors lie.
struct OpenedFile {
  std::shared_ptr<const void> owner;
  Artifact index;
  absl::string_view sections;
};

absl::StatusOr<OpenedFile> Open(absl::string_view bytes, std::shared_ptr<const void> owner) {
  OpenedFile opened;
  opened.owner = std::move(owner);
  const auto error = [](const auto&... found) { return absl::InvalidArgumentError(absl::StrCat(found...)); };
  Header header;
  if (bytes.size() < sizeof(header)) return error("found ", bytes.size(), " bytes, wanted a header of 64");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return error("found no .fuse file");
  if (header.version > kArtifactVersion) {
    return absl::UnimplementedError(absl::StrCat("found version ", header.version, " of the format, wanted at most ",
                                                 kArtifactVersion, ": a newer Fuselage wrote it"));
  }
  if (header.checksum != Checksum(header) || header.version == 0) return error("its header is damaged");
  if (header.file_bytes != bytes.size()) {
    return error("found ", bytes.size(), " bytes, wanted the ", header.file_bytes, " that were written");
  }
  bytes.remove_prefix(sizeof(header));
  if (header.index_bytes > bytes.size() || header.index_bytes > std::numeric_limits<int>::max()) {
    return error("found an index of ", header.index_bytes, " bytes in a file of ", header.file_bytes);
  }
  const absl::string_view index = bytes.substr(0, header.index_bytes);
  if (Checksum(index) != header.index_checksum) return error("its index is damaged: it has another checksum");
  if (!opened.index.ParseFromArray(index.data(), static_cast<int>(index.size()))) return error("its index is damaged");
  bytes.remove_prefix(std::min<size_t>(bytes.size(), Aligned(index.size())));
  opened.sections = bytes;
  return opened;
}

absl::StatusOr<std::shared_ptr<const Tensor>> TensorIn(const OpenedFile& opened, const Section& section,
                                                       TensorType type) {
  const uint64_t size = opened.sections.size();
  if (section.offset() % kAlignment != 0 || section.offset() > size || section.bytes() > size - section.offset() ||
      section.bytes() != static_cast<uint64_t>(type.byte_size())) {
    return absl::InvalidArgumentError(absl::StrCat("found ", section.bytes(), " bytes at ", section.offset(), " of ",
                                                   size, ", wanted those of ", ToString(type), ", aligned to ",
                                                   kAlignment));
  }
  const absl::string_view bytes = opened.sections.substr(section.offset(), section.bytes());
  return std::make_shared<const Tensor>(BytesAsTensor(bytes, std::move(type), opened.owner));
}

absl::StatusOr<std::unique_ptr<StoredWeights>> StoredIn(const OpenedFile& opened, const ir::Graph& graph,
                                                        const std::string& path) {
  auto weights = std::make_unique<StoredWeights>(path);
  for (const PackedWeight& packed : opened.index.packed()) {
    const auto& parameters = opened.index.graph().parameters();
    if (packed.parameter() < 0 || packed.parameter() >= parameters.size()) {
      return absl::InvalidArgumentError(absl::StrCat("found packed weights of parameter number ", packed.parameter(),
                                                     ", wanted one of ", parameters.size()));
    }
    StoredWeights::Stored stored;
    stored.name = parameters[packed.parameter()].name();
    stored.parameter = graph.FindParameterOrNull(stored.name)->tensor;
    stored.layout = packed.layout();
    stored.checksum = packed.data().checksum();
    absl::StatusOr<TensorType> type = TypeOf(packed.type());
    if (!type.ok()) return Annotate(type.status(), absl::StrCat("packed parameter @", stored.name));
    auto tensor = TensorIn(opened, packed.data(), *std::move(type));
    if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("packed parameter @", stored.name));
    stored.packed = *std::move(tensor);
    RETURN_IF_ERROR(weights->Add(std::move(stored)));
  }
  return weights;
}

// Why weights will be packed again; empty: they are packed for this machine.
std::string WhyRepacked(const Artifact& index) {
  if (index.packing() != kPackingVersion) {
    return absl::StrCat("found weights packed as version ", index.packing(), " does, wanted ", kPackingVersion,
                        "; they are packed again");
  }
  const std::string best = kernels::IsaName(kernels::BestIsa());
  const auto& isas = index.isas();
  if (isas.empty() || std::find(isas.begin(), isas.end(), best) != isas.end()) return "";
  return absl::StrCat("found weights packed for ", absl::StrJoin(isas, " and "), ", wanted ", best,
                      ", this CPU's; others are packed again");
}

absl::StatusOr<LoadedGraph> Read(const OpenedFile& opened, const std::string& path, const ir::OpRegistry& ops,
                                 ImportOptions options) {
  constexpr int64_t kGraphBytesPerByte = 64;  // Generous: a node of 20 bytes is less than a kilobyte.
  const Artifact& index = opened.index;
  Budget budget(options.max_memory_bytes);
  RETURN_IF_ERROR(budget.Charge(kGraphBytesPerByte * static_cast<int64_t>(index.ByteSizeLong()), "the index"));
  LoadedGraph loaded;
  loaded.warnings = {index.warnings().begin(), index.warnings().end()};
  options.warnings = &loaded.warnings;
  const auto tensor_in = [&](const Section& section, TensorType type) {
    return TensorIn(opened, section, std::move(type));
  };
  ASSIGN_OR_RETURN(loaded.graph, GraphOf(index.graph(), ops, tensor_in, options, &budget));
  ASSIGN_OR_RETURN(const int64_t batch, BatchOf(*loaded.graph));
  if (batch != 1) return absl::InvalidArgumentError(absl::StrCat("found a batch of ", batch, ", wanted 1"));
  loaded.names.inputs = {index.inputs().begin(), index.inputs().end()};
  loaded.names.outputs = {index.outputs().begin(), index.outputs().end()};
  const std::set<std::string> inputs(index.inputs().begin(), index.inputs().end()),
      outputs(index.outputs().begin(), index.outputs().end());
  const size_t wanted_inputs = loaded.graph->placeholders().size(),
               wanted_outputs = loaded.graph->output()->num_operands();
  if (inputs.size() != wanted_inputs || outputs.size() != wanted_outputs || index.inputs_size() != wanted_inputs ||
      index.outputs_size() != wanted_outputs) {
    return absl::InvalidArgumentError(absl::StrCat("found names for ", inputs.size(), " inputs and ", outputs.size(),
                                                   " outputs, wanted ", wanted_inputs, " and ", wanted_outputs));
  }
  for (const Pass& pass : index.passes()) {
    ASSIGN_OR_RETURN(passes::PassReport report, ReportOf(pass));
    loaded.reports.push_back(std::move(report));
  }
  const std::string why_repacked = WhyRepacked(index);
  if (!why_repacked.empty()) loaded.warnings.push_back(absl::StrCat(path, ": ", why_repacked));
  if (index.packing() == kPackingVersion) {
    ASSIGN_OR_RETURN(loaded.packed, StoredIn(opened, *loaded.graph, path));
  }
  return loaded;
}

}  // namespace

bool IsArtifact(const std::string& path) {
  char first[sizeof(kMagic)] = {};
  std::ifstream file;
  file.rdbuf()->pubsetbuf(nullptr, 0);  // A buffer is a twentieth of what loading a small network takes.
  file.open(path, std::ios::binary);
  file.read(first, sizeof(first));
  return std::memcmp(first, kMagic, sizeof(kMagic)) == 0;
}

absl::Status WriteArtifact(const LoadedGraph& network, const kernels::KernelRegistry& kernels,
                           absl::Span<const kernels::Isa> isas, const std::string& path) {
  RecordedWeights recorded(*network.graph);
  Artifact index;
  for (const kernels::Isa isa : isas) {
    if (!kernels::CpuSupports(isa)) {
      return UsageError(absl::StrCat("this CPU does not run ", kernels::IsaName(isa),
                                     ", and packs for what it runs: ", kernels::IsaName(kernels::BestIsa())));
    }
    runtime::ExecutableOptions options;
    options.isa = isa;
    options.weights = &recorded;
    RETURN_IF_ERROR(runtime::MakeProgram(*network.graph, kernels, 1, options).status());
    index.add_isas(kernels::IsaName(isa));
  }
  *index.mutable_graph() = MessageOf(*network.graph);
  for (const std::string& name : network.names.inputs) index.add_inputs(name);
  for (const std::string& name : network.names.outputs) index.add_outputs(name);
  for (const std::string& warning : network.warnings) index.add_warnings(warning);
  for (const passes::PassReport& report : network.reports) *index.add_passes() = MessageOf(report);
  index.set_packing(kPackingVersion);
  index.set_arithmetic(reproducible::kArithmeticVersion);

  Sections sections;
  for (auto& parameter : *index.mutable_graph()->mutable_parameters()) {
    const ir::Parameter& from = *network.graph->FindParameterOrNull(parameter.name());
    *parameter.mutable_data() = sections.Add(from.tensor, from.fingerprint);
  }
  for (const auto& [key, tensor] : recorded.packed()) {
    PackedWeight& packed = *index.add_packed();
    packed.set_parameter(key.first);
    packed.set_layout(key.second);
    *packed.mutable_type() = MessageOf(tensor->type());
    *packed.mutable_data() = sections.Add(tensor, ir::ValueFingerprint(*tensor));
  }

  const std::string index_bytes = index.SerializeAsString();
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kArtifactVersion;
  header.index_bytes = index_bytes.size();
  header.index_checksum = Checksum(index_bytes);
  header.file_bytes = sizeof(header) + Aligned(index_bytes.size()) + sections.bytes();
  header.checksum = Checksum(header);
  const auto error = [&](absl::string_view found) {
    return absl::UnavailableError(absl::StrCat(path, ": cannot be written: ", found));
  };
  struct stat info;  // A rename would put a file in a device's place.
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return error("it is there, and no regular file");
  static std::atomic<int> saves;  // Other threads may save to the same path.
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".", saves++);
  std::ofstream out(temporary, std::ios::binary);
  if (!out) return error(strerror(errno));
  Write({reinterpret_cast<const char*>(&header), sizeof(header)}, out);
  Write(index_bytes, out);
  for (const auto& tensor : sections.tensors()) {
    Write({static_cast<const char*>(tensor->raw_data()), static_cast<size_t>(tensor->byte_size())}, out);
  }
  out.close();
  if (out && std::rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const int reason = errno;
  unlink(temporary.c_str());
  return error(strerror(reason));
}

absl::StatusOr<LoadedGraph> ReadArtifact(const std::string& path, const ir::OpRegistry& ops,
                                         const ImportOptions& options) {
  ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  return ReadArtifact(file->bytes(), file, path, ops, options);
}

absl::StatusOr<LoadedGraph> ReadArtifact(absl::string_view bytes, std::shared_ptr<const void> owner,
                                         const std::string& name, const ir::OpRegistry& ops,
                                         const ImportOptions& options) {
  const absl::StatusOr<OpenedFile> opened = Open(bytes, std::move(owner));
  if (!opened.ok()) return Annotate(opened.status(), name);
  absl::StatusOr<LoadedGraph> loaded = Read(*opened, name, ops, options);
  if (!loaded.ok()) return Annotate(loaded.status(), name);
  return loaded;
}

}  // namespace fuselage::compiler
