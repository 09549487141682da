#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/block.h"

namespace fuselage::cuda {
namespace {

// C[16][8] += A[16][32] * B[8][32]^T, modulo 2^32.
template <typename A, typename B>
void MultiplyTiles(const A (&a)[16][32], const B (&b)[8][32], int32_t (&c)[16][8]) {
  int16_t wide_a[16][32], wide_b[8][32];  // So that compilers see 16-bit products, which vectorize.
  for (int m = 0; m < 16; ++m) {
    for (int k = 0; k < 32; ++k) wide_a[m][k] = a[m][k];
  }
  for (int n = 0; n < 8; ++n) {
    for (int k = 0; k < 32; ++k) wide_b[n][k] = b[n][k];
  }
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      int32_t sum = 0;
      for (int k = 0; k < 32; ++k) sum += static_cast<int32_t>(wide_a[m][k]) * wide_b[n][k];
      c[m][n] = static_cast<int32_t>(static_cast<uint32_t>(c[m][n]) + static_cast<uint32_t>(sum));
    }
  }
}

// acc += a * b, with fragments of mma.m16n8k32 (PTX ISA, "Matrix Fragments for mma.m16n8k32") and rows of b.
template <typename A, typename B>
void MultiplyFragments(const Lanes<Vector<uint32_t, 4>>& a, const B (&b)[8][32], Lanes<Vector<int32_t, 4>>* acc) {
  A x[16][32];
  int32_t c[16][8];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int group = lane / 4, in_group = lane % 4;
    for (int i = 0; i < 4; ++i) {
      std::memcpy(&x[group + 8 * (i % 2)][4 * in_group + 16 * (i / 2)], &a.values()[lane].values[i], 4);
      c[group + 8 * (i / 2)][2 * in_group + i % 2] = acc->values()[lane].values[i];
    }
  }
  MultiplyTiles(x, b, c);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int group = lane / 4, in_group = lane % 4;
    for (int i = 0; i < 4; ++i) acc->values()[lane].values[i] = c[group + 8 * (i / 2)][2 * in_group + i % 2];
  }
}

// Passes beyond the first over banks, each four bytes wide: what several lanes want of the same word takes one.
class Banks {
 public:
  void Take(uint32_t offset, uint32_t bytes) {
    for (uint32_t word = offset / 4; word < (offset + bytes + 3) / 4; ++word) {
      std::vector<uint32_t>& words = words_[word % kWarpSize];
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    }
  }
  int64_t Conflicts() {
    size_t most = 1;
    for (std::vector<uint32_t>& words : words_) {
      most = std::max(most, words.size());
      words.clear();
    }
    return static_cast<int64_t>(most) - 1;
  }

 private:
  std::vector<uint32_t> words_[kWarpSize];
};

}  // namespace

void Emulator::AllowConstants(absl::string_view name, const void* data, int64_t bytes) {
  Allow(name, data, bytes, Use::kConstants);
}

void Emulator::AllowReads(absl::string_view name, const void* data, int64_t bytes) {
  Allow(name, data, bytes, Use::kReads);
}

void Emulator::AllowWrites(absl::string_view name, void* data, int64_t bytes) {
  Allow(name, data, bytes, Use::kWrites);
}

void Emulator::AllowTickets(absl::string_view name, uint32_t* data, int64_t count) {
  Allow(name, data, count * static_cast<int64_t>(sizeof(*data)), Use::kTickets);
}

void Emulator::Allow(absl::string_view name, const void* data, int64_t bytes, Use use) {
  ranges_.push_back({std::string(name), static_cast<const uint8_t*>(data), bytes, use, {}, {}});
}

void Emulator::BeginLaunch() {
  for (Range& range : ranges_) {
    if (range.use != Use::kWrites) continue;
    range.writers.assign(range.bytes, {});
    range.loaded.assign(range.bytes, false);
  }
  tickets_.clear();
  blocks_ = 0;
}

