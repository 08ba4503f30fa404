// The replay of a ledger in a store (docs/ledger.md, "A ledger in a store"): links come one after
// the other, each is checked against those in front of it, and its records are visited. Pure; not
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "ledger/ledger.h"
#include "ledger/link_format.h"

namespace parallelrun::ledger {

// What to do about a chain that lacks a link, or has another one than was written.
inline constexpr char kBrokenChainMend[] =
    "a rule of the store or a person has removed or changed it: restore it, or start the job from "
    "the beginning with another state";

class ChainHistory {
 public:
  // Where a link is, for messages.
  using Locate = std::function<std::string(uint64_t number)>;
  // Told of each link that was added, with its bytes.
  using Keep = std::function<void(const LinkHeader&, std::string_view bytes)>;

  // `owner`: whose chain it must be; "": whoever's. `visit` gets what Ledger::Visitor says; the
  // claim of an epoch comes as a seal, whose predecessor is 0 where the history begins.
  ChainHistory(std::string owner, Locate locate, Ledger::Visitor visit, Keep keep)
      : owner_(std::move(owner)),
        locate_(std::move(locate)),
        visit_(std::move(visit)),
        keep_(std::move(keep)) {}

  // The next link, as it was read under `number`; the first one must be the one that its history
  // begins with. kStale: it begins another history, and what was visited is void.
  Status Add(uint64_t number, std::string_view bytes);
  // One of one's own: it is not visited.
  void AddOwn(const Link& link, std::string_view bytes);
  // Whether that claim is the owner's, who stands in it. kExists: somebody else's.
  Status CheckOwner(const Link& claim) const;

  // Of the last link; nothing where there is none.
  const std::optional<LinkHeader>& last() const { return last_; }
  uint32_t epoch() const { return last_ ? last_->log.epoch : 0; }
  uint64_t number() const { return last_ ? last_->number : 0; }
  uint64_t end() const { return end_; }        // of its bytes, over all links
  uint64_t digest() const { return digest_; }  // up to it
  bool has_settings() const { return has_settings_; }

  // kCorrupt at that link, with what to do about it.
  Error Corrupt(uint64_t number, const std::string& what) const;

 private:
  Status Check(uint64_t number, const Link& link) const;
  Status Visit(const Link& link);

  const std::string owner_;
  const Locate locate_;
  const Ledger::Visitor visit_;
  const Keep keep_;
  std::optional<LinkHeader> last_;
  uint64_t end_ = 0;
  uint64_t digest_ = 0;
  bool has_settings_ = false;
};

}  // namespace parallelrun::ledger
