#include "runtime/bands.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace fuselage::runtime {
namespace {

// Costs are in bytes that could have been moved meanwhile from the cache that cores share.
//
// A core's share of that cache, in caches of its own; what a byte costs that comes from memory. And what it costs to
// begin a step, in caches: its call, and threads that wait for each other at its end.
constexpr double kSharedCache = 8;
constexpr double kFromMemory = 4;
constexpr double kBeginStep = 1.0 / 32;

// What it costs to multiply: VNNI multiplies about 16 pairs of bytes while one arrives, AMX four times as many.
double CostOfPair(kernels::Isa isa) { return isa.Includes(kernels::Isa::kAmx) ? 1.0 / 64 : 1.0 / 16; }

// So that the time to choose is linear in the number of steps.
constexpr int kMostSteps = 256;
constexpr int64_t kMostTurns = 1024;

// A value that a step reads: who writes it, and its bytes.
struct Read {
  int writer;
  double bytes;
};

// What a step moves and multiplies.
struct Traffic {
  std::vector<Read> reads;
  double written = 0;     // Bytes of all items.
  double multiplied = 0;  // What its products cost.
  double whole = 0;       // What each turn reads again: weights, and operands that have no items.
  int whole_writer = -1;  // The last step that writes one of those operands.
};

class BandMaker {
 public:
  BandMaker(absl::Span<const Items> items, const ScheduleOptions& options, Schedule* schedule)
      : items_(items),
        cache_(static_cast<double>(options.cache_bytes)),
        multiply_(CostOfPair(options.isa)),
        threads_(options.threads),
        schedule_(*schedule) {}

  void Make() {
    if (std::none_of(items_.begin(), items_.end(), [](const Items& items) { return items.count > 1; })) return;
    writers_.resize(schedule_.buffers.size());
    for (size_t i = 0; i < steps().size(); ++i) traffic_.push_back(TrafficOf(static_cast<int>(i)));
    for (const Band& band : ChooseBands()) Apply(band);
  }

 private:
  std::vector<StepSpec>& steps() { return schedule_.steps; }

  // The buffer that all of it lies in.
  int RootOf(int buffer) const {
    while (schedule_.buffers[buffer].whole >= 0) buffer = schedule_.buffers[buffer].whole;
    return buffer;
  }

  // --- What steps move.
  void AddReads(int buffer, std::vector<Read>* reads) const {
    if (writers_[buffer].bytes > 0) reads->push_back(writers_[buffer]);
    for (const int part : schedule_.buffers[buffer].parts) AddReads(part, reads);
  }