void Emulator::EndLaunch() {
  for (const Range& range : ranges_) {
    if (range.use != Use::kTickets) continue;
    for (int64_t i = 0; i < range.bytes; i += sizeof(uint32_t)) {
      uint32_t ticket;
      std::memcpy(&ticket, range.data + i, sizeof(ticket));
      if (ticket != 0) Fail(absl::StrCat("leaves ", ticket, " at byte ", i, " of ", range.name, ", wanted 0"));
    }
  }
}

std::vector<std::array<int, 3>> Emulator::Shuffled(const std::array<int, 3>& grid) {
  std::vector<std::array<int, 3>> indices;
  for (int z = 0; z < grid[2]; ++z) {
    for (int y = 0; y < grid[1]; ++y) {
      for (int x = 0; x < grid[0]; ++x) indices.push_back({x, y, z});
    }
  }
  std::shuffle(indices.begin(), indices.end(), std::mt19937());
  return indices;
}

Emulator::Range* Emulator::FindOrNull(const void* data, int64_t bytes) {
  const auto* p = static_cast<const uint8_t*>(data);
  for (Range& range : ranges_) {
    if (p >= range.data && p + bytes <= range.data + range.bytes) return &range;
  }
  return nullptr;
}

bool Emulator::MayLoad(Block& block, int thread, const void* data, int64_t bytes, bool as_constant) {
  Range* range = FindOrNull(data, bytes);
  if (range == nullptr || range->use == Use::kTickets) {
    Fail(absl::StrCat("loads ", bytes, " bytes ", range == nullptr ? "outside of global memory" : "of ",
                      range == nullptr ? "" : range->name));
    return false;
  }
  const int64_t begin = static_cast<const uint8_t*>(data) - range->data;
  if (reinterpret_cast<uintptr_t>(data) % bytes != 0) {
    Fail(absl::StrCat("loads ", bytes, " bytes of ", range->name, " from byte ", begin, ", which is not aligned"));
    return false;
  }
  if (range->use != Use::kConstants && !block.Waited(thread, "loads")) return false;
  if (as_constant && range->use != Use::kConstants) {
    Fail(absl::StrCat("loads byte ", begin, " of ", range->name, " as a constant, which it is not"));
    return false;
  }
  if (range->use != Use::kWrites) return true;
  for (int64_t i = begin; i < begin + bytes; ++i) {
    if (range->writers[i].block != 0 && !block.Sees(thread, range->writers[i])) {
      Fail(absl::StrCat("loads byte ", i, " of ", range->name,
                        ", which the same launch stores, without fence, ticket and fence between"));
      return false;
    }
    range->loaded[i] = true;
  }
  return true;
}

bool Emulator::MayTake(const uint32_t* ticket) {
  const Range* range = FindOrNull(ticket, sizeof(*ticket));
  if (range != nullptr && range->use == Use::kTickets) return true;
  Fail("takes a ticket where there is none");
  return false;
}

bool Emulator::MayStore(const Writer& writer, void* data, int64_t bytes) {
  Range* range = FindOrNull(data, bytes);
  if (range == nullptr || range->use != Use::kWrites) {
    Fail(absl::StrCat("stores ", bytes, " bytes ", range == nullptr ? "outside of global memory" : "to ",
                      range == nullptr ? "" : range->name));
    return false;
  }
  const int64_t begin = static_cast<const uint8_t*>(data) - range->data;
  if (reinterpret_cast<uintptr_t>(data) % bytes != 0) {
    Fail(absl::StrCat("stores ", bytes, " bytes of ", range->name, " to byte ", begin, ", which is not aligned"));
    return false;
  }
  for (int64_t i = begin; i < begin + bytes; ++i) {
    if (range->writers[i].block != 0 || range->loaded[i]) {
      Fail(absl::StrCat("stores byte ", i, " of ", range->name,
                        range->loaded[i] ? ", which the same launch has loaded" : " twice"));
      return false;
    }
    range->writers[i] = writer;
  }
  return true;
}

void Emulator::Fail(std::string what) {
  if (error_.empty()) error_ = std::move(what);
}

