// What a job says of a store that is asked over a network. Plain data.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace parallelrun::store {

// Keys that a job names for one store, as files of a folder, one a key. They are read each time, as
// they change.
struct KeyFiles {
  std::string folder;  // empty: the job names none
  std::string of;      // whose they are, for messages: "Secret photos-keys"
};

// How what is written is to be encrypted by the server; S3 alone.
struct Encryption {
  std::string algorithm;   // "AES256", "aws:kms"; empty: as the bucket has it
  std::string kms_key_id;  // empty: of the server's choice
};

class AnswerTally;

struct Wished {
  std::string url;       // the store's, or one of something below it
  std::string region;    // these three: empty, as what this process is set up with has it; S3 alone
  std::string endpoint;  // of a server other than the cloud's own
  std::optional<bool> path_style;  // S3 alone
  KeyFiles keys;
  Encryption encryption = {};
  std::shared_ptr<AnswerTally> tally = nullptr;  // counts the answers; none: each store has its own
};

}  // namespace parallelrun::store
