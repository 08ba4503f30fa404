// A sink in memory, for tests: one object, and the tokens that may still publish it. Foreign is
// what does not bear this run's mark, as in a store that cannot rename.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "coordinator/sink.h"

namespace parallelrun {

class MemorySink final : public Sink {
 public:
  // As an epoch's claim does; and as its successor's does with it.
  void MakeToken(const std::string& token) { tokens_.insert(token); }
  void EndToken(const std::string& token) { tokens_.erase(token); }
  // What somebody else publishes.
  void Put(std::string bytes) { object_ = {std::move(bytes), std::nullopt}; }
  void Drop() { object_.reset(); }
  void SetRoom(uint64_t bytes) { room_ = bytes; }
  // The next commit happens, and nobody hears of it.
  void LoseNextAnswer() { lose_answer_ = true; }

  const std::string* object() const { return object_ ? &object_->bytes : nullptr; }

  std::string Location() const override { return "memory://out/rows.txt"; }
  Result<std::optional<uint64_t>> Room() override { return room_; }
  Result<std::unique_ptr<Writer>> Begin(const std::string& token) override;

 private:
  class Upload;
  struct Object {
    std::string bytes;
    std::optional<Published> mark;  // whose it is: none of ours without one
  };

  std::set<std::string> tokens_;
  std::optional<Object> object_;
  std::optional<uint64_t> room_;
  bool lose_answer_ = false;
};

}  // namespace parallelrun
