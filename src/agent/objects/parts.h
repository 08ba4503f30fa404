// The parts of large objects: several are read at once, since one connection to a store is slower
// than the line of a node. The object that was begun first comes first, as nobody can use half of
// one; but no object has all the threads, or its last part would hold up the next ones.
// Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/error.h"
#include "job/work_objects.h"

namespace parallelrun::agent {

class Parts {
 public:
  static constexpr uint64_t kBytes = uint64_t{8} << 20;  // of a part, which is one request
  static constexpr size_t kAtOnce = 8;                   // of one object

  struct Part {
    uint64_t number = 0;  // of the object
    job::ByteRange range;
  };

  // These bytes of an object are to be read, at least one.
  void Add(uint64_t number, const job::ByteRange& range);
  // Nothing: none is left, or as many as may be are being read. `may`: of an object, whether its
  // store may be asked now; none: each.
  std::optional<Part> Next(const std::function<bool(uint64_t number)>& may = nullptr);
  // A part of that object was read, or why not. Nothing: it has others. Else it is over, and how:
  // by the first error of a part, behind which none is begun.
  std::optional<Status> End(uint64_t number, Status status);

 private:
  struct Object {
    uint64_t next = 0;  // the first byte of the next part
    uint64_t end = 0;
    size_t at_work = 0;  // parts
    Status status;
  };
  std::map<uint64_t, Object> objects_;  // numbers grow
};

}  // namespace parallelrun::agent
