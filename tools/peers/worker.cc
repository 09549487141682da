#include "tools/peers/worker.h"

#include <chrono>
#include <cstring>
#include <iostream>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ir/base/status.h"
#include "ir/ops/register_all.h"
#include "ir/safetensors.h"

namespace fuselage::peers {
namespace {

constexpr int kMaxRuns = 1 << 20;

const ir::OpRegistry& Ops() {
  static const auto* registry = [] {
    auto* created = new ir::OpRegistry;
    ops::RegisterAll(*created);
    return created;
  }();
  return *registry;
}

absl::StatusOr<Job> ReadJob(int argc, char** argv) {
  int64_t batch = 0;
  Job job;
  if (argc != 6 || !absl::SimpleAtoi(argv[3], &batch) || batch < 1 || !absl::SimpleAtoi(argv[4], &job.threads) ||
      job.threads < 1) {
    return absl::InvalidArgumentError("usage: GRAPH SAMPLES BATCH THREADS MODE");
  }
  job.mode = argv[5];
  ASSIGN_OR_RETURN(job.graph, ir::ReadGraph(argv[1], Ops()));
  RETURN_IF_ERROR(job.graph->SetBatch(batch));
  ASSIGN_OR_RETURN(const ir::TensorMap samples, ir::ReadSafetensors(argv[2]));
  for (const ir::Node* placeholder : job.graph->placeholders()) {
    const std::string name = InputName(job.inputs.size());
    const auto found = samples.find(name);
    Tensor input(placeholder->tensor_type());
    if (found == samples.end() || found->second->dtype() != input.dtype() ||
        found->second->byte_size() < input.byte_size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          argv[2], ": ", name, " is ", found == samples.end() ? "missing" : ToString(found->second->type()), ", want ",
          ToString(input.type()), " or more samples"));
    }
    std::memcpy(input.raw_data(), found->second->raw_data(), input.byte_size());
    job.inputs.push_back(std::move(input));
  }
  if (job.inputs.empty()) return absl::InvalidArgumentError(absl::StrCat(argv[1], ": has no input"));
  return job;
}

absl::StatusOr<std::string> Answer(const std::string& line, Contestant& contestant) {
  std::istringstream words(line);
  std::string command;
  int runs = 0;
  words >> command;
  std::string answer;
  if (command == "outputs") {
    for (double value : contestant.Outputs()) absl::StrAppend(&answer, answer.empty() ? "" : " ", ShortestText(value));
    return answer;
  }
  if (command != "run" || !(words >> runs) || runs < 1 || runs > kMaxRuns) {
    return absl::InvalidArgumentError(absl::StrCat("found \"", line, "\", wanted \"run N\" or \"outputs\""));
  }
  std::vector<int64_t> times(runs);
  RETURN_IF_ERROR(contestant.Run());
  for (int64_t& time : times) {
    const auto start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(contestant.Run());
    const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - start;
    time = contestant.device_ns().value_or(taken.count());
  }
  for (int64_t time : times) absl::StrAppend(&answer, answer.empty() ? "" : " ", time);
  return answer;
}

int Fail(const absl::Status& status) {
  std::cout << "error " << absl::StrReplaceAll(status.message(), {{"\n", " "}}) << std::endl;
  return 1;
}

}  // namespace

std::string InputName(size_t input) { return absl::StrCat("input ", input); }

int Serve(int argc, char** argv,
          const std::function<absl::StatusOr<std::unique_ptr<Contestant>>(const Job& job)>& make) {
  const absl::StatusOr<Job> job = ReadJob(argc, argv);
  if (!job.ok()) return Fail(job.status());
  const auto contestant = make(*job);
  if (!contestant.ok()) return Fail(contestant.status());
  const absl::Status first = (*contestant)->Run();
  if (!first.ok()) return Fail(first);
  std::cout << "ready " << (*contestant)->version() << " " << (*contestant)->isa() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = Answer(line, **contestant);
    if (!answer.ok()) return Fail(answer.status());
    std::cout << *answer << std::endl;
  }
  return 0;
}

}  // namespace fuselage::peers
