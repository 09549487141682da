#include "harness/flags.h"

#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/profiler.h"
#include "harness/base/exit_code.h"
#include "ir/base/status.h"
#include "ir/base/suggest.h"
#include "kernels/core/isa.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {
namespace {

constexpr char kExplain[] = "explain", kCompile[] = "compile", kSweep[] = "sweep";

struct Flag {
  std::string name, value, help;  // `value` names it in the help; empty: the flag takes none.
  std::function<absl::Status(const std::string&, Flags*)> set;
};

absl::Status BadValue(absl::string_view name, absl::string_view value, absl::string_view want) {
  return UsageError(absl::StrCat("--", name, "=", value, ": want ", want));
}

Flag Text(const std::string& name, const std::string& value, const std::string& help, std::string Flags::*field) {
  return {name, value, help, [name, field](const std::string& text, Flags* flags) {
            if (text.empty()) return BadValue(name, text, "a value");
            flags->*field = text;
            return absl::OkStatus();
          }};
}

// A flag that may be given several times.
Flag Texts(const std::string& name, const std::string& value, const std::string& help,
           std::vector<std::string> Flags::*field) {
  return {name, value, help, [name, field](const std::string& text, Flags* flags) {
            if (text.empty()) return BadValue(name, text, "a value");
            (flags->*field).push_back(text);
            return absl::OkStatus();
          }};
}

constexpr int kAny = std::numeric_limits<int>::max();

Flag Integer(const std::string& name, const std::string& help, int least, int most, std::optional<int> Flags::*field) {
  return {name, "N", help, [name, least, most, field](const std::string& text, Flags* flags) {
            int value = 0;
            if (!absl::SimpleAtoi(text, &value) || value < least || value > most) {
              return BadValue(name, text,
                              absl::StrCat("a whole number of at least ", least,
                                           most == kAny ? "" : absl::StrCat(" and at most ", most)));
            }
            flags->*field = value;
            return absl::OkStatus();
          }};
}

std::vector<std::string> IsaNames() {
  std::vector<std::string> names;
  for (const kernels::Isa isa : kernels::AllIsas()) names.push_back(kernels::IsaName(isa));
  return names;
}

Flag OneOf(const std::string& name, const std::vector<std::string>& values, const std::string& help,
           std::string Flags::*field) {
  std::string list;
  for (const std::string& value : values) absl::StrAppend(&list, list.empty() ? "" : ", ", value);
  return {name, "NAME", absl::StrCat(help, ": ", list), [=](const std::string& text, Flags* flags) {
            for (const std::string& value : values) {
              if (text == value) {
                flags->*field = text;
                return absl::OkStatus();
              }
            }
            return BadValue(name, text, absl::StrCat("one of ", list, DidYouMean(text, values)));
          }};
}

Flag Switch(const std::string& name, const std::string& help, bool Flags::*field) {
  return {name, "", help, [field](const std::string&, Flags* flags) {
            flags->*field = true;
            return absl::OkStatus();
          }};
}

// "4G", "512M", "100K", or bytes.
absl::Status SetMemory(const std::string& text, Flags* flags) {
  absl::string_view digits = text;
  int64_t unit = 1;
  for (const auto& [suffix, bytes] : {std::make_pair('K', int64_t{1} << 10), std::make_pair('M', int64_t{1} << 20),
                                      std::make_pair('G', int64_t{1} << 30)}) {
    if (!digits.empty() && digits.back() == suffix) {
      unit = bytes;
      digits.remove_suffix(1);
      break;
    }
  }
  int64_t count = 0;
  if (!absl::SimpleAtoi(digits, &count) || count <= 0 || count > std::numeric_limits<int64_t>::max() / unit) {
    return BadValue("max_memory", text, "bytes, or a number with K, M or G");
  }
  flags->max_memory_bytes = count * unit;
  return absl::OkStatus();
}

const std::vector<Flag>& AllFlags() {
  static const auto* flags = new std::vector<Flag>{
      Text("config", "FILE", "what to run; a bare name is looked for here, then in harness/configs", &Flags::config),
      Text("model", "FILE", "an .onnx or .ir file, in place of the config's; without a config the default one runs it",
           &Flags::model),
      Text("calibrate", "FOLDER", "images to calibrate on, in place of the config's data", &Flags::calibrate),
      Text("labels", "PATH",
           "images with labels, for accuracy: a folder of a folder for each class, or a file of lines "
           "\"<path> <class>\"",
           &Flags::labels),
      Text("inputs", "FILE.npz", "NumPy arrays to run on, an array for each input by its name", &Flags::inputs),
      Text("save_outputs", "FILE.npz", "writes the outputs of every variant, as <variant>/<output>",
           &Flags::save_outputs),
      Text("save_onnx", "FILE.onnx", "writes the quantized network for other runtimes", &Flags::save_onnx),
      Text("save_fuse", "FILE.fuse", "writes the compiled network, to be loaded without the passes", &Flags::save_fuse),
      {"pack", "ISA", "an instruction set that the .fuse file has packed weights for; by default the best",
       [](const std::string& text, Flags* flags) {
         const absl::Status known = kernels::IsaFromName(text).status();
         if (!known.ok()) return UsageError(absl::StrCat("--pack: ", known.message()));
         flags->pack.push_back(text);
         return absl::OkStatus();
       }},
      OneOf("backend", {"cpu", "reference", "cuda"}, "where every variant runs", &Flags::backend),
      OneOf("isa", IsaNames(), "the best instruction set to use", &Flags::isa),
      Integer("threads", "threads of the benchmark and of everything else; 0: all cores", 0,
              runtime::ThreadPool::kMaxThreads, &Flags::threads),
      Integer("batch", "the only batch size, of the benchmark and of requests", 1, kAny, &Flags::batch),
      Integer("streams", "serve requests by one and by N sessions at once, each on a core of its own; 0: all cores", 0,
              runtime::ThreadPool::kMaxThreads, &Flags::streams),
      Switch("pixels",
             "the network takes images' bytes as they are decoded, u8 [n, h, w, c], and normalizes them itself",
             &Flags::pixels),
      Integer("limit", "measure accuracy on the first N images, or other samples; 0: all", 0, kAny, &Flags::limit),
      Integer("unit", "of a sweep only the unit with this number, from 0", 0, kAny, &Flags::unit),
      Text("out", "FOLDER", "results.json, reports and IR dumps; by default fuselage-out/<config or model>",
           &Flags::out),
      Texts("shape", "INPUT:DIMS", "an input's shape, whatever the file says, as in input:1,3,224,224", &Flags::shapes),
      Texts("constant", "INPUT:NUMBERS", "an input that is a constant, as in rate:16000", &Flags::constants),
      Texts("output", "NAME", "a value of the .onnx file that is an output, in place of the file's", &Flags::outputs),
      {"max_memory", "BYTES", "bound on loading a model, and on an executable's weights and arena; K, M, G", SetMemory},
      Switch("allow_nonfinite", "layers with NaN or infinite weights stay in FP32, with a warning",
             &Flags::allow_nonfinite),
      Switch("explain", "the same as the command explain", &Flags::explain),
      Integer("tune_ms",
              absl::StrCat("for how long each network runs that is timed for a choice between kernels or precisions; ",
                           compiler::ProfilerOptions().seconds * 1e3),
              1, kAny, &Flags::tune_ms),
      Text("replay", "FOLDER", "such choices by the timings in FOLDER, as ~/.cache/fuselage keeps them, or an error",
           &Flags::replay),
      Switch("no_cache", "keep nothing in ~/.cache/fuselage, and use nothing from it", &Flags::no_cache),
      Switch("remeasure_peaks", "measure the machine's peaks again", &Flags::remeasure_peaks),
      Switch("help", "this list", &Flags::help),
  };
  return *flags;
}

}  // namespace

absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& args) {
  Flags flags;
  bool compile = false;
  for (size_t i = 0; i < args.size(); ++i) {
    absl::string_view text = args[i];
    if (i == 0 && (text == kExplain || text == kCompile || text == kSweep)) {
      (text == kSweep ? flags.sweep : flags.explain) = true;
      compile = text == kCompile;
      continue;
    }
    if (i == 0 && !absl::StrContains(text, "-") && !absl::StrContains(text, ".") && !absl::StrContains(text, "/")) {
      const std::vector<std::string> commands = {kExplain,      kCompile,     kReportCommand, kCompareCommand,
                                                 kMergeCommand, kDiffCommand, kSweep};
      return UsageError(absl::StrCat("unknown command ", text, DidYouMean(text, commands), "; there are ",
                                     absl::StrJoin(commands, ", ")));
    }
    if (!absl::StartsWith(text, "--")) {
      return UsageError(absl::StrCat("\"", text, "\" is not a flag: want --config=", text));
    }
    text.remove_prefix(2);
    const size_t equals = text.find('=');
    const std::string name(text.substr(0, equals));
    const Flag* found = nullptr;
    std::vector<std::string> names;
    for (const Flag& flag : AllFlags()) {
      names.push_back(flag.name);
      if (flag.name == name) found = &flag;
    }
    if (found == nullptr) {
      const std::string nearest = Nearest(name, names);
      return UsageError(absl::StrCat("unknown flag --", name,
                                     nearest.empty() ? "; --help lists them" : "; did you mean --" + nearest + "?"));
    }
    std::string value;
    if (equals != absl::string_view::npos) {
      value = std::string(text.substr(equals + 1));
      if (found->value.empty()) return UsageError(absl::StrCat("--", name, " takes no value"));
    } else if (!found->value.empty()) {
      if (++i == args.size()) return UsageError(absl::StrCat("--", name, " wants a value: ", found->value));
      value = args[i];
    }
    RETURN_IF_ERROR(found->set(value, &flags));
  }
  if (flags.config.empty() && flags.model.empty() && !flags.help) {
    return UsageError("want --model=FILE.onnx, or --config=FILE, such as --config=resnet18.textproto");
  }
  if (flags.sweep && flags.config.empty()) return UsageError("sweep wants --config=SWEEP.textproto");
  if (compile && !flags.help) {
    if (flags.out.empty()) return UsageError("compile wants --out=FILE.fuse");
    flags.save_fuse = std::exchange(flags.out, "");
  }
  return flags;
}

