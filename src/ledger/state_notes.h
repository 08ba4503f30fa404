// Small texts beside a ledger, by their names: "pod.json", "uploads/000002.json". Each is written
// whole, or not at all, and is there when the call returns. Blocking I/O.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace parallelrun::ledger {

class StateNotes {
 public:
  virtual ~StateNotes() = default;

  // For messages.
  virtual std::string Location(const std::string& name) const = 0;
  // Its first `most` bytes; nothing where there is none.
  virtual Result<std::optional<std::string>> Read(const std::string& name, size_t most) = 0;
  // In place of an earlier one.
  virtual Status Write(const std::string& name, const std::string& text) = 0;
  // What is in a folder, as "000002.json" in "uploads"; nothing where there is none.
  virtual Result<std::vector<std::string>> List(const std::string& folder) = 0;
  // One that is not there is no error.
  virtual Status Remove(const std::string& name) = 0;
};

// As files of a state folder, which is there. `files` outlives them.
std::unique_ptr<StateNotes> MakeFolderNotes(Files& files, const std::string& state_folder);

}  // namespace parallelrun::ledger