Block::Block(Emulator& emulator, std::array<int, 3> index, int warps, int shared_bytes, bool waited, Cluster* cluster)
    : emulator_(emulator),
      index_(index),
      number_(++emulator.blocks_),
      warps_(warps),
      cluster_(cluster),
      has_cluster_(warps),
      shared_(shared_bytes),
      accesses_(shared_bytes / 2, Access{kNever, kNever}),
      waited_(warps, waited),
      shared_since_(warps * kWarpSize),
      copies_(warps * kWarpSize),
      fences_(warps * kWarpSize),
      seen_(warps * kWarpSize) {
  if (cluster_ != nullptr) cluster_->block(z()) = this;
}

Block::~Block() {
  if (cluster_ != nullptr) cluster_->block(z()) = nullptr;
  if (std::find(waited_.begin(), waited_.end(), false) != waited_.end()) {
    emulator_.Fail("a block ends without having waited for earlier launches");
  }
  for (const Copies& copies : copies_) {
    if (!copies.pending.empty()) emulator_.Fail("a block ends with copies that were never waited for");
  }
  for (const auto& [_, barrier] : barriers_) {
    if (!barrier.copies.empty()) emulator_.Fail("a block ends with copies that were never waited for");
    if (cluster_ == nullptr || barrier.expected == 0) continue;
    emulator_.Fail("a block ends before what its cluster stores there");
  }
}

bool Block::InShared(uint32_t offset, uint32_t bytes, const char* what) {
  if (offset % bytes == 0 && bytes % 2 == 0 && offset + bytes <= shared_.size()) return true;
  emulator_.Fail(absl::StrCat(what, " ", bytes, " bytes of shared memory at ", offset, ": misaligned or outside of ",
                              shared_.size()));
  return false;
}

void Block::CountConflicts() {
  if (uses_.empty()) return;
  // The n-th time that a lane comes to a line goes with the n-th time of the others.
  std::vector<std::pair<int, int>> times;  // Of a lane, by line.
  std::map<std::pair<int, int>, std::vector<Use>> at_once;
  int lane = -1;
  for (const Use& use : uses_) {
    if (use.lane != lane) times.clear();
    lane = use.lane;
    auto time = std::find_if(times.begin(), times.end(), [&](const auto& t) { return t.first == use.line; });
    if (time == times.end()) time = times.insert(times.end(), {use.line, 0});
    at_once[{use.line, time->second++}].push_back(use);
  }
  uses_.clear();
  static thread_local Banks banks;
  for (const auto& [_, uses] : at_once) {
    // A pass is of 128 bytes.
    const int lanes = 128 / static_cast<int>(std::max(4u, uses[0].bytes));
    for (size_t i = 0; i < uses.size(); ++i) {
      if (i > 0 && uses[i].lane / lanes != uses[i - 1].lane / lanes) emulator_.shared_conflicts_ += banks.Conflicts();
      banks.Take(uses[i].offset, uses[i].bytes);
    }
    emulator_.shared_conflicts_ += banks.Conflicts();
  }
}

void Block::LoadShared(int thread, uint32_t offset, uint32_t bytes, void* to) {
  std::memset(to, 0, bytes);
  if (!InShared(offset, bytes, "loads")) return;
  const uint64_t stamp = Stamp(thread), begin = Stamp(0);
  for (uint32_t i = offset / 2; i < (offset + bytes) / 2; ++i) {
    Access& access = accesses_[i];
    if (access.stored <= kInFlight) {
      emulator_.Fail(
          absl::StrCat("loads shared memory at ", 2 * i,
                       access.stored == kNever ? ", which nobody stored" : ", while a copy to it is pending"));
      return;
    }
    if (access.stored >= begin && access.stored != stamp) {
      emulator_.Fail(absl::StrCat("loads shared memory at ", 2 * i, ", which another thread stores in this phase"));
      return;
    }
    access.loaded = access.loaded < begin || access.loaded == stamp ? stamp : Stamp(kSeveral);
  }
  std::memcpy(to, shared_.data() + offset, bytes);
}

