// One link on its way into its store: what is asked of the store next, until it is known whether
// the link is there. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parallelrun::ledger {

class LinkPut {
 public:
  enum class Do : uint8_t {
    // To make it, where nothing has its number. Asked again, it is the same bytes and the same
    // number: who went on to the next one would have the same records twice, or leave a hole.
    kCreate,
    kRead,   // what has its number
    kDone,   // it is there
    kTaken,  // somebody else's has its number: a newer coordinator is at work
    kGone,   // something had its number, and it is not there any more
  };
  enum class Answer : uint8_t {
    kCreated,
    kExists,   // something has that number, perhaps by an earlier try
    kUnknown,  // it may have come to pass, or may still do so
  };

  Do next() const { return next_; }
  void OnCreated(Answer answer);
  // Nothing: nothing has that number. `own` is the link itself.
  void OnRead(const std::optional<std::string>& there, std::string_view own);

 private:
  Do next_ = Do::kCreate;
};

}  // namespace parallelrun::ledger
