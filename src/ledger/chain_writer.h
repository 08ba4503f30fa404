// The links of one epoch: which one is put next, and when it is there. It asks nobody itself. Pure;
// not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ledger/chain_history.h"
#include "ledger/link_format.h"
#include "ledger/link_put.h"

namespace parallelrun::ledger {

class ChainWriter {
 public:
  // The last link of `history` is the epoch's claim.
  explicit ChainWriter(const ChainHistory& history)
      : last_(*history.last()), own_(last_.log), end_(history.end()), digest_(history.digest()) {}

  // The next link begins another history, under that run id.
  void BeginAnew(uint64_t run_id) {
    own_.run_id = run_id;
    anew_ = true;
  }

  // A link is on its way, or about to be; at most one is.
  bool putting() const { return put_.has_value(); }
  // The next one: `link` is room for its header, and so many records, and stays as it is until that
  // is over.
  void Put(uint32_t records, std::string& link);
  // While putting. kDone: `Done` is to be called; kTaken, kGone: this epoch is over.
  LinkPut::Do next() const { return put_->next(); }
  void OnCreated(LinkPut::Answer answer) { put_->OnCreated(answer); }
  void OnRead(const std::optional<std::string>& there, std::string_view link) {
    put_->OnRead(there, link);
  }
  // The link is there, and the last one.
  void Done(std::string_view link);

  uint64_t number() const { return last_.number + 1; }  // of the next link
  const LinkHeader& last() const { return last_; }      // that is there
  uint64_t end() const { return end_; }                 // of it, over all links

 private:
  LinkHeader last_;
  LogHeader own_;
  uint64_t end_;
  uint64_t digest_;  // up to it
  bool anew_ = false;
  std::optional<LinkPut> put_;
};

}  // namespace parallelrun::ledger
