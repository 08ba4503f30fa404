// Internal to http/client: what is sent of one request, its head and its body, piece by piece.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/http/client.h"

namespace parallelrun {

// Holds views of the request and reads the file's range with pread: both must outlive it. Making
// another one sends it all again.
class Sending {
 public:
  Sending(std::string head, const HttpCall& call);

  // The next bytes to send; none when all is out. The same again until Sent takes some of them.
  // Errors: kInvalid (the file is shorter than its range), or why it cannot be read.
  Result<std::string_view> Next();
  void Sent(size_t count);

 private:
  std::string piece_;      // the head with the front of the body, then pieces of the file
  std::string_view rest_;  // of the body, behind that
  std::string_view next_;  // in either
  std::optional<HttpFileRange> file_;
};

}  // namespace parallelrun
