// What servers of objects say in their headers and errors. Pure.
#pragma once

#include <string>
#include <string_view>

namespace parallelrun::store {

// Of HTTP, with the same meaning in the answers of all of them.
inline constexpr int kBadRequest = 400;
inline constexpr int kUnauthorized = 401;
inline constexpr int kForbidden = 403;
inline constexpr int kNotFound = 404;
inline constexpr int kConflict = 409;
inline constexpr int kPreconditionFailed = 412;

// What an answer that is an error says; every field may be empty.
struct ErrorBody {
  std::string code;  // "NoSuchBucket", "ContainerNotFound"
  std::string message;
  std::string region;  // S3's: where the bucket is, or which region the signature should name
};

// How a request ended.
struct Refusal {
  int status = 0;  // 0: there was no answer
  ErrorBody body;
  std::string request_id;  // what the server's people ask for
  std::string broken;      // in place of a whole answer: what the connection said
  int repeated = 0;        // how often it was sent again
};

// What the server itself said, as evidence behind words of ours: "404 NoSuchKey, it is gone".
std::string Said(const Refusal& refusal);

// An ETag without the quotes around it: servers are at odds about them between a list and a HEAD.
std::string PlainEtag(std::string_view etag);

}  // namespace parallelrun::store
