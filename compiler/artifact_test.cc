// A network that was saved is the network: the same graph, reports and bits, on every instruction set. A file that is
// anything else is refused, or runs all the same.
#include "compiler/artifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/artifact.pb.h"
#include "compiler/compiler.h"
#include "frontend/onnx/model_builder.h"
#include "ir/fingerprint.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "runtime/executable.h"

namespace fuselage {
namespace {

using compiler::Artifact;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;
using Tensors = std::map<std::string, Tensor>;

constexpr size_t kHeaderBytes = 64;

Tensor Seeded(Shape shape, uint64_t seed) {
  return SeededTensor({DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

// A convolution and a linear layer in INT8, a function in floats, a constant.
std::string SmallNetwork() {
  onnx::ModelBuilder model(17);
  model.Input("image", {"N", 3, 8, 8}).Initializer("w", Seeded({4, 3, 3, 3}, 1)).Initializer("v", Seeded({5, 4}, 2));
  model.Initializer("summand", Seeded({5}, 3));
  model.Node("Conv", {"image", "w"}, {"c"}, "conv").Ints("pads", {1, 1, 1, 1});
  model.Node("GlobalAveragePool", {"c"}, {"g"}, "gap");
  model.Node("Flatten", {"g"}, {"features"}, "flatten");
  model.Node("Gemm", {"features", "v"}, {"l"}, "fc").Int("transB", 1);
  model.Node("Tanh", {"l"}, {"t"}, "tanh");
  model.Node("Add", {"t", "summand"}, {"logits"}, "add");
  model.Output("logits").Output("features");
  const std::string path = ::testing::TempDir() + "/small.onnx";
  std::ofstream(path, std::ios::binary) << model.Bytes();
  return path;
}

std::string ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Tensors InputsOf(const Model& model, int64_t samples) {
  Tensors inputs;
  for (const Value& input : model.inputs()) {
    TensorType type = input.type;
    type.shape[0] = samples;
    inputs[input.name] = SeededTensor(type, 7);
  }
  return inputs;
}

absl::StatusOr<Tensors> RunOn(const Model& model, kernels::Isa isa) {
  SessionOptions options;
  options.isa = isa;
  absl::StatusOr<Session> session = Prepare(model, options);
  if (!session.ok()) return session.status();
  const Tensors inputs = InputsOf(model, 1);
  Tensors outputs;
  std::map<std::string, Tensor*> asked;
  for (const Value& output : model.outputs()) asked[output.name] = &outputs[output.name];
  const absl::Status ran = session->Run({inputs.begin(), inputs.end()}, asked);
  if (!ran.ok()) return ran;
  return outputs;
}

void ExpectSameBytes(const Tensors& found, const Tensors& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, tensor] : wanted) EXPECT_TRUE(found.at(name).SameBytes(tensor)) << name;
}

class ArtifactTest : public ::testing::Test {
 protected:
  ArtifactTest() : network_(*Load(SmallNetwork())), int8_(*Compile(network_, InputsOf(network_, 4))) {
    EXPECT_OK(Save(int8_, path_));
    bytes_ = ReadBytes(path_);
    wanted_ = *RunOn(int8_, kernels::BestIsa());
  }

  // A file of these bytes, loaded.
  absl::StatusOr<Model> LoadBytes(const std::string& bytes, int64_t max_memory_bytes = 0) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    LoadOptions options;
    options.max_memory_bytes = max_memory_bytes;
    return Load(path_, options);
  }

  // The file with an index of other contents, whose checksums are right.
  std::string WithIndex(const std::string& index) const {
    const auto checksum = [](absl::string_view bytes) {
      Tensor tensor(DType::kU8, {static_cast<int64_t>(bytes.size())});
      std::memcpy(tensor.raw_data(), bytes.data(), bytes.size());
      return ir::ValueFingerprint(tensor);
    };
    const auto put = [](std::string& bytes, size_t at, uint64_t value) { std::memcpy(&bytes[at], &value, 8); };
    std::string bytes = bytes_.substr(0, kHeaderBytes) + index;
    bytes.resize((bytes.size() + 63) / 64 * 64);
    bytes += bytes_.substr(kHeaderBytes + (IndexBytes().size() + 63) / 64 * 64);
    put(bytes, 16, index.size());
    put(bytes, 24, checksum(index));
    put(bytes, 32, bytes.size());
    put(bytes, 56, checksum(bytes.substr(0, 56)));
    return bytes;
  }
  std::string WithIndex(const std::function<void(Artifact&)>& edit) const {
    Artifact index;
    EXPECT_TRUE(index.ParseFromString(IndexBytes()));
    edit(index);
    return WithIndex(index.SerializeAsString());
  }
  std::string IndexBytes() const {
    uint64_t size;
    std::memcpy(&size, &bytes_[16], 8);
    return bytes_.substr(kHeaderBytes, size);
  }

  const std::string path_ =
      absl::StrCat(::testing::TempDir(), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name(), ".fuse");
  const Model network_, int8_;
  std::string bytes_;
  Tensors wanted_;
};

// Rows that data selects, sorted: an infinity is in place of those that do not exist, an output counts the others.
TEST_F(ArtifactTest, SelectsRows) {
  onnx::ModelBuilder model(13);
  model.Input("image", {1, 6}).Initializer("zero", Tensor::Of<float>({1}, {0}));
  model.Node("Greater", {"image", "zero"}, {"above"}).Initializer("k", Tensor::Of<int64_t>({1}, {4}));
  model.Initializer("all", Tensor::Of<int64_t>({1}, {-1})).Node("Reshape", {"above", "all"}, {"flags"});
  model.Node("Compress", {"image", "flags"}, {"kept"}).Node("TopK", {"kept", "k"}, {"best", "at"}).Output("best");
  const std::string path = absl::StrCat(::testing::TempDir(), "/rows.onnx");
  std::ofstream(path, std::ios::binary) << model.Bytes();
  ASSERT_OK_AND_ASSIGN(const Model network, Load(path));
  ASSERT_OK(Save(network, path_));
  ASSERT_OK_AND_ASSIGN(const Model loaded, Load(path_));
  ASSERT_EQ(loaded.outputs().size(), 2);
  EXPECT_EQ(loaded.outputs()[1].name, "best.count");
  ASSERT_OK_AND_ASSIGN(Session session, Prepare(loaded, {}));
  const Tensor image = Tensor::Of<float>({1, 6}, {1, -2, 3, 0, 2, -1});
  Tensor best, count;
  ASSERT_OK(session.Run({{"image", image}}, {{"best", &best}, {"best.count", &count}}));
  EXPECT_EQ(ToDoubles(best), std::vector<double>({3, 2, 1, 0}));
  EXPECT_EQ(ToDoubles(count), std::vector<double>({3}));
}

TEST_F(ArtifactTest, IsTheNetwork) {
  for (const Model& model : {network_, int8_}) {
    ASSERT_OK(Save(model, path_));
    ASSERT_OK_AND_ASSIGN(const Model loaded, Load(path_));
    EXPECT_EQ(ir::Print(loaded.graph()), ir::Print(model.graph()));
    EXPECT_THAT(loaded.warnings(), IsEmpty());
    ASSERT_EQ(loaded.inputs().size(), 1);
    EXPECT_EQ(loaded.inputs()[0].name, "image");
    EXPECT_EQ(loaded.inputs()[0].type, model.inputs()[0].type);
    ASSERT_EQ(loaded.outputs().size(), 2);
    EXPECT_EQ(loaded.outputs()[1].name, "features");
    ASSERT_EQ(loaded.reports().size(), model.reports().size());
    for (size_t i = 0; i < model.reports().size(); ++i) {
      const passes::PassReport &found = loaded.reports()[i], &wanted = model.reports()[i];
      EXPECT_EQ(found.name, wanted.name);
      EXPECT_EQ(found.matches, wanted.matches);
      EXPECT_EQ(found.nodes_after, wanted.nodes_after);
      ASSERT_EQ(found.remarks.size(), wanted.remarks.size());
      for (size_t k = 0; k < wanted.remarks.size(); ++k) {
        EXPECT_EQ(found.remarks[k].kind, wanted.remarks[k].kind);
        EXPECT_EQ(found.remarks[k].message, wanted.remarks[k].message);
      }
    }
    const std::string bytes = ReadBytes(path_);
    ASSERT_OK(Save(loaded, path_));
    EXPECT_EQ(ReadBytes(path_), bytes) << "the same network, the same file";
  }
}

TEST_F(ArtifactTest, IsTheSameFileFromACache) {
  CompileOptions options;
  options.cache_folder = ::testing::TempDir() + "/artifact_cache";
  for (const bool kept : {false, true}) {
    ASSERT_OK_AND_ASSIGN(const Model model, Compile(network_, InputsOf(network_, 4), options));
    bool from_cache = false;
    for (const passes::PassReport& report : model.reports()) {
      for (const passes::Remark& remark : report.remarks) {
        from_cache |= absl::StartsWith(remark.message, "ranges from cache " + options.cache_folder);
      }
    }
    EXPECT_EQ(from_cache, kept);
    ASSERT_OK(Save(model, path_));
    EXPECT_EQ(ReadBytes(path_), bytes_);
  }
  std::filesystem::remove_all(options.cache_folder);
}

TEST_F(ArtifactTest, HasTheSameBitsOnEveryInstructionSet) {
  const std::vector<kernels::Isa> all = kernels::SupportedIsas();
  for (const std::vector<kernels::Isa>& packed : {std::vector<kernels::Isa>{}, {kernels::Isa::kScalar}, all}) {
    ASSERT_OK(Save(int8_, path_, {packed}));
    ASSERT_OK_AND_ASSIGN(const Model loaded, Load(path_));
    for (const kernels::Isa isa : all) {
      ASSERT_OK_AND_ASSIGN(const Tensors found, RunOn(loaded, isa));
      ExpectSameBytes(found, wanted_);
    }
  }
}

// The file's mapping that holds this address; empty: none does.
std::string MappingOf(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (begin <= at && at < end) return line;
  }
  return "";
}

TEST_F(ArtifactTest, CopiesAndPacksNothing) {
  const compiler::Library& library = compiler::BuiltIn();
  ASSERT_OK_AND_ASSIGN(const compiler::LoadedGraph loaded, compiler::ReadArtifact(path_, library.ops));
  for (const auto& [name, parameter] : loaded.graph->parameters()) {
    EXPECT_THAT(MappingOf(parameter.tensor->raw_data()),
                AllOf(HasSubstr("/CopiesAndPacksNothing.fuse"), HasSubstr(" r--p ")))
        << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(parameter.tensor->raw_data()) % 64, 0) << name;
  }
  const auto packings = [&](kernels::Isa isa) {
    runtime::ExecutableOptions options;
    options.isa = isa;
    options.weights = loaded.packed.get();
    EXPECT_OK(runtime::MakeProgram(*loaded.graph, library.kernels, 1, options));
    return loaded.packed->packings();
  };
  EXPECT_EQ(packings(kernels::BestIsa()), 0);
  if (kernels::BestIsa() != kernels::Isa::kScalar) {
    EXPECT_GT(packings(kernels::Isa::kScalar), 0);
  }
  EXPECT_OK(loaded.packed->status());
}