bool Block::CheckStore(int thread, uint32_t offset, uint32_t bytes) {
  if (!InShared(offset, bytes, "stores")) return false;
  const uint64_t stamp = Stamp(thread), begin = Stamp(0);
  for (uint32_t i = offset / 2; i < (offset + bytes) / 2; ++i) {
    const Access& access = accesses_[i];
    if (access.stored == kInFlight || (access.stored >= begin && access.stored != stamp) ||
        (access.loaded >= begin && access.loaded != stamp)) {
      emulator_.Fail(absl::StrCat(
          "stores to shared memory at ", 2 * i, ", ",
          access.stored == kInFlight ? "while a copy to it is pending" : "which another thread uses in this phase"));
      return false;
    }
  }
  return true;
}

void Block::StoreShared(int thread, uint32_t offset, uint32_t bytes, const void* from) {
  const auto barrier = barriers_.upper_bound(offset + bytes - 1);
  if (barrier != barriers_.begin() && std::prev(barrier)->first + 8 > offset) {
    return emulator_.Fail(absl::StrCat("stores to shared memory at ", offset, ", over a barrier"));
  }
  if (!CheckStore(thread, offset, bytes)) return;
  for (uint32_t i = offset / 2; i < (offset + bytes) / 2; ++i) accesses_[i].stored = Stamp(thread);
  std::memcpy(shared_.data() + offset, from, bytes);
}

void Block::CopyAsync(int thread, uint32_t offset, uint32_t bytes, const void* from) {
  Copy copy;
  copy.offset = offset;
  copy.bytes = bytes;
  copy.group = copies_[thread].group;
  if (!CheckStore(thread, offset, bytes) || !LoadGlobal(thread, from, bytes, copy.data.data())) return;
  for (uint32_t i = offset / 2; i < (offset + bytes) / 2; ++i) accesses_[i].stored = kInFlight;
  copies_[thread].pending.push_back(copy);
  emulator_.copied_bytes_ += bytes;
}

Block::Barrier* Block::FindBarrier(int thread, uint32_t barrier) {
  const auto found = barriers_.find(barrier);
  if (found != barriers_.end() && found->second.thread == thread) return &found->second;
  emulator_.Fail(absl::StrCat("a thread uses the barrier at ", barrier, ", which it has not made"));
  return nullptr;
}

void Block::CopyBulk(int thread, uint32_t offset, std::vector<uint8_t> data, uint32_t barrier) {
  Barrier* b = FindBarrier(thread, barrier);
  if (b == nullptr) return;
  for (uint32_t at = 0; at < data.size(); at += 16) {
    if (!CheckStore(thread, offset + at, 16)) return;
    for (uint32_t i = (offset + at) / 2; i < (offset + at + 16) / 2; ++i) {
      const uint64_t by = accesses_[i].stored % kThreads, phase = accesses_[i].stored / kThreads;
      if (phase > 0 && by != kSeveral && shared_since_[by] < phase) {
        return emulator_.Fail(absl::StrCat("copies over what thread ", by, " stored and did not share with copies"));
      }
      accesses_[i].stored = kInFlight;
    }
  }
  emulator_.copied_bytes_ += static_cast<int64_t>(data.size());
  b->bytes += static_cast<int64_t>(data.size());
  b->copies.emplace_back(offset, std::move(data));
}

void Block::WaitForBytes(uint32_t barrier, int parity) {
  const auto found = barriers_.find(barrier);
  if (found == barriers_.end()) return emulator_.Fail(absl::StrCat("waits for ", barrier, ", which is no barrier"));
  Barrier& b = found->second;
  if (b.completed % 2 != parity) return;  // It has.
  if (cluster_ != nullptr) cluster_->WaitUntil([&] { return b.expected == b.bytes; });
  if (b.expected == 0 || b.expected != b.bytes) {
    return emulator_.Fail(absl::StrCat("waits for ", b.expected, " bytes, of which ", b.bytes, " are on their way"));
  }
  for (const auto& [offset, data] : b.copies) {
    std::copy(data.begin(), data.end(), shared_.begin() + offset);
    // As if by an earlier phase: all who wait may load it.
    for (size_t i = offset / 2; i < (offset + data.size()) / 2; ++i) {
      accesses_[i].stored = std::max(kInFlight + 1, Stamp(0) - 1);
    }
  }
  ++b.completed;
  b.expected = b.bytes = 0;
  b.copies.clear();
}

