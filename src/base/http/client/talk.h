// Internal to http/client: one request and its answer on one connection.
//
// Sends and listens at the same time: a server may refuse a request before it has its whole body,
// and then reads no further. Its answer is taken from the connection even when sending has failed.
#pragma once

#include <optional>

#include "base/error.h"
#include "base/http/client/answer.h"
#include "base/http/client/sending.h"
#include "base/http/client/wire.h"
#include "base/time.h"

namespace parallelrun {

struct TalkLimits {
  SteadyTime whole;
  Duration first_byte;  // from the last byte of the request to the first of the answer
  Duration idle;        // without a byte, while either is on its way
};

class Talk {
 public:
  // All outlive this.
  Talk(Wire& wire, Sending& sending, Answer& answer, const TalkLimits& limits)
      : wire_(wire), sending_(sending), answer_(answer), limits_(limits) {}

  // Until the answer is whole. Whether the connection may carry another request.
  // Errors: kTimeout (without words, if the whole took too long), kUnavailable (broken, cancelled,
  // not HTTP), kInternal (larger than its bound), those of a file or of a sink.
  Result<bool> Run();

 private:
  Result<bool> Send();
  Result<bool> Receive();
  Status Wait();

  Wire& wire_;
  Sending& sending_;
  Answer& answer_;
  const TalkLimits& limits_;
  bool sent_ = false;            // all of the request
  std::optional<Error> failed_;  // to send
  bool refused_ = false;         // by an answer, before all was sent
  bool may_have_more_ = false;   // the last Read found something: more may lie in a TLS record
  SteadyTime since_ = std::chrono::steady_clock::now();  // the last byte, either way
};

}  // namespace parallelrun
