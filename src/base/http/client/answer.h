// Internal to http/client: one answer, taken apart as its bytes come, within bounds that hold
// before anything is kept. Hostile servers are expected. Pure but for the sink that it is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/http/message.h"

namespace parallelrun {

struct AnswerTo {
  bool head = false;          // a HEAD request: no body comes, whatever the head says
  size_t max_body_bytes = 0;  // of HttpResponse::body
  // Takes the body of an answer 2xx in place of HttpResponse::body; may be empty.
  std::function<Status(std::string_view)> sink;
  uint64_t max_sink_bytes = 0;
};

class Answer {
 public:
  explicit Answer(AnswerTo to);
  ~Answer();

  // Errors: kUnavailable (not HTTP/1.1 as it should be), kInternal (larger than its bound), the
  // sink's own. Bytes behind the answer's end are counted, not kept.
  Status Put(std::string_view bytes);
  // No more bytes come. Errors: kUnavailable, if the answer is not whole.
  Status End();

  bool heard() const { return heard_; }  // at least a byte of it
  bool head_done() const;                // its status is known
  bool done() const;
  // Whether its connection may carry another request.
  bool keeps_alive() const;
  // Once head_done; the body once done.
  HttpResponse& response();

 private:
  class Parser;
  Status Parse(std::string_view& bytes);
  Status BoundBody();

  const AnswerTo to_;
  std::unique_ptr<Parser> parser_;
  std::string pending_;    // received, not parsed yet: a part of a head or of a chunk's size
  size_t head_bytes_ = 0;  // of this head and of those before it that only say 1xx
  bool heard_ = false;
  bool in_body_ = false;
  bool followed_ = false;  // by bytes that nobody asked for
};

}  // namespace parallelrun
