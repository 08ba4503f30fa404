// What of a job's volumes `parallelrun fetch` brings, by what the cluster says of the job. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/wished.h"

namespace parallelrun::cli {

enum class FetchWhat { kOutput, kLogs, kReport, kSideFiles };

// "output", "logs", "report", "side-files"; nullopt for any other word.
std::optional<FetchWhat> FetchWhatOf(const std::string& word);

// The one file of which more is known than that it is there.
struct ExpectedFile {
  std::string name;  // without a folder
  uint64_t bytes = 0;
  std::string sha256;  // hexadecimal, lower case; empty: neither it nor `bytes` is known
};

struct WantedFiles {
  std::string volume;             // one of the job's
  std::string folder;             // of the volume; "." is all of it
  std::vector<std::string> only;  // as those of agent::SendRequest
  std::vector<std::string> except;
  std::optional<ExpectedFile> must;  // without it nothing is whole
};

// `job` is the object as the API server has it. kUnavailable: there is nothing yet; kInvalid: it
// lies where no pod is needed, and the message says the command that copies it; kCorrupt: the
// object does not say where.
Result<WantedFiles> FindWanted(const nlohmann::json& job, FetchWhat what);

// Of its logs what lies in a folder of them ("." is all of it): these names below it, if they are
// there, or everything. The errors are those of FindWanted.
Result<WantedFiles> FindInLogs(const nlohmann::json& job, const std::string& below,
                               std::vector<std::string> only);

// Where its logs lie, as its status says it: "VOLUME/PATH" or a URL; "" if there are none yet.
std::string LogsOf(const nlohmann::json& job);

// The store where its logs lie, for somebody with credentials of their own; nullopt: on a volume.
std::optional<store::Wished> LogStoreOf(const nlohmann::json& job);

// Where pods of a job have its volumes.
std::string MountOf(const std::string& volume);

}  // namespace parallelrun::cli
