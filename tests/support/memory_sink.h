// A sink in memory, for tests: one object, and the token that may still publish it. Foreign is
// what does not bear this run's mark, as in a store that cannot rename.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "output/sink.h"

namespace parallelrun {

class MemorySink final : public output::Sink {
 public:
  // As the epoch's successor does.
  void EndToken() { stale_ = true; }
  // What somebody else publishes.
  void Put(std::string bytes) { object_ = {std::move(bytes), std::nullopt}; }
  void Drop() { object_.reset(); }
  void SetRoom(uint64_t bytes) { room_ = bytes; }
  // The next commit happens, and nobody hears of it.
  void LoseNextAnswer() { lose_answer_ = true; }

  const std::string* object() const { return object_ ? &object_->bytes : nullptr; }

  // That of the last object that was published.
  const std::string& index() const { return index_; }

  std::string Location() const override { return "memory://out/rows.txt"; }
  Result<std::optional<uint64_t>> Room() override { return room_; }
  Result<std::unique_ptr<output::Writer>> Begin(uint64_t bytes) override;

 private:
  class Upload;
  struct Object {
    std::string bytes;
    std::optional<job::Published> mark;  // whose it is: none of ours without one
  };

  bool stale_ = false;
  std::optional<Object> object_;
  std::string index_;
  std::optional<uint64_t> room_;
  bool lose_answer_ = false;
};

}  // namespace parallelrun