TEST_F(ArtifactTest, WhatIsPackedForOthersIsPackedAgain) {
  if (kernels::BestIsa() == kernels::Isa::kScalar) GTEST_SKIP() << "this machine has one instruction set";
  ASSERT_OK(Save(int8_, path_, {{kernels::Isa::kScalar}}));
  ASSERT_OK_AND_ASSIGN(const Model loaded, Load(path_));
  EXPECT_THAT(loaded.warnings(), ElementsAre(AllOf(HasSubstr(path_), HasSubstr("packed for scalar, wanted "))));
  ASSERT_OK_AND_ASSIGN(const Tensors found, RunOn(loaded, kernels::BestIsa()));
  ExpectSameBytes(found, wanted_);

  ASSERT_OK_AND_ASSIGN(const Model older, LoadBytes(WithIndex([](Artifact& index) { index.set_packing(0); })));
  EXPECT_THAT(older.warnings(), ElementsAre(HasSubstr("packed as version 0 does, wanted 1")));
  ASSERT_OK_AND_ASSIGN(const Tensors again, RunOn(older, kernels::BestIsa()));
  ExpectSameBytes(again, wanted_);
}

TEST_F(ArtifactTest, OfANewerVersion) {
  std::string newer = bytes_;
  newer[8] = 2;
  EXPECT_THAT(LoadBytes(newer),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(path_ + ": found version 2 of the format, wanted "
                                                                           "at most 1")));
}

