// Steps 1 and 2 of "Claiming an epoch" (docs/ledger.md): a log of one's own, and the token without
// which nothing is published. Blocking I/O, no state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "ledger/ledger.h"
#include "ledger/log_format.h"

namespace parallelrun::ledger {

struct ClaimedEpoch {
  LogHeader header;
  std::unique_ptr<File> log;  // holds the header, durably
  std::string token_path;     // empty with SummaryOnly
};

// kStale: a higher epoch appeared meanwhile; kCorrupt: a log is missing; kInvalid: the file system
// cannot create a file exclusively, or the ledger has an unknown format.
Result<ClaimedEpoch> ClaimEpoch(Files& files, const LedgerOptions& options);

// The empty files beside the output whose renames publish: that of the output and that of its
// index.
struct Token {
  uint64_t run_id = 0;  // of its epoch's log
  uint32_t epoch = 0;
  bool of_index = false;
};
std::string NameOf(const Token& token, const std::string& output_file);
// Nothing for any other name, however like one it looks.
std::optional<Token> ParseToken(std::string_view name, const std::string& output_file);

// The token of the index beside one of an output, both absolute.
std::string IndexTokenOf(const std::string& token_path);
// Removes the two of an epoch; what is not there is fine.
Status RemoveToken(Files& files, const std::string& token_path);

// Removes, durably, the tokens of epochs below `below` that the logs of this state folder own.
Status RemoveTokens(Files& files, const std::string& state_folder, const std::string& output_folder,
                    const std::string& output_file, uint32_t below);

// The run id in the header of an epoch's log; nothing without such a log or a whole header.
Result<std::optional<uint64_t>> RunOfEpoch(const Files& files, const std::string& state_folder,
                                           uint32_t epoch);

// The folder that holds the logs.
std::string EpochsFolder(const std::string& state_folder);

// The highest epoch with a log there; 0: none. Other names do not count. kCorrupt: one below it is
// missing; kNotFound: there is no such folder.
Result<uint32_t> HighestEpoch(const Files& files, const std::string& epochs_folder);

// kStale when the log after that of `epoch` is there.
Status CheckNewestEpoch(const Files& files, const std::string& epochs_folder, uint32_t epoch);

}  // namespace parallelrun::ledger
