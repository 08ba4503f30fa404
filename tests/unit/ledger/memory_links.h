// Links in memory, for tests: each request can be made to fail in the ways that stores know, and
// another coordinator can come in before any of them. Thread-safe but for its faults.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ledger/link_format.h"
#include "ledger/link_store.h"

namespace parallelrun::ledger {

class MemoryLinks final : public LinkStore {
 public:
  enum class Fault : uint8_t {
    kNone,
    kAway,        // 503 for longer than anybody repeats it: nothing happens
    kLostAnswer,  // it happens, and nobody hears of it
    kRepeated,    // it happens, the answer is lost, and its repetition finds it there
    kLate,        // nobody hears of it, and it happens when Arrive is called
  };
  // Asked before each request: "list", "read", "create", "look", "announce", and of which number.
  using Faults = std::function<Fault(const std::string& what, uint64_t number)>;

  void SetFaults(Faults faults) { faults_ = std::move(faults); }
  // As one that does not know conditions.
  void IgnoreConditions() { ignores_ = true; }
  // As one whose lists lack what is behind this number.
  void ListUpTo(uint64_t number) { listed_up_to_ = number; }
  // What was late: each holds only where nothing has its number by now.
  void Arrive() {
    for (auto& [number, bytes] : std::exchange(late_, {})) links.emplace(number, std::move(bytes));
  }
  size_t creates() const { return creates_; }

  std::map<uint64_t, std::string> links;

  std::string Location(uint64_t number) const override { return "s3://bucket/" + LinkName(number); }
  Result<std::vector<uint64_t>> List() override {
    if (Ask("list", 0) != Fault::kNone) return Away();
    const std::lock_guard lock(mutex_);
    std::vector<uint64_t> numbers;
    for (const auto& [number, bytes] : links) {
      if (number <= listed_up_to_) numbers.push_back(number);
    }
    return numbers;
  }
  Result<bool> IsThere(uint64_t number) override {
    if (Ask("look", number) != Fault::kNone) return Away();
    const std::lock_guard lock(mutex_);
    return links.contains(number);
  }
  Result<std::optional<std::string>> Read(uint64_t number) override {
    return ReadPart(number, 0, SIZE_MAX);
  }
  Result<std::optional<std::string>> ReadPart(uint64_t number, uint64_t offset,
                                              size_t size) override {
    if (Ask("read", number) != Fault::kNone) return Away();
    const std::lock_guard lock(mutex_);
    const auto found = links.find(number);
    if (found == links.end()) return std::optional<std::string>();
    return std::optional(
        found->second.substr(std::min<size_t>(offset, found->second.size()), size));
  }
  Status Create(uint64_t number, const std::string& bytes) override {
    const Fault fault = Ask("create", number);
    ++creates_;
    const std::lock_guard lock(mutex_);
    if (fault == Fault::kAway) return Away();
    if (fault == Fault::kLate) {
      late_.emplace_back(number, bytes);
      return Away();
    }
    if (!ignores_ && links.contains(number)) {
      return fault == Fault::kLostAnswer ? Away() : IsTaken(number);
    }
    links[number] = bytes;
    if (fault == Fault::kLostAnswer) return Away();
    return fault == Fault::kRepeated ? IsTaken(number) : Status();
  }
  Status Announce(uint32_t epoch) override {
    if (Ask("announce", epoch) != Fault::kNone) return Away();
    const std::lock_guard lock(mutex_);
    wanted_.insert(epoch);
    return {};
  }
  Result<bool> IsAnnounced(uint32_t epoch) override {
    if (Ask("look", epoch) != Fault::kNone) return Away();
    const std::lock_guard lock(mutex_);
    return wanted_.contains(epoch);
  }

 private:
  static Error Away() { return {Code::kUnavailable, "the store does not answer as it should"}; }
  Error IsTaken(uint64_t number) const { return {Code::kStale, Location(number) + " is there"}; }
  Fault Ask(const std::string& what, uint64_t number) {
    return faults_ ? faults_(what, number) : Fault::kNone;
  }

  std::mutex mutex_;
  Faults faults_;
  std::vector<std::pair<uint64_t, std::string>> late_;
  std::set<uint32_t> wanted_;
  uint64_t listed_up_to_ = kMostLinks;
  size_t creates_ = 0;
  bool ignores_ = false;
};

}  // namespace parallelrun::ledger
