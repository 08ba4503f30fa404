// `parallelrun logs`: what the scripts of a run on this machine have written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace parallelrun::cli {

struct LogsRequest {
  std::string target;            // output folder, output file or state folder of the run
  bool follow = false;           // until the run has ended
  std::optional<uint32_t> node;  // that one alone
  std::string item;              // what the attempts of its mini-batch wrote; "": all
};

// Returns the exit status of the command.
int PrintLogs(const LogsRequest& request);

}  // namespace parallelrun::cli
