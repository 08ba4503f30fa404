// What an attempt has written beside its rows, where that counts with them (output.sideFiles:
// Staged): a line of JSON in front of the rows of each result, which goes where these go
// (docs/worker-protocol.md, "Side files"). Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "job/ids.h"

namespace parallelrun::job {

struct SideFile {
  std::string name;  // relative to the output folder
  uint64_t bytes = 0;
  std::array<uint8_t, 32> sha256{};
  // Of a job whose output lies in a store, where the attempt has left it as an upload that is not
  // complete: its id, and the ETags of its parts. Else both are empty.
  std::string upload = {};
  std::vector<std::string> etags = {};
  bool operator==(const SideFile&) const = default;
};

struct SideList {
  std::string folder;           // of the attempt, in that of all staged files: "process000-5be1/17"
  std::vector<SideFile> files;  // sorted by name, no two alike; without any there is no folder
  bool operator==(const SideList&) const = default;
};

// What stands for the output folder in the arguments that the coordinator tells nodes: each process
// has one of its own. No argument that a person writes holds one.
inline constexpr char kOutputMark[] = "\x02output\x02";

inline constexpr size_t kMostSideLine = size_t{4} << 20;  // bytes, its end included

// `line` without its end. kCorrupt: no worker has made it. Whatever a name is, it leads nowhere but
// below the folder that it is relative to.
Result<SideList> ParseSideList(std::string_view line);
// The same line, without its end.
std::string SideListText(const SideList& list);
// Whether it is such a name.
bool IsSideName(std::string_view name);
// False: these hexadecimal digits are no SHA-256.
bool ReadSha256(std::string_view digits, std::array<uint8_t, 32>& digest);

// Whether results of a run with these plan settings (api/settings.h) begin with such a line.
bool StagesSideFiles(std::string_view plan_settings);

// Takes the line off the front of a result's rows, which come in pieces that end anywhere.
class SideLine {
 public:
  // What of `bytes` are rows. `first`: a result begins with them. kCorrupt: the line does not end.
  Result<std::string_view> RowsIn(std::string_view bytes, bool first);
  // The line, without its end, once that has come.
  std::optional<std::string_view> line() const {
    return ended_ ? std::optional<std::string_view>(line_) : std::nullopt;
  }

 private:
  std::string line_;
  bool ended_ = false;
  bool too_long_ = false;
};

// Which mini-batch has written each side file of a job, and which names are folders of others.
// Digests of names, 16 bytes and what a map takes for each.
class SideNames {
 public:
  static constexpr size_t kMost = 1'000'000;  // files and folders

  // Those of a result, as the line in front of its rows says.
  void Add(BatchId id, std::string_view line, size_t most = kMost);
  // No result has left one.
  bool empty() const { return owners_.empty(); }
  bool Has(std::string_view name) const;
  // The results of these are void.
  void Void(const std::vector<BatchId>& ids);
  // Why they can never be published, in words; "": they can.
  const std::string& trouble() const { return trouble_; }

 private:
  // Whose the name is now: it stays with the first one.
  BatchId Take(std::string_view name, BatchId id);
  void Fail(std::string why);

  std::unordered_map<uint64_t, BatchId> owners_;
  std::string trouble_;  // the first one stays
};

}  // namespace parallelrun::job
