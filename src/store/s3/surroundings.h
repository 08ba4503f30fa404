// What the user has set up for S3 and the tools around it, in the environment and in the files
// below
// ~/.aws: the same settings that those tools read. Taken in once; what follows from it is pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace parallelrun::store::s3 {

using Profile = std::map<std::string, std::string>;  // by name: "region", "aws_access_key_id"
using Profiles = std::map<std::string, Profile>;

struct Surroundings {
  std::map<std::string, std::string> variables;  // those of them that are set, and not empty
  Profiles profiles;

  // "" where it is not set.
  std::string Variable(const std::string& name) const;
  // "default", if AWS_PROFILE says nothing else.
  std::string ProfileName() const;
  // A setting of that profile, or "".
  std::string Setting(const std::string& name) const;

  // What stands nearest to the job counts: the job's own word, then the environment, then the
  // profile. "us-east-1" where none of them says it: a bucket elsewhere tells where it is.
  std::string Region(const std::string& of_job) const;
  // "": AWS's own.
  std::string Endpoint(const std::string& of_job) const;
};

// The sections of such a file. In a config file those but [default] are called [profile NAME]; what
// is neither is left out, as are lines that are no setting, nested ones too.
Profiles ParseProfiles(std::string_view text, bool config);

// Those of both files; a setting of `credentials` goes before the same one of `config`.
Profiles Merged(const Profiles& config, const Profiles& credentials);

// Of this process. kPermission, kInvalid: a file is there but cannot be read, or is no such file.
Result<Surroundings> ReadSurroundings();

// A small text file, without white space at its ends. kInvalid: it is larger than 1 MiB.
Result<std::string> ReadTrimmed(const std::string& path);

}  // namespace parallelrun::store::s3
