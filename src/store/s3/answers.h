// The answers of S3, and of those who give credentials for it, taken apart. Pure, and within
// bounds: a server may send what it likes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "store/objects/refusal.h"
#include "store/s3/sign.h"

namespace parallelrun::store::s3 {

struct ListedKey {
  std::string key;
  uint64_t size = 0;
  std::string etag;  // without its quotes (PlainEtag)
};

struct ListPage {
  std::vector<ListedKey> keys;
  bool more = false;                   // behind the last of them
  std::vector<std::string> folders{};  // where these were asked for: each ends in '/'
};

// kCorrupt for what is not the answer of ListObjectsV2. Keys are decoded where the answer says that
// they are encoded: asked for it, not every server does it.
Result<ListPage> ParseListPage(const std::string& body);

// Nothing where the body is not an error's. A body of status 200 may be one.
std::optional<ErrorBody> ParseErrorBody(const std::string& body);

// The id that CreateMultipartUpload gives, as it is. kCorrupt for anything else.
Result<std::string> ParseUploadId(const std::string& body);

// Whether a body of status 200 tells that the parts have become an object.
bool IsCompleted(const std::string& body);

struct SessionKeys {
  Keys keys;
  std::optional<WallTime> ends;
};

// What STS answers to AssumeRoleWithWebIdentity. kCorrupt for anything else.
Result<SessionKeys> ParseAssumedRole(const std::string& body);

// The JSON that a container's endpoint and an instance's metadata service answer; likewise.
Result<SessionKeys> ParseKeysJson(const std::string& body);

}  // namespace parallelrun::store::s3
