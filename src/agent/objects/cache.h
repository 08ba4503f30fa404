// Which objects a node has on its disk, which it gets next, and which go: decisions alone, while
// Fetcher does what they say. Its bytes are those that are *promised*: room is promised to an
// object before its first byte is read, so that the disk never holds more than `size`.
//
// An object is fetched once, however many mini-batches want it. Room is promised in the order in
// which objects were wanted first, and never past one that waits: else two halves of mini-batches
// could fill the cache, and each wait for the other for ever. Where that happens all the same, by
// objects that several want, the last of these mini-batches gives way. What nobody wants any more
// stays until its room is needed: the next mini-batch of the same table reads the same object. Then
// its file is removed, and only when it is gone has its room become free.
//
// Pure; not thread-safe. Sizes in bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/agent_types.h"
#include "base/error.h"
#include "job/work_objects.h"

namespace parallelrun::agent {

class Cache {
 public:
  using Number = uint64_t;  // of an object here; never reused: it names the object's file

  explicit Cache(uint64_t size) : size_(size) {}

  // A mini-batch wants these from now on, all of them at once; and no more.
  void Want(Key key, const std::vector<job::ObjectName>& objects);
  void Drop(Key key);

  // What is to be done next. A look says how large an object is; a fetch has its room; what is to
  // be removed is known no more, but for its number.
  struct Step {
    enum class Kind : uint8_t { kLook, kFetch, kRemove };
    Kind kind = Kind::kLook;
    Number number = 0;
    job::ObjectName object{};
  };
  std::optional<Step> Next();

  // What came of it. `Again`: nothing, and it is to be tried once more. Who has fetched a part of
  // it has removed that before.
  void Looked(Number number, uint64_t bytes);
  void Fetched(Number number);
  void Failed(Number number, const Error& error);
  void Again(Number number);
  void Removed(Number number);

  // Of mini-batches since the last call: all of their objects are here; one of them never will be,
  // or, with kUnavailable, they gave way and may be wanted again later.
  std::vector<Key> TakeReady() { return std::exchange(ready_, {}); }
  std::vector<std::pair<Key, Error>> TakeFailed() { return std::exchange(failed_, {}); }

  // Of an object that is wanted.
  Number NumberOf(const job::ObjectName& object) const { return numbers_.at(object); }
  bool Wanted(Number number) const;
  std::set<Key> WantedBy(Number number) const;
  uint64_t promised() const { return promised_; }

 private:
  enum class State : uint8_t { kNew, kLooking, kLooked, kFetching, kHere };
  struct Object {
    job::ObjectName name;
    State state = State::kNew;
    uint64_t bytes = 0;
    std::set<Key> wanted_by;
    uint64_t unused = 0;  // its place in unused_; 0: none
  };
  struct MiniBatch {
    std::set<Number> objects;
    size_t missing = 0;  // of them
  };

  struct Removal {
    uint64_t bytes = 0;
    bool begun = false;
  };

  // Begins removals for so much room, as far as that helps.
  void MakeRoom(uint64_t bytes);
  bool FailTooLarge(const std::set<Key>& wanted_by);
  bool GiveWay();
  void Unuse(Number number, Object& object);
  bool NeverFits(Key key) const;
  void Fail(Key key, const Error& error);
  void Forget(Number number);

  const uint64_t size_;
  std::map<job::ObjectName, Number> numbers_;
  std::map<Number, Object> objects_;
  std::map<Key, MiniBatch> mini_batches_;
  std::set<Number> waiting_;           // without room yet, in the order in which they get some
  std::map<uint64_t, Number> unused_;  // here, and wanted by nobody: the longest first
  uint64_t next_unused_ = 1;
  std::map<Number, Removal> removals_;
  uint64_t promised_ = 0;
  uint64_t leaving_ = 0;  // of it: what is being removed
  Number next_ = 1;
  std::vector<Key> ready_;
  std::vector<std::pair<Key, Error>> failed_;
};

}  // namespace parallelrun::agent