TEST_F(ArtifactTest, ReplacesAFileThatIsMapped) {
  ASSERT_OK_AND_ASSIGN(const Model loaded, Load(path_));
  ASSERT_OK(Save(network_, path_));
  ASSERT_OK_AND_ASSIGN(const Tensors found, RunOn(loaded, kernels::BestIsa()));
  ExpectSameBytes(found, wanted_);
  EXPECT_THAT(Save(int8_, ::testing::TempDir() + "/none/x.fuse"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("/none/x.fuse: cannot be written: No such file or directory")));
  const std::string fifo = ::testing::TempDir() + "/fifo.fuse";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(Save(int8_, fifo), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no regular file")));
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
}

TEST_F(ArtifactTest, ManyMaySaveToOnePath) {
  const std::string path = ::testing::TempDir() + "/shared.fuse";
  std::vector<std::thread> threads;
  for (const Model& model : {network_, int8_}) {
    threads.emplace_back([&path, model] {
      for (int i = 0; i < 20; ++i) {
        ASSERT_OK(Save(model, path));
        ASSERT_OK(Load(path));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ArtifactTest, CutAnywhere) {
  for (size_t size = 0; size < bytes_.size(); ++size) {
    const auto loaded = LoadBytes(bytes_.substr(0, size));
    ASSERT_FALSE(loaded.ok()) << size << " bytes";
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(path_)) << size << " bytes";
  }
  EXPECT_FALSE(LoadBytes(bytes_ + "x").ok());
}

// Whatever happens to a byte on its way, outputs are right or there are none.
TEST_F(ArtifactTest, AnyByteDamaged) {
  int refused = 0, late = 0;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    std::string damaged = bytes_;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
    const absl::StatusOr<Model> loaded = LoadBytes(damaged);
    refused += !loaded.ok();
    if (!loaded.ok()) continue;
    const absl::StatusOr<Tensors> found = RunOn(*loaded, kernels::BestIsa());
    late += !found.ok();
    if (found.ok()) {
      ExpectSameBytes(*found, wanted_);
    } else {
      EXPECT_THAT(found, StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(path_), HasSubstr("damaged"))));
    }
  }
  EXPECT_GT(refused, kHeaderBytes + IndexBytes().size());
  EXPECT_GT(late, 0) << "packed weights are verified when they are used";
}

TEST_F(ArtifactTest, WrongIndices) {
  const auto parameter = [](Artifact& index) { return index.mutable_graph()->mutable_parameters(0); };
  const auto data = [=](Artifact& index) { return parameter(index)->mutable_data(); };
  const auto node = [](Artifact& index) {
    return index.mutable_graph()->mutable_nodes(index.graph().nodes_size() - 1);
  };
  const std::pair<const char*, std::function<void(Artifact&)>> kCases[] = {
      {"aligned to 64", [=](Artifact& i) { data(i)->set_offset(1); }},
      {"aligned to 64", [=](Artifact& i) { data(i)->set_offset(uint64_t{1} << 40); }},
      {"aligned to 64", [=](Artifact& i) { data(i)->set_offset(~uint64_t{63}); }},
      {"aligned to 64", [=](Artifact& i) { data(i)->set_bytes(~uint64_t{0}); }},
      {"aligned to 64", [=](Artifact& i) { parameter(i)->mutable_type()->add_shape(2); }},
      {"another checksum", [=](Artifact& i) { data(i)->set_checksum(1); }},
      {"overflows 64 bits",
       [=](Artifact& i) {
         for (int k = 0; k < 8; ++k) parameter(i)->mutable_type()->add_shape(int64_t{1} << 30);
       }},
      {"negative dimension", [=](Artifact& i) { parameter(i)->mutable_type()->add_shape(-1); }},
      {"f31", [=](Artifact& i) { parameter(i)->mutable_type()->set_dtype("f31"); }},
      {"found the name", [=](Artifact& i) { parameter(i)->set_name("a b"); }},
      {"found the name", [=](Artifact& i) { *i.mutable_graph()->add_parameters() = i.graph().parameters(0); }},
      {"quantization", [=](Artifact& i) { parameter(i)->mutable_type()->mutable_quantization()->set_axis(9); }},
      {"found node number", [=](Artifact& i) { node(i)->set_operands(0, 99); }},
      {"found node number", [=](Artifact& i) { node(i)->set_operands(0, -2); }},
      {"found node number", [=](Artifact& i) { i.mutable_graph()->set_outputs(0, 99); }},
      {"an operand is absent", [=](Artifact& i) { i.mutable_graph()->set_outputs(0, -1); }},
      {"verifier", [=](Artifact& i) { i.mutable_graph()->clear_outputs(); }},
      {"found the kind 'call'", [=](Artifact& i) { node(i)->set_kind("call"); }},
      {"unknown operator",
       [=](Artifact& i) {
         node(i)->set_kind("call_function");
         node(i)->set_target("frobnicate");
       }},
      {"no module",
       [=](Artifact& i) {
         node(i)->set_kind("call_module");
         node(i)->set_target("none");
       }},
      {"a second module", [=](Artifact& i) { *i.mutable_graph()->add_modules() = i.graph().modules(0); }},
      {"found no value", [=](Artifact& i) { i.mutable_graph()->mutable_modules(0)->add_attributes(); }},
      {"found names for 2 inputs", [=](Artifact& i) { i.add_inputs("x"); }},
      {"and 1 outputs", [=](Artifact& i) { i.set_outputs(1, i.outputs(0)); }},
      {"found a remark of kind 7", [=](Artifact& i) { i.mutable_passes(0)->add_remarks()->set_kind(7); }},
      {"parameter number 77", [=](Artifact& i) { i.mutable_packed(0)->set_parameter(77); }},
      {"wanted the layout", [=](Artifact& i) { i.mutable_packed(0)->set_layout("conv2d winograd u8[4]"); }},
      {"wanted those of u8[1]",
       [=](Artifact& i) {
         i.mutable_packed(0)->mutable_type()->set_dtype("u8");
         i.mutable_packed(0)->mutable_type()->clear_shape();
         i.mutable_packed(0)->mutable_type()->add_shape(1);
       }},
      {"found one layout twice", [=](Artifact& i) { *i.add_packed() = i.packed(0); }},
  };
  for (const auto& [message, edit] : kCases) {
    const auto loaded = LoadBytes(WithIndex(edit));
    ASSERT_FALSE(loaded.ok()) << message;
    EXPECT_THAT(std::string(loaded.status().message()), AllOf(HasSubstr(path_), HasSubstr(message)));
  }
  EXPECT_THAT(LoadBytes(WithIndex(std::string("\x0a\xff"))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("its index is damaged")));
  EXPECT_THAT(LoadBytes(bytes_, 1000), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(path_)));
  ASSERT_OK_AND_ASSIGN(const Model loaded, LoadBytes(WithIndex([](Artifact&) {})));
  ASSERT_OK_AND_ASSIGN(const Tensors found, RunOn(loaded, kernels::BestIsa()));
  ExpectSameBytes(found, wanted_);
}