void Block::StoreInCluster(int warp, int z, uint32_t offset, std::vector<uint8_t> data, uint32_t barrier) {
  if (!has_cluster_[warp]) return emulator_.Fail("stores to a block of its cluster that may not have begun");
  Block* to = cluster_->FindOrNull(z);
  if (to == nullptr) return emulator_.Fail("stores to a block of its cluster that is not there, or has ended");
  const auto found = to->barriers_.find(barrier);
  if (found == to->barriers_.end()) {
    return emulator_.Fail(absl::StrCat("stores for ", barrier, ", which is no barrier"));
  }
  if (!to->InShared(offset, 16, "stores")) return;
  for (uint32_t i = offset / 2; i < (offset + 16) / 2; ++i) {
    Access& access = to->accesses_[i];
    if (access.stored == kInFlight || std::max(access.stored, access.loaded) / kThreads >= to->arrived_in_) {
      return emulator_.Fail(
          absl::StrCat("stores to another block's shared memory at ", 2 * i, ", which is in use there"));
    }
    access.stored = kInFlight;
  }
  found->second.bytes += static_cast<int64_t>(data.size());
  found->second.copies.emplace_back(offset, std::move(data));
}

void Block::WaitForCluster(int warp) {
  if (cluster_ == nullptr) return emulator_.Fail("waits for its cluster, where there is none");
  has_cluster_[warp] = cluster_->WaitForAll();
  if (!has_cluster_[warp]) emulator_.Fail("waits for warps of its cluster that do not arrive");
}

bool Block::Waited(int thread, const char* what) {
  if (waited_[thread / kWarpSize]) return true;
  emulator_.Fail(absl::StrCat(what, " before having waited for earlier launches"));
  return false;
}

bool Block::LoadGlobal(int thread, const void* from, uint32_t bytes, void* to, bool as_constant) {
  if (!emulator_.MayLoad(*this, thread, from, bytes, as_constant)) return false;
  std::memcpy(to, from, bytes);
  return true;
}

void Block::StoreGlobal(int thread, void* to, uint32_t bytes, const void* from) {
  if (!Waited(thread, "stores")) return;
  const Emulator::Writer writer = {number_, static_cast<uint16_t>(thread),
                                   static_cast<uint16_t>(fences_[thread].size())};
  if (emulator_.MayStore(writer, to, bytes)) std::memcpy(to, from, bytes);
}

void Block::Fence(int thread) {
  fences_[thread].push_back(phase_);
  size_t& seen = seen_[thread];
  while (seen < tickets_.size() && (tickets_[seen].thread == thread || tickets_[seen].phase < phase_)) ++seen;
}

uint32_t Block::TakeTicket(int thread, uint32_t* ticket, uint32_t count) {
  if (!Waited(thread, "takes a ticket") || !emulator_.MayTake(ticket)) return 0;
  Emulator::Fences& taken = emulator_.tickets_[ticket];
  tickets_.push_back({thread, phase_, taken});
  std::vector<uint16_t>& fences = taken[number_];
  fences.clear();
  for (const std::vector<uint64_t>& phases : fences_) {
    const bool own = fences.size() == static_cast<size_t>(thread);
    fences.push_back(static_cast<uint16_t>(
        std::count_if(phases.begin(), phases.end(), [&](uint64_t phase) { return own || phase < phase_; })));
  }
  const uint32_t before = *ticket;
  *ticket = before >= count - 1 ? 0 : before + 1;
  return before;
}

bool Block::Sees(int thread, const Emulator::Writer& writer) const {
  if (writer.block == number_ && writer.thread == thread) return true;
  return std::any_of(tickets_.begin(), tickets_.begin() + static_cast<std::ptrdiff_t>(seen_[thread]),
                     [&](const Ticket& ticket) {
                       const auto known = ticket.known.find(writer.block);
                       return known != ticket.known.end() && known->second[writer.thread] > writer.fences;
                     });
}