std::string FlagsHelp() {
  std::string out =
      "bazel run //harness -- --model=network.onnx [flags]\n"
      "bazel run //harness -- --config=resnet18.textproto [flags]\n"
      "bazel run //harness -- explain --config=resnet18.textproto [flags]\n"
      "bazel run //harness -- compile --config=resnet18.textproto --out=resnet18.fuse [flags]\n"
      "bazel run //harness -- report [BEFORE.json] RESULTS.json\n"
      "bazel run //harness -- compare BEFORE.json RESULTS.json [--tolerance=PERCENT]\n"
      "bazel run //harness -- merge FOLDER RESULTS.json...\n"
      "bazel run //harness -- diff A.ir B.ir\n"
      "bazel run //harness -- sweep --config=sweep.textproto [flags]\n\n"
      "Without a config, harness/configs/default.textproto quantizes the model and measures it beside FP32, on random\n"
      "inputs or on images of your own.\n"
      "explain runs only the passes, and says what each did, where each op runs, and what leaving INT8 costs.\n"
      "compile does so too, and writes what the passes made, to be loaded without them: --out is that file.\n"
      "report draws report.html again, beside RESULTS.json; compare also prints what changed, and ends with 1 where a\n"
      "figure got worse by more than its noise, and than the tolerance.\n"
      "merge writes results.json and report.html of several runs by one build on one machine into FOLDER.\n"
      "diff prints how two graphs differ, and ends with 0 where they do not, 1 where they do, 2 where it cannot "
      "say.\n"
      "sweep runs a config in many variations, beside other processes that do the same (docs/sweeps.md).\n\n";
  for (const Flag& flag : AllFlags()) {
    const std::string name = absl::StrCat("--", flag.name, flag.value.empty() ? "" : "=", flag.value);
    absl::StrAppendFormat(&out, "  %-22s %s\n", name, flag.help);
  }
  return out;
}

void ApplyFlags(const Flags& flags, HarnessConfig* config) {
  for (auto& variant : *config->mutable_variants()) {
    if (!flags.backend.empty()) variant.set_backend(flags.backend);
    if (!flags.isa.empty()) variant.set_isa(flags.isa);
  }
  if (flags.threads.has_value()) {
    config->mutable_benchmark()->clear_threads();
    config->mutable_benchmark()->add_threads(*flags.threads);
  }
  if (flags.batch.has_value()) {
    config->mutable_benchmark()->clear_batches();
    config->mutable_benchmark()->add_batches(*flags.batch);
  }
  if (flags.streams.has_value()) {
    config->mutable_throughput()->clear_streams();
    for (int streams : {1, *flags.streams}) config->mutable_throughput()->add_streams(streams);
  }
  if (flags.batch.has_value() && config->has_throughput()) config->mutable_throughput()->set_batch(*flags.batch);
  if (flags.pixels) config->mutable_preprocessing()->set_input(HarnessConfig::Preprocessing::PIXELS);
  if (flags.limit.has_value()) config->mutable_evaluation()->set_limit(*flags.limit);
  if (!flags.model.empty()) config->mutable_model()->set_path(flags.model);
  if (!flags.calibrate.empty() || !flags.labels.empty()) {
    config->clear_random_inputs();
    auto* images = config->mutable_dataset()->mutable_images();
    if (!flags.calibrate.empty()) images->set_calibrate(flags.calibrate);
    if (!flags.labels.empty()) images->set_labels(flags.labels);
  }
  if (!flags.inputs.empty()) {
    config->clear_random_inputs();
    config->set_inputs(flags.inputs);
  }
  if (!flags.save_outputs.empty()) config->set_save_outputs(flags.save_outputs);
  if (!flags.save_onnx.empty()) config->set_save_onnx(flags.save_onnx);
  if (!flags.save_fuse.empty()) config->set_save_fuse(flags.save_fuse);
  for (const std::string& isa : flags.pack) config->add_pack(isa);
  for (const std::string& shape : flags.shapes) config->mutable_model()->add_shapes(shape);
  for (const std::string& constant : flags.constants) config->mutable_model()->add_constants(constant);
  for (const std::string& output : flags.outputs) config->mutable_model()->add_outputs(output);
}

}  // namespace fuselage::harness
