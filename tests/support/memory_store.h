// A store in memory, for tests: objects by name, whose version counts what was put there. Names
// need no folders: "a" and "a/b" may both be there, as in a bucket. Its versions are "put 3", and
// were "earlier put 3" once. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "store/store.h"

namespace parallelrun {

// What is in it; the stores of all its roots see the same.
class MemoryObjects {
 public:
  // Under a whole name, its root included: "memory://bucket/in/a.csv".
  void Put(const std::string& location, std::string bytes);
  void Remove(const std::string& location);

  // All below `root`, or the object of that name. Once `stop` is asked for, its calls fail.
  // Outlived by these objects. Listings tell what they find, as those of buckets do.
  std::unique_ptr<store::Store> Open(const std::string& root, std::stop_token stop = {});

  struct Object {
    std::shared_ptr<const std::string> bytes;
    uint64_t version = 0;
  };
  // The first one at or behind `location`; nothing where all sort in front of it.
  std::optional<std::pair<std::string, Object>> AtOrBehind(const std::string& location) const;
  std::optional<Object> At(const std::string& location) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Object> objects_;
  uint64_t puts_ = 0;
};

}  // namespace parallelrun
