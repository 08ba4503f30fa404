// The URLs that objects are read by (url_signer.h), as far as somebody was given some. What a
// reader needs is there at each of its requests anew, as URLs end and are replaced meanwhile.
// Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/time.h"
#include "store/store.h"

namespace parallelrun::store {

class UrlTable {
 public:
  struct Entry {
    std::string url;
    Version version;  // that it reads
    Instant ends;
  };

  // Of an object, by its location; in place of an earlier one.
  void Put(const std::string& location, Entry entry, Instant now);
  // Nothing: there is none that counts.
  std::optional<Entry> Get(const std::string& location, Instant now) const;
  // The store says that this one counts no more.
  void End(const std::string& location, const std::string& url);

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, Entry> entries_;
  size_t prune_at_ = 1024;  // entries: then those that have ended go
};

}  // namespace parallelrun::store
