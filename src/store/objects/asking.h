// A question to a server of objects: sent, sent again where that may help, and what came of it.
// What differs between servers are the steps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/http/client.h"
#include "base/time.h"
#include "store/answer_tally.h"
#include "store/objects/refusal.h"
#include "store/objects/retry.h"
#include "store/store.h"

namespace parallelrun::store {

struct Answered {
  Result<HttpResponse> response;
  Refusal refusal;
  Outcome outcome = Outcome::kFinal;
};

// A client of one server of objects, for as many calls at once as any of us has. `most_body`: bytes
// of an answer that fills nothing of its reader's. Errors: as HttpClient::Make.
struct ServerOptions {
  std::string url;
  std::string ca_pem = {};  // trusted in place of the system's; may be empty
  size_t most_body = 0;
  Duration first_byte = seconds(30);  // of an answer
};
Result<std::unique_ptr<HttpClient>> MakeClient(ServerOptions options);

// Sends it once. The body of an answer 2xx fills `into`, unless that is empty, to the last byte, or
// to the end of an object that its Content-Range tells. Of a whole answer the status alone is set,
// and the outcome is the caller's to find; else `refusal.broken` says why there is none.
Answered SendInto(HttpClient& client, HttpCall& call, Duration deadline, std::span<char> into);

// Repeats questions to one server. Thread-safe; blocks. Once there is a stop, what waits ends soon,
// and all else fails at once.
class Asker {
 public:
  struct Steps {
    std::function<Status()> prove;              // gets the credentials of the next request
    std::function<Answered()> send;             // with those
    std::function<bool(const Answered&)> mend;  // whether one more request makes sense
    std::function<Error(const Answered&)> explain;
    // Ends waits, and further requests, of this question alone.
    std::stop_token stop = {};
  };

  // `where`: the server's place, for messages. `tally`: what counts its answers; none: one of its
  // own.
  Asker(std::string where, RetryLimits limits, std::shared_ptr<const Clock> clock,
        std::stop_token stop, std::shared_ptr<AnswerTally> tally = nullptr);

  // An answer 2xx. Errors: what `prove` and `explain` say, and kUnavailable after a stop.
  Result<HttpResponse> Ask(const Steps& steps);
  AnswerCounts CountAnswers() const { return tally_->Counts(); }

 private:
  void TellThatItWaits(Outcome outcome);

  const std::string where_;
  const RetryLimits limits_;
  const std::shared_ptr<const Clock> clock_;
  const std::stop_token stop_;
  const std::shared_ptr<AnswerTally> tally_;
  std::atomic<int64_t> told_{INT64_MIN};  // when the log said last that it waits
};

}  // namespace parallelrun::store
