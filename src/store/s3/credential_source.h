// Which credentials are used, and when they are renewed. Pure.
//
// The order is that of the tools around S3, and the first that is set up counts:
//   AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; a web identity (AWS_WEB_IDENTITY_TOKEN_FILE and
//   AWS_ROLE_ARN); the container's endpoint (AWS_CONTAINER_CREDENTIALS_…); the profile in the files
//   below ~/.aws; the role of the instance.
// One that is set up and fails is an error. To go on to the next, down to the role of the node,
// would run the job with somebody else's rights.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "base/time.h"
#include "store/s3/sign.h"
#include "store/s3/surroundings.h"
#include "store/wished.h"

namespace parallelrun::store::s3 {

struct WebIdentity {
  std::string token_file;
  std::string role;
  std::string session_name;
  std::string endpoint;  // of STS
};
struct ContainerEndpoint {
  std::string url;
  std::string token;       // what Authorization says; or
  std::string token_file;  // where that stands: it is read each time, as it changes
};
struct InstanceMetadata {
  std::string endpoint;
};
struct Source {
  std::variant<Keys, KeyFiles, WebIdentity, ContainerEndpoint, InstanceMetadata> from;
  std::string told;  // for messages: nothing secret
};

// The files accessKeyId, secretAccessKey and, if there is one, sessionToken.
Source SourceOf(const KeyFiles& files);

// kInvalid for what is set up by half, or in a way that is not understood; kPermission when there
// is nothing at all.
Result<Source> SourceOf(const Surroundings& around, const std::string& region);

// "AKIA…MPLE": enough to find it, and no more.
std::string ShownId(const std::string& id);

}  // namespace parallelrun::store::s3
