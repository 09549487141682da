#include "runtime/program.h"

#include <algorithm>
#include <utility>

#include "runtime/memory_plan.h"

namespace fuselage::runtime {
namespace {

using Home = BufferSpec::Home;

// Each buffer is in use from the first to the last step that one inside it is; -1: none.
std::vector<Lifetime> UsesOf(const std::vector<BufferSpec>& buffers) {
  std::vector<Lifetime> uses;
  for (const BufferSpec& buffer : buffers) uses.push_back({buffer.bytes, buffer.first, buffer.last});
  for (const BufferSpec& inside : buffers) {
    if (inside.whole < 0) continue;
    Lifetime& whole = uses[inside.whole];
    if (whole.first < 0 || (inside.first >= 0 && inside.first < whole.first)) whole.first = inside.first;
    whole.last = std::max(whole.last, inside.last);
  }
  return uses;
}

// What lives for more than a turn of a band is there in all of them.
void ExtendOverTurns(const std::vector<Band>& bands, Lifetime* lifetime) {
  const Lifetime before = *lifetime;
  for (const Band& band : bands) {
    const auto inside = [&](int step) { return step >= band.first && step <= band.last; };
    if (inside(before.first) && inside(before.last)) return;
    if (inside(before.first)) lifetime->first = band.first;
    if (inside(before.last)) lifetime->last = band.last;
  }
}

// Inputs arrive before the first step, outputs leave after the last. What one of two steps that run beside each other
// uses, lives during both.
void PlanBuffers(bool on_host, Program* program) {
  const Schedule& schedule = program->schedule;
  const int last_step = std::max(0, static_cast<int>(schedule.steps.size()) - 1);
  const auto beside_next = [&](int step) { return step >= 0 && step < last_step && schedule.steps[step].beside_next; };
  std::vector<Lifetime> lifetimes;
  std::vector<int> planned;  // The buffer of each lifetime.
  program->offsets.resize(schedule.buffers.size());
  const std::vector<BufferSpec>& buffers = schedule.buffers;
  const std::vector<Lifetime> uses = UsesOf(buffers);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const BufferSpec& buffer = buffers[i];
    if (buffer.whole >= 0 || buffer.home == Home::kConstant || (on_host && buffer.home != Home::kArena)) continue;
    Lifetime lifetime{buffer.bytes, std::max(0, uses[i].first), std::max(0, uses[i].last)};
    ExtendOverTurns(schedule.bands, &lifetime);
    if (beside_next(lifetime.first - 1)) --lifetime.first;
    if (beside_next(lifetime.last)) ++lifetime.last;
    if (buffer.home == Home::kInput) lifetime.first = 0;
    if (buffer.home == Home::kOutput) lifetime.last = last_step;
    lifetimes.push_back(lifetime);
    planned.push_back(static_cast<int>(i));
  }
  std::vector<bool> is_scratch(schedule.buffers.size());
  for (const StepSpec& step : schedule.steps) {
    if (step.scratch != StepSpec::kAbsent) is_scratch[step.scratch] = true;
  }
  const MemoryPlan arena = PlanMemory(lifetimes);
  for (size_t i = 0; i < planned.size(); ++i) {
    const int id = planned[i];
    program->offsets[id] = arena.offsets[i];
    program->arena.push_back(
        {arena.offsets[i], lifetimes[i].bytes, lifetimes[i].first, lifetimes[i].last, uses[id].first, is_scratch[id]});
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].whole >= 0) program->offsets[i] = program->offsets[buffers[i].whole] + buffers[i].offset;
  }
  program->arena_bytes = arena.bytes;
}

}  // namespace

std::shared_ptr<const Program> PlanProgram(Schedule schedule, bool on_host, int threads) {
  auto program = std::make_shared<Program>();
  program->threads = threads;
  program->schedule = std::move(schedule);
  PlanBuffers(on_host, program.get());
  return program;
}

}  // namespace fuselage::runtime
