// One version of one object on a server, to be read: each read says which version it means.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/http/message.h"
#include "store/store.h"

namespace parallelrun::store {

// Where objects are read from: a bucket, a container. Thread-safe.
class ObjectServer {
 public:
  virtual ~ObjectServer() = default;

  // An answer 2xx to a GET with these headers, whose body fills `into` to the last byte, or to the
  // end of an object that is shorter, which its Content-Range tells. Errors: kStale for an If-Match
  // that does not hold, kInternal for a longer body; else as Store has them.
  virtual Result<HttpResponse> Read(const std::string& key, HttpHeaders headers,
                                    std::span<char> into) = 0;
  // What is there; nothing where that is gone.
  virtual Result<std::optional<Found>> Stat(const std::string& key) = 0;
  // Where a key is, for people: "s3://bucket/a/b.txt", without control characters.
  virtual std::string Place(const std::string& key) const = 0;
};

// Asks nobody yet. The server must outlive it.
std::unique_ptr<Object> MakeObject(ObjectServer& server, std::string key, Found found);

// That version, as Store::OpenUnseen has it. An object without a byte has to be looked at: nothing
// of it is read.
std::unique_ptr<Object> MakeUnseen(ObjectServer& server, std::string key, const Version& version);

// What is there now under a key. kNotFound: nothing.
Result<std::unique_ptr<Object>> OpenObject(ObjectServer& server, const std::string& key);

}  // namespace parallelrun::store