bool IsSmall(const ir::Graph& graph) {
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    for (const TensorType& type : node->type().elements()) {
      if (type.num_elements() > 1 << 12) return false;
    }
  }
  return true;
}

// An index of somebody who knows its checksum: what it says is refused, or can be run.
TEST_F(ArtifactTest, RandomIndices) {
  constexpr int kRounds = 2000;
  const std::string index = IndexBytes();
  uint64_t state = 1;
  const auto random = [&state](uint64_t limit) {  // SplitMix64: reproducible on every machine.
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % limit;
  };
  int ran = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string flipped = index;
    for (uint64_t flips = 1 + random(3); flips > 0; --flips) {
      flipped[random(flipped.size())] = static_cast<char>(random(256));
    }
    const absl::StatusOr<Model> loaded = LoadBytes(WithIndex(flipped), 1 << 24);
    if (!loaded.ok() || !IsSmall(loaded->graph())) continue;
    const absl::StatusOr<Tensors> found = RunOn(*loaded, kernels::BestIsa());
    ran += found.ok();
  }
  EXPECT_GT(ran, kRounds / 20);
  EXPECT_LT(ran, kRounds * 19 / 20);
}

// Sessions find weights by layouts' names. Where a kernel packs other bytes under the same name, kPackingVersion must
// go up by one: then, and with the new hash here, old files are packed again.
TEST(PackingVersion, GoesUpWithWhatIsPacked) {
  class Hashed final : public kernels::PackedWeights {
   public:
    std::shared_ptr<const Tensor> Get(const kernels::Parameter& parameter, const std::string& layout,
                                      absl::FunctionRef<Tensor()> pack) override {
      auto packed = PackedWeights::Get(parameter, layout, pack);
      text_ << ir::ValueFingerprint(*parameter) << layout << ir::ValueFingerprint(*packed) << "\n";
      return packed;
    }
    std::string hash() const {
      const std::string text = text_.str();
      Tensor bytes(DType::kU8, {static_cast<int64_t>(text.size())});
      std::memcpy(bytes.raw_data(), text.data(), text.size());
      return absl::StrFormat("%016x", ir::ValueFingerprint(bytes));
    }

   private:
    std::ostringstream text_;
  };
  const std::map<std::string, std::string> kHashes = {
      {"scalar", "f8d1f57c27036a13"},
      {"avx2", "6af9fcf41db1d638"},
  };
  // 7x7, 1x1, 3x3 (Winograd), strided, by groups, by channels; a linear layer, one with groups of four bits; a GRU.
  ASSERT_OK_AND_ASSIGN(const auto graph, ir::Parse(R"(graph @packed {
  param @r: f32[1,12,4] = seed(10)
  param @u: f32[1,12,6] = seed(11)
  param @w1: i8[32,3,7,7]<scale=0.01> = seed(1)
  param @w2: i8[64,32,1,1]<scale=0.01> = seed(2)
  param @w3: i8[64,64,3,3]<scale=0.01> = seed(3)
  param @w4: i8[64,64,3,3]<scale=0.01> = seed(4)
  param @w5: i8[64,16,3,3]<scale=0.01> = seed(5)
  param @w6: i8[64,1,3,3]<scale=0.01> = seed(6)
  param @w7: i8[40,64]<scale=0.01> = seed(7)
  param @w8: i8[2,8] = [-8, 7, -7, 6, -6, 5, -5, 4, -3, -2, 1, 4, 7, 10, 11, 12]
  param @g8: f32[2,1] = [0.5, 0.25]
  module @c1 = int8.conv2d(out_scale=4.0, padding=[3, 3, 3, 3], stride=[2, 2], weight=@w1)
  module @c2 = int8.conv2d(out_scale=4.0, weight=@w2)
  module @c3 = int8.conv2d(out_scale=4.0, padding=[1, 1, 1, 1], weight=@w3)
  module @c4 = int8.conv2d(out_scale=4.0, padding=[1, 1, 1, 1], stride=[2, 2], weight=@w4)
  module @c5 = int8.conv2d(groups=4, out_scale=4.0, padding=[1, 1, 1, 1], weight=@w5)
  module @c6 = int8.conv2d(groups=64, out_scale=4.0, padding=[1, 1, 1, 1], weight=@w6)
  module @fc = int8.linear(out_dtype=f32, weight=@w7)
  module @groups = int8.linear_groups(weight=@w8, weight_scale=@g8)
  module @gru = gru(recurrent_weight=@r, weight=@u)
  %x: u8[1,3,64,60]<scale=0.02> = placeholder
  %s: f32[5,1,6] = placeholder
  %codes: i8[3,8] = placeholder
  %scales: f32[3,1] = placeholder
  %c1: u8[1,32,32,30]<scale=4> = call_module @c1(%x)
  %c2: u8[1,64,32,30]<scale=4> = call_module @c2(%c1)
  %c3: u8[1,64,32,30]<scale=4> = call_module @c3(%c2)
  %c4: u8[1,64,16,15]<scale=4> = call_module @c4(%c3)
  %c5: u8[1,64,16,15]<scale=4> = call_module @c5(%c4)
  %c6: u8[1,64,16,15]<scale=4> = call_module @c6(%c5)
  %pooled: u8[1,64,1,1]<scale=4> = call_function int8.global_avg_pool(%c6, out_scale=4.0)
  %row: u8[1,64]<scale=4> = call_function flatten(%pooled)
  %logits: f32[1,40] = call_module @fc(%row)
  %groups: f32[3,2] = call_module @groups(%codes, %scales)
  %gru: (f32[5,1,1,4], f32[1,1,4]) = call_module @gru(%s)
  %h: f32[1,1,4] = call_function getitem(%gru, index=1)
  output(%logits, %groups, %h)
})",
                                                   compiler::BuiltIn().ops));
  for (const auto& [name, hash] : kHashes) {
    runtime::ExecutableOptions options;
    options.isa = *kernels::IsaFromName(name);
    if (!kernels::CpuSupports(options.isa)) continue;
    Hashed weights;
    options.weights = &weights;
    ASSERT_OK(runtime::MakeProgram(*graph, compiler::BuiltIn().kernels, 1, options));
    EXPECT_EQ(weights.hash(), hash) << name << ", kPackingVersion is " << compiler::kPackingVersion;
  }
}

}  // namespace
}  // namespace fuselage