void Warp::LoadRows(const Lanes<uint32_t>& offsets, bool transposed, Lanes<Vector<uint32_t, 4>>* fragments) const {
  // Thread 8*i + r gives the address of row r of matrix i, of eight 16-bit elements. Each thread gets two elements of
  // each matrix, in row order, or in that of the transpose.
  for (int i = 0; i < 4; ++i) {
    bool taken[8] = {};  // The banks, sixteen bytes at once.
    for (int r = 0; r < 8; ++r) {
      const int lane = 8 * i + r;
      bool& bank = taken[offsets.values()[lane] / 16 % 8];
      block_.emulator_.matrix_conflicts_ += bank;
      bank = true;
      uint16_t row[8];
      block_.LoadShared(index_ * kWarpSize + lane, offsets.values()[lane], sizeof(row), row);
      for (int c = 0; c < 8; ++c) {
        const int element = transposed ? 8 * c + r : 8 * r + c;
        std::memcpy(reinterpret_cast<uint16_t*>(&fragments->values()[element / 2].values[i]) + element % 2, &row[c], 2);
      }
    }
  }
}

template <typename A, typename B>
void Warp::MultiplyCodes(const Lanes<Vector<uint32_t, 4>>& a, const Lanes<uint32_t>& b0, const Lanes<uint32_t>& b1,
                         Lanes<Vector<int32_t, 4>>* acc) const {
  B b[8][32];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    std::memcpy(&b[lane / 4][4 * (lane % 4)], &b0.values()[lane], 4);
    std::memcpy(&b[lane / 4][4 * (lane % 4) + 16], &b1.values()[lane], 4);
  }
  MultiplyFragments<A>(a, b, acc);
}
template void Warp::MultiplyCodes<uint8_t, int8_t>(const Lanes<Vector<uint32_t, 4>>&, const Lanes<uint32_t>&,
                                                   const Lanes<uint32_t>&, Lanes<Vector<int32_t, 4>>*) const;
template void Warp::MultiplyCodes<int8_t, int8_t>(const Lanes<Vector<uint32_t, 4>>&, const Lanes<uint32_t>&,
                                                  const Lanes<uint32_t>&, Lanes<Vector<int32_t, 4>>*) const;
template void Warp::MultiplyCodes<int8_t, uint8_t>(const Lanes<Vector<uint32_t, 4>>&, const Lanes<uint32_t>&,
                                                   const Lanes<uint32_t>&, Lanes<Vector<int32_t, 4>>*) const;

template <typename X>
void Warp::MultiplyBySharedRows(const Lanes<Vector<uint32_t, 4>>& a, uint32_t b, Lanes<Vector<int32_t, 4>>* acc) const {
  if ((b & ~32u) % 512 != 0)
    block_.emulator_.Fail(absl::StrCat("multiplies by rows at ", b, ": want a multiple of 512"));
  int8_t rows[8][32];
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t row = i / 2, linear = b + row * 64 + i % 2 * 16, offset = linear ^ (row >> 1 & 3) << 4;
    block_.LoadShared(index_ * kWarpSize, offset, 16, &rows[row][i % 2 * 16]);
  }
  MultiplyFragments<X>(a, rows, acc);
}
template void Warp::MultiplyBySharedRows<uint8_t>(const Lanes<Vector<uint32_t, 4>>&, uint32_t,
                                                  Lanes<Vector<int32_t, 4>>*) const;
template void Warp::MultiplyBySharedRows<int8_t>(const Lanes<Vector<uint32_t, 4>>&, uint32_t,
                                                 Lanes<Vector<int32_t, 4>>*) const;

void Warp::WaitForEarlier() const { block_.waited_[index_] = true; }

void Warp::WaitForBytes(uint32_t barrier, int parity) const { block_.WaitForBytes(barrier, parity); }

void Warp::ArriveInCluster() const {
  if (block_.cluster_ == nullptr) return block_.emulator_.Fail("arrives in its cluster, where there is none");
  block_.cluster_->Arrive();
  block_.arrived_in_ = block_.phase_;
}

void Warp::WaitForCluster() const { block_.WaitForCluster(index_); }

