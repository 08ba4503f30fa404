#include "ledger/link_put.h"

namespace parallelrun::ledger {

void LinkPut::OnCreated(Answer answer) {
  switch (answer) {
    case Answer::kCreated: next_ = Do::kDone; break;
    // Not "ours, since we asked for it": what a stale coordinator took for its own was lost.
    case Answer::kExists: next_ = Do::kRead; break;
    case Answer::kUnknown: next_ = Do::kCreate; break;
  }
}

void LinkPut::OnRead(const std::optional<std::string>& there, std::string_view own) {
  if (!there) {
    next_ = Do::kGone;
  } else {
    next_ = *there == own ? Do::kDone : Do::kTaken;
  }
}

}  // namespace parallelrun::ledger
