// Hash tables that stay whole where an insertion finds no memory. Abseil's alone do not: raw_hash_set::resize() sets the
// new capacity before it allocates, and an element that throws while it is constructed leaves its slot marked as full;
// the table's destructor then walks over what is not there.
#ifndef FUSELAGE_IR_BASE_HASH_MAP_H_
#define FUSELAGE_IR_BASE_HASH_MAP_H_

#include <cstddef>
#include <initializer_list>
#include <new>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace fuselage {

// Call before an insertion into one of Abseil's tables, for which the table then allocates nothing. Throws
// std::bad_alloc, with `table` as it was.
template <typename Table>
void MakeRoom(Table& table) {
  // A table of up to a group of slots leaves no tombstones and is full at 7/8; a larger one is rid of its tombstones in
  // place where it is filled to 25/32 at most. How many slots are probed as a group is the instruction set's choice.
  const size_t size = table.size(), capacity = table.capacity(), group = absl::container_internal::Group::kWidth;
  if (capacity > group ? size * 32 < capacity * 25 : (size + 1) * 8 <= capacity * 7) return;
  // A table that fails to get its first memory owns none, but must not be destroyed: it lies in bytes.
  alignas(Table) unsigned char bytes[sizeof(Table)];
  Table* larger = new (bytes) Table();
  larger->reserve(2 * size + 1);
  larger->merge(table);
  table.swap(*larger);
  larger->~Table();
}

// One of Abseil's tables that does so at every insertion, and moves whole elements in. Moving one must not throw.
template <typename Table>
class Roomy : private Table {
  using Element = typename Table::init_type;

 public:
  using typename Table::const_iterator;
  using typename Table::iterator;
  using typename Table::value_type;
  using Table::begin;
  using Table::clear;
  using Table::contains;
  using Table::count;
  using Table::empty;
  using Table::end;
  using Table::erase;
  using Table::find;
  using Table::size;

  Roomy() = default;
  Roomy(std::initializer_list<value_type> values) : Roomy(values.begin(), values.end()) {}
  template <typename Iterator>
  Roomy(Iterator first, Iterator last) {
    for (; first != last; ++first) insert(*first);
  }
  Roomy(const Roomy& other) : Roomy(other.begin(), other.end()) {}
  Roomy(Roomy&&) = default;
  Roomy& operator=(const Roomy& other) { return *this = Roomy(other); }
  Roomy& operator=(Roomy&&) = default;

  template <typename Value>
  auto insert(Value&& value) {
    return emplace(std::forward<Value>(value));
  }
  auto insert(value_type&& value) { return emplace(std::move(value)); }
  template <typename... Args>
  auto emplace(Args&&... args) {
    Element element(std::forward<Args>(args)...);
    MakeRoom<Table>(*this);
    return Table::insert(std::move(element));
  }
  template <typename Key, typename... Args>
  auto try_emplace(Key&& key, Args&&... args) {
    const auto found = find(key);
    if (found != end()) return std::make_pair(found, false);
    return emplace(std::piecewise_construct, std::forward_as_tuple(std::forward<Key>(key)),
                   std::forward_as_tuple(std::forward<Args>(args)...));
  }
  template <typename Key, typename Value>
  auto insert_or_assign(Key&& key, Value&& value) {
    const auto found = find(key);
    if (found == end()) return emplace(std::forward<Key>(key), std::forward<Value>(value));
    found->second = std::forward<Value>(value);
    return std::make_pair(found, false);
  }
  template <typename Key>
  auto& operator[](Key&& key) {
    return try_emplace(std::forward<Key>(key)).first->second;
  }
  template <typename Key>
  auto& at(const Key& key) {
    return Table::at(key);
  }
  template <typename Key>
  auto& at(const Key& key) const {
    return Table::at(key);
  }
};

template <typename Key, typename Value>
using HashMap = Roomy<absl::flat_hash_map<Key, Value>>;
template <typename Key>
using HashSet = Roomy<absl::flat_hash_set<Key>>;

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_HASH_MAP_H_
