#include "ir/base/hash_map.h"

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <new>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace {
int64_t allocations_left = -1;  // Before one fails; negative: none does.
}  // namespace

void* operator new(std::size_t bytes) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* data = std::malloc(bytes)) return data;
  throw std::bad_alloc();
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }

namespace fuselage {
namespace {

TEST(HashMap, AnInsertionWithoutMemoryLeavesTheTableWhole) {
  HashMap<int, std::string> map;
  int failures = 0;
  for (int key = 0; key < 2000; ++key) {
    allocations_left = 0;
    try {
      map[key] = "";
    } catch (const std::bad_alloc&) {
      ++failures;
      allocations_left = -1;
      map[key] = "";
    }
    allocations_left = -1;
    map.find(key)->second = std::to_string(key);
    ASSERT_EQ(map.size(), key + 1);
  }
  EXPECT_GE(failures, 8) << "the table did grow";
  for (int key = 0; key < 2000; ++key) EXPECT_EQ(map.at(key), std::to_string(key));
}

TEST(HashMap, AnElementThatFindsNoMemoryIsNotThere) {
  const std::string key = "longer than what a string holds in itself", value = "and so is the value";
  HashMap<std::string, std::string> map = {{"a", "b"}};
  const auto attempts = {std::function<void()>([&] { map[key] = value; }), std::function<void()>([&] {
                           map.emplace(key, value);
                         }),
                         std::function<void()>([&] { map.try_emplace(key, value); }),
                         std::function<void()>([&] { map.insert_or_assign(key, value); }),
                         std::function<void()>([&] { map.insert({key, value}); })};
  for (const auto& attempt : attempts) {
    for (int64_t left = 0;; ++left) {
      allocations_left = left;
      bool failed = false;
      try {
        attempt();
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      allocations_left = -1;
      if (!failed) break;
      EXPECT_EQ(map.count(key) + 1, map.size());
      map.erase(key);
    }
    EXPECT_EQ(map.at(key), value);
    map.erase(key);
  }
}

// Tombstones and all: insertions and erasures at random, about as many keys as `keys`.
TEST(HashMap, RoomIsRoom) {
  std::mt19937 random(1);
  for (int keys : {1, 2, 3, 6, 8, 14, 16, 20, 30, 60, 100, 500}) {
    absl::flat_hash_map<int, int> map;
    std::map<int, int> wanted;
    for (int i = 0; i < 30000; ++i) {
      const int key = static_cast<int>(random() % (2 * keys));
      if (random() % 2 == 0) {
        EXPECT_EQ(map.erase(key), wanted.erase(key));
        continue;
      }
      MakeRoom(map);
      allocations_left = 0;
      map[key] = i;
      allocations_left = -1;
      wanted[key] = i;
    }
    EXPECT_EQ((std::map<int, int>(map.begin(), map.end())), wanted);
    EXPECT_LT(map.capacity(), 8 * keys + 16) << "it grows by what it holds, not by what was erased";
  }
}

TEST(HashMap, CopiesMovesAndTakesLists) {
  const HashMap<std::string, int> map = {{"a", 1}, {"b", 2}};
  HashMap<std::string, int> copy = map;
  copy["c"] = 3;
  EXPECT_EQ(map.size(), 2);
  const HashMap<std::string, int> moved = std::move(copy);
  EXPECT_EQ(moved.at("c"), 3);
  const HashSet<std::string> set = {"a", "b", "a"};
  EXPECT_EQ(set.size(), 2);
  EXPECT_TRUE(set.contains("b"));
  EXPECT_FALSE(set.contains("c"));
}

}  // namespace
}  // namespace fuselage
