// What `--input` names: folders, files and globs of this machine, URLs of stores, looked at once,
// and how what they hold is read. A table that is taken for opaque files gives wrong results
// without a word, and so does a glob that the shell has made many words of; so both are decided
// here, or asked back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/data.h"
#include "base/error.h"
#include "cli/run/quick_source.h"

namespace parallelrun::cli {

struct InputWords {
  std::vector<std::string> words;    // of --input, at least one
  std::string pattern;               // of --pattern, for folders; "": every file
  std::string format;                // of --format; "": not given
  std::string allow_empty;           // of --allow-empty; "": not given
  std::vector<std::string> command;  // as it was typed, to be told with --format in it
};

struct QuickInput {
  api::InputKind kind = api::InputKind::kFiles;
  api::TabularFormat format = api::TabularFormat::kCsv;  // kTabular only
  std::vector<QuickSource> sources;
  std::string note;  // how a table is read that nobody has called one; "": nothing to tell
};

// The one kind of tables that a file, or the files below a folder, are named as; nullopt: none, or
// several. Reads names only, and of a folder some thousand.
struct NamedTables {
  api::InputKind kind = api::InputKind::kTabular;
  api::TabularFormat format = api::TabularFormat::kCsv;  // kTabular only
};
std::optional<NamedTables> TablesNamed(const std::string& path);

// Whether a file of this name is one of a table, by its suffix.
bool NamesATable(const std::string& file);

// What --format takes.
const std::vector<std::string>& InputFormats();

// Reads names, at most some thousands, and no contents. An error is kInvalid and says what to type.
Result<QuickInput> LookAtInput(const InputWords& input);

}  // namespace parallelrun::cli
