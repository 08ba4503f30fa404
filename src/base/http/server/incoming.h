// Internal to http/server: one request on its way in, taken apart as its bytes come, and the answer
// to what cannot be taken. Pure: it has no socket and no time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/http/message.h"

namespace parallelrun {

class Incoming {
 public:
  Incoming(std::string peer, size_t max_header_bytes);
  ~Incoming();

  enum class Took : uint8_t {
    kOn,       // something; stops behind the head, so that somebody decides on the body
    kMore,     // what is there means nothing yet: a part of the head, or of a chunk's size
    kRefused,  // nothing of the connection can be trusted from here on: refusal() says why
  };
  // Takes from the front of `bytes` what is used up; the rest must come again, with more behind it.
  Took Take(std::string_view& bytes);
  // Once kRefused.
  HttpResponse& refusal() { return refusal_; }

  bool head_done() const;
  bool done() const;  // the body too
  HttpRequest& request() { return request_; }
  const HttpRequest& request() const { return request_; }

  // Once head_done:
  // What the parser lets through but two readers could understand differently. "" if all is well.
  const char* Ambiguous() const;
  // False: the body is known to be longer. If it turns out so later, Take refuses it.
  bool BoundBody(size_t most);
  bool keep_alive() const;
  bool awaits_continue() const;  // it said so, and has a body to send

 private:
  class Parser;

  HttpRequest request_;
  const size_t max_header_bytes_;
  const std::unique_ptr<Parser> parser_;
  size_t head_bytes_ = 0;
  HttpResponse refusal_;
};

}  // namespace parallelrun