void Thread::StoreInCluster(int z, uint32_t offset, const Vector<int32_t, 4>& value, uint32_t barrier) const {
  std::vector<uint8_t> data(sizeof(value));
  std::memcpy(data.data(), &value, sizeof(value));
  block_.StoreInCluster(index_ / kWarpSize, z, offset, std::move(data), barrier);
}

void Thread::InitBarriers(uint32_t offset, int count) const {
  for (int i = 0; i < count; ++i) {
    const uint64_t zero = 0;
    block_.StoreShared(index_, offset + 8 * i, sizeof(zero), &zero);
    Block::Barrier barrier;
    barrier.thread = index_;
    block_.barriers_[offset + 8 * i] = barrier;
  }
}

void Thread::ExpectBytes(uint32_t barrier, int bytes) const {
  Block::Barrier* b = block_.FindBarrier(index_, barrier);
  if (b == nullptr) return;
  if (b->expected != 0) block_.emulator_.Fail("expects bytes before somebody has waited for those before");
  b->expected = bytes;
}

void Thread::CopyBulk(uint32_t offset, const void* from, int bytes, uint32_t barrier) const {
  if (bytes % 16 != 0 || offset % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0) {
    return block_.emulator_.Fail("copies what is not in pieces of 16 bytes");
  }
  std::vector<uint8_t> data(bytes);
  for (int i = 0; i < bytes; i += 16) {
    if (!block_.LoadGlobal(index_, static_cast<const uint8_t*>(from) + i, 16, &data[i])) return;
  }
  block_.CopyBulk(index_, offset, std::move(data), barrier);
}

void Thread::CopyTile(uint32_t offset, const TileMap& map, int column, int row, uint32_t barrier) const {
  constexpr int kColumns = TileMap::kColumns;
  if (offset % 512 != 0 || map.columns % 16 != 0 || map.box_rows > TileMap::kMostRows || map.box_rows % 8 != 0) {
    return block_.emulator_.Fail("copies a tile that is not in groups of eight rows of 64 bytes");
  }
  std::vector<uint8_t> data(map.box_rows * kColumns);
  for (int i = 0; i < map.box_rows; ++i) {
    for (int piece = 0; piece < kColumns / 16; ++piece) {
      const int y = row + i, x = column + 16 * piece;
      if (y < 0 || y >= map.rows || x < 0 || x >= map.columns) continue;
      uint8_t* to = &data[i * kColumns + (piece ^ (i >> 1 & 3)) * 16];
      if (!block_.LoadGlobal(index_, map.data + int64_t{y} * map.columns + x, 16, to)) return;
    }
  }
  block_.CopyBulk(index_, offset, std::move(data), barrier);
}

// Of what the copies may load.
void Thread::Prefetch(const void* from, int bytes) const {
  if (bytes % 16 != 0) return block_.emulator_.Fail("prefetches what is not whole pieces of 16 bytes");
  uint8_t piece[16];
  for (int i = 0; i < bytes; i += 16) {
    if (!block_.LoadGlobal(index_, static_cast<const uint8_t*>(from) + i, 16, piece)) return;
  }
}

void Thread::ShareWithCopies() const { block_.shared_since_[index_] = block_.phase_; }

void Warp::CommitCopies() const {
  for (int lane = 0; lane < kWarpSize; ++lane) ++block_.copies_[index_ * kWarpSize + lane].group;
}

void Warp::WaitForAllBut(int pending) const {
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int thread = index_ * kWarpSize + lane;
    Block::Copies& copies = block_.copies_[thread];
    const auto arrived = [&](const Block::Copy& copy) { return copy.group < copies.group - pending; };
    for (const Block::Copy& copy : copies.pending) {
      if (!arrived(copy)) continue;
      std::copy_n(copy.data.begin(), copy.bytes, block_.shared_.begin() + copy.offset);
      for (size_t i = copy.offset / 2; i < (copy.offset + copy.bytes) / 2; ++i) {
        block_.accesses_[i].stored = block_.Stamp(thread);
      }
    }
    copies.pending.erase(std::remove_if(copies.pending.begin(), copies.pending.end(), arrived), copies.pending.end());
  }
}

}  // namespace fuselage::cuda