  Traffic TrafficOf(int index) {
    const StepSpec& step = steps()[index];
    Traffic traffic;
    if (step.kernel != nullptr) traffic.whole = static_cast<double>(step.kernel->weight_bytes());
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i] == StepSpec::kAbsent) continue;
      const size_t before = traffic.reads.size();
      AddReads(step.inputs[i], &traffic.reads);
      if (items_[index].count > 0 && items_[index].input_strides[i] > 0) continue;
      traffic.whole += static_cast<double>(schedule_.buffers[step.inputs[i]].bytes);
      for (size_t k = before; k < traffic.reads.size(); ++k) {
        traffic.whole_writer = std::max(traffic.whole_writer, traffic.reads[k].writer);
      }
    }
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const int64_t bytes =
          step.kernel != nullptr ? step.kernel->outputs()[i].byte_size() : schedule_.buffers[step.outputs[i]].bytes;
      writers_[step.outputs[i]] = {index, static_cast<double>(bytes)};
      traffic.written += static_cast<double>(bytes);
    }
    const auto widest = [](double bytes, const std::optional<TensorType>& type) {
      return type ? std::max<double>(bytes, ByteSize(type->dtype)) : bytes;
    };
    if (step.kernel != nullptr) {
      const auto& inputs = step.kernel->inputs();
      traffic.multiplied = multiply_ * step.macs * std::accumulate(inputs.begin(), inputs.end(), 1.0, widest);
    }
    return traffic;
  }

  // --- Which bands.
  // touched[i]: what a core touches before step i, where each step has this share of its items.
  std::vector<double> Touched(double share) const {
    std::vector<double> touched = {0};
    for (const Traffic& traffic : traffic_) {
      touched.push_back(touched.back() + share * traffic.written / threads_ + traffic.whole);
    }
    return touched;
  }

  // What it costs to move a byte that the core comes back to after it has touched so many.
  static constexpr double kCosts[] = {0, 1, kFromMemory};
  int CostOfByte(double touched) const { return touched <= cache_ ? 0 : touched <= kSharedCache * cache_ ? 1 : 2; }

  // The time for which a step waits for what it moves: most of it while there is little to multiply, little of it while
  // there is much.
  static double CostOfMoving(double moved, double multiplied) {
    return moved == 0 ? 0 : moved * moved / (moved + multiplied);
  }

  double CostOfRead(const std::vector<double>& touched, double share, const Read& read, int reader) const {
    double before = 0;
    for (const Read& input : traffic_[read.writer].reads) before += input.bytes;
    return 2 * read.bytes / threads_ *
           kCosts[CostOfByte(touched[reader + 1] - touched[read.writer] + share * before / threads_)];
  }

  static std::vector<int64_t> TurnsOf(int64_t items) {
    std::vector<int64_t> turns;
    for (int64_t n = 1; n <= std::min(items, kMostTurns); ++n) {
      if (items % n == 0) turns.push_back(n);
    }
    return turns;
  }

  // By the variant that takes all of them? Where none is chosen by shape, by whichever there is.
  bool MayTake(int index, int64_t items) {
    const auto& [entry, describe] = std::tie(items_[index].entry, items_[index].describe);
    if (entry == nullptr || entry->variant == nullptr) return true;
    const auto [it, is_new] = may_take_.try_emplace({index, items}, false);
    if (!is_new) return it->second;
    const absl::StatusOr<std::string> variant = entry->variant(describe(items));
    return it->second = variant.ok() && *variant == steps()[index].kernel->variant();
  }

  // A shortest path from the first step to behind the last.
  std::vector<Band> ChooseBands() {
    struct Best {
      double cost = std::numeric_limits<double>::infinity();
      Band band;  // Its last.
    };
    const int count = static_cast<int>(steps().size());
    std::vector<Best> best(count + 1);
    best[0].cost = 0;
    const std::vector<double> all = Touched(1);
    std::map<int64_t, std::vector<double>> touched;    // By turns.
    std::map<int64_t, std::vector<int64_t>> turns_of;  // By items.
    for (int first = 0; first < count; ++first) {
      const int64_t items = std::max<int64_t>(1, items_[first].count);
      std::vector<int64_t>& choices = turns_of[items];
      if (choices.empty()) choices = TurnsOf(items);
      for (const int64_t turns : choices) {
        const double share = 1.0 / static_cast<double>(turns);
        std::vector<double>& now = touched[turns];
        if (now.empty()) now = Touched(share);
        double arriving = 0, moving[] = {0, 0, 0};  // By what it costs to read weights again.
        const int end = turns == 1 ? first + 1 : std::min(count, first + kMostSteps);
        for (int last = first; last < end; ++last) {
          const Traffic& traffic = traffic_[last];
          const bool may = items_[last].count == items && traffic.whole_writer < first;
          if (turns > 1 && (!may || !MayTake(last, items / turns))) break;
          double moved = 0;
          for (const Read& read : traffic.reads) {
            const bool inside = read.writer >= first;
            moved += inside ? CostOfRead(now, share, read, last) : CostOfRead(all, 1, read, last);
            if (!inside) arriving += share * read.bytes / threads_;
          }
          const double again = traffic.whole * static_cast<double>(turns - 1);
          for (int i = 0; i < 3; ++i)
            moving[i] += CostOfMoving(moved + kCosts[i] * again, traffic.multiplied / threads_);
          const double cost = best[first].cost + moving[CostOfByte(now[last + 1] - now[first] + arriving)] +
                              kBeginStep * cache_ * static_cast<double>(turns * (last + 1 - first));
          if (cost < best[last + 1].cost) best[last + 1] = {cost, {first, last, turns}};
        }
      }
    }
    std::vector<Band> bands;
    for (int end = count; end > 0; end = best[end].band.first) {
      if (best[end].band.turns > 1) bands.push_back(best[end].band);
    }
    std::reverse(bands.begin(), bands.end());
    return bands;
  }

  // --- What they change.
  // Nothing where a step has no kernel for so few items.
  void Apply(const Band& band) {
    const int64_t items = items_[band.first].count / band.turns;
    std::vector<std::unique_ptr<kernels::Kernel>> made;
    for (int i = band.first; i <= band.last; ++i) {
      if (items_[i].entry == nullptr) {
        made.push_back(nullptr);
        continue;
      }
      absl::StatusOr<std::unique_ptr<kernels::Kernel>> kernel = items_[i].entry->create(items_[i].describe(items));
      if (!kernel.ok()) return;
      made.push_back(*std::move(kernel));
    }
    for (int i = band.first; i <= band.last; ++i) {
      StepSpec& step = steps()[i];
      step.kernel = std::move(made[i - band.first]);
      if (step.kernel == nullptr) {
        step.reordered.shape[0] = items;
        continue;
      }
      if (step.scratch == StepSpec::kAbsent) step.scratch = AddScratch(i);
      schedule_.buffers[step.scratch].bytes = step.kernel->scratch_bytes();
    }
    ShrinkBuffers(band, items);
    schedule_.bands.push_back(band);
  }

  int AddScratch(int step) {
    BufferSpec scratch;
    scratch.first = scratch.last = step;
    schedule_.buffers.push_back(std::move(scratch));
    return static_cast<int>(schedule_.buffers.size()) - 1;
  }

  // Those that no other step uses hold the items of a turn.
  void ShrinkBuffers(const Band& band, int64_t items) {
    std::set<int> kept;  // Roots.
    for (size_t i = 0; i < schedule_.buffers.size(); ++i) {
      if (schedule_.buffers[i].home != BufferSpec::Home::kArena) kept.insert(RootOf(static_cast<int>(i)));
    }
    std::map<int, int64_t> strides;
    for (int i = 0; i < static_cast<int>(steps().size()); ++i) {
      const bool inside = i >= band.first && i <= band.last;
      const auto use = [&](int buffer, const std::vector<int64_t>& item_strides, size_t operand) {
        if (buffer == StepSpec::kAbsent) return;
        if (!inside) kept.insert(RootOf(buffer));
        if (inside && item_strides[operand] > 0) strides[RootOf(buffer)] = item_strides[operand];
      };
      for (size_t k = 0; k < steps()[i].inputs.size(); ++k) use(steps()[i].inputs[k], items_[i].input_strides, k);
      for (size_t k = 0; k < steps()[i].outputs.size(); ++k) use(steps()[i].outputs[k], items_[i].output_strides, k);
    }
    for (size_t i = 0; i < schedule_.buffers.size(); ++i) {
      const auto stride = strides.find(RootOf(static_cast<int>(i)));
      if (stride == strides.end() || kept.count(stride->first) > 0) continue;
      schedule_.buffers[i].bytes -= items * (band.turns - 1) * stride->second;
    }
    for (int i = band.first; i <= band.last; ++i) {
      StepSpec& step = steps()[i];
      const auto add_strides = [&](const std::vector<int>& buffers, const std::vector<int64_t>& item_strides) {
        for (size_t k = 0; k < buffers.size(); ++k) {
          const bool passed_on = buffers[k] != StepSpec::kAbsent && kept.count(RootOf(buffers[k])) > 0;
          step.strides.push_back(passed_on ? items * item_strides[k] : 0);
        }
      };
      add_strides(step.inputs, items_[i].input_strides);
      add_strides(step.outputs, items_[i].output_strides);
    }
  }

  const absl::Span<const Items> items_;  // Of each step.
  const double cache_, multiply_;
  const int threads_;
  Schedule& schedule_;
  std::vector<Read> writers_;  // By buffer: the step that writes it, and how much; no bytes: none does.
  std::vector<Traffic> traffic_;
  std::map<std::pair<int, int64_t>, bool> may_take_;  // Step, items.
};

}  // namespace

int64_t CoreCacheBytes() {
  const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : int64_t{1} << 20;
}

void MakeBands(absl::Span<const Items> items, const ScheduleOptions& options, Schedule* schedule) {
  BandMaker(items, options, schedule).Make();
}

}  // namespace fuselage::runtime
