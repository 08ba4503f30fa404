// The answers of S3, and of those who give credentials for it, taken apart. Pure, and within
// bounds: a server may send what it likes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "store/s3/sign.h"

namespace parallelrun::s3 {

struct ListedKey {
  std::string key;
  uint64_t size = 0;
  std::string etag;  // without its quotes (PlainEtag)
};

struct ListPage {
  std::vector<ListedKey> keys;
  bool more = false;  // behind the last of them
};

// kCorrupt for what is not the answer of ListObjectsV2. Keys are decoded where the answer says that
// they are encoded: asked for it, not every server does it.
Result<ListPage> ParseListPage(const std::string& body);

// An ETag without the quotes around it: servers are at odds about them between a list and a HEAD.
std::string PlainEtag(std::string_view etag);

// What an answer that is an error says; every field may be empty.
struct ErrorBody {
  std::string code;  // "NoSuchBucket"
  std::string message;
  std::string region;  // where the bucket is, or which region the signature should name
};

// Nothing where the body is not an error's. A body of status 200 may be one.
std::optional<ErrorBody> ParseErrorBody(const std::string& body);

struct SessionKeys {
  Keys keys;
  std::optional<WallTime> ends;
};

// What STS answers to AssumeRoleWithWebIdentity. kCorrupt for anything else.
Result<SessionKeys> ParseAssumedRole(const std::string& body);

// The JSON that a container's endpoint and an instance's metadata service answer; likewise.
Result<SessionKeys> ParseKeysJson(const std::string& body);

}  // namespace parallelrun::s3
