// The planner turns a job's inputs into plan chunks (docs/ledger.md), one at a time, so that
// leasing starts long before the listing has ended. Blocking I/O: it runs on a thread of its own.
// Deterministic: the same files give the same chunks, and a planner that goes on behind any chunk
// gives the same bytes as the one that made it. How names, links, patterns and rows are treated:
// listing.h, glob.h, row_scanner.h. Memory: the names of the folders on the way to the file at hand
// (about 35 bytes a file beyond its name); with partition keys, the names of the whole input, which
// is listed before its first chunk. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "api/data.h"
#include "api/selection.h"
#include "base/error.h"
#include "job/records.h"
#include "store/store.h"

namespace parallelrun::plan {

class InputNames;

enum class PlanKind { kFiles, kDelimited, kParquet, kJsonLines, kRanks };

constexpr uint64_t kAllItems = UINT64_MAX;

// The file that names the items of an input (manifest_store.h).
struct PlanManifest {
  std::string path;  // absolute; empty: the input is what its folder holds
  api::ManifestFormat format = api::ManifestFormat::kText;
  std::string column = "path";  // but of kText
  // That hold what each file is; empty: nothing says it.
  std::string size_column = {};
  std::string etag_column = {};
  std::string below = {};       // what the URLs in it begin with; empty: it may have none
  bool keeps_twice = false;     // a name in several lines is an item for each
  store::Version planned = {};  // that items were planned of; empty: none yet, or any
  // Items of the job in front of its first one, and of its own those that are planned: a name that
  // may come again does not say how far that is.
  uint64_t items_before = 0;
  uint64_t items_planned = 0;
};

// One input with its volume resolved to a folder.
struct PlanInput {
  std::string name;     // of the input, for messages
  std::string root;     // absolute folder (or a single file): the root of its store
  std::string pattern;  // glob below the root: *, ?, [..], ** over folders; empty: every file
  std::vector<std::string> exclude;  // the same; what matches a folder leaves out all below it
  PlanKind kind = PlanKind::kFiles;
  // kFiles: files; kDelimited and kParquet: bytes in the file; kJsonLines: lines; kRanks: how many
  // mini-batches there are in all (such an input is the only one, and has no root).
  uint64_t batch_size = 10;
  std::string partition_format;             // partition_format.h; empty: none
  std::vector<std::string> partition_keys;  // not empty: a mini-batch for each of their values
  // kDelimited only. With the header of the first file, that of the first one that is not empty
  // stands for all; a later file that repeats it has it taken off.
  api::TabularOptions tabular = {.delimiter = ","};
  // The types of the columns, or which manifest counts, are decided in front of the first chunk;
  // Next() gives them.
  bool decide_types = false;
  // Once they are: the columns that each file with a header of its own must have. Empty: any.
  std::vector<std::string> columns = {};
  // By name, the store that it lies in, whose URL is then the begin of the root; empty: a folder of
  // a volume.
  std::string store = {};
  bool is_prefix = false;      // in a store: the root is never one object
  PlanManifest manifest = {};  // kFiles; what it names lies below the root
  bool urls = false;  // kFiles in a store: Work has the URLs of the objects, which nobody fetches
  api::AllowEmpty allow_empty = api::AllowEmpty::kNever;
  // An output that has something in it would be replaced by one of no row.
  bool replaces = false;
  // Inputs before it that may mean files of it, which are theirs then (input_names.h).
  std::vector<std::shared_ptr<const InputNames>> before = {};
  // Items are planned until the job has so many, those of the inputs before this one counted. A
  // mini-batch that cannot be cut may have more: a group, a compressed file, row groups of Parquet.
  uint64_t most_items = kAllItems;
  // FileDigest() of the only names that are listed, sorted; an empty list is an input without
  // files.
  std::optional<std::vector<uint64_t>> only = {};
  // Once it is asked for, Next() gives up: within a block of the file it reads, an entry of the
  // folder it lists, or a file it asks the size of.
  std::stop_token stop{};
};

// Where to go on: after the last chunk that the ledger holds.
struct PlanCursor {
  uint32_t input = 0;
  std::string last_name;     // root-relative path of the last file planned
  uint64_t next_offset = 0;  // what RowSplitter::Seek takes in that file
  store::Found found;        // of that file when it was planned, where parts of files are
  std::string header;        // of the last table planned: with kFirstFile it stands for all
  job::BatchId next_batch = 0;
  uint64_t next_item = 0;
  uint64_t listing = 0;  // with partition keys: see GroupPlace
  uint32_t next_group = 0;
};

// The cursor after `chunk`, made from `inputs[chunk.input]`.
PlanCursor CursorAfter(const job::PlanChunkRecord& chunk, const std::vector<PlanInput>& inputs);

// A file's path relative to the folder of its input's listing.
std::string_view NameOf(std::string_view path, const PlanInput& input);

// Opens the store that an input lies in (input_store.h). Does no I/O itself.
using OpenStore = std::function<std::unique_ptr<store::Store>(const PlanInput& input)>;

class Planner {
 public:
  Planner(std::vector<PlanInput> inputs, OpenStore open, PlanCursor from);
  ~Planner();

  // The next chunk as an encoded record (job/records.h), in front of an input's first one perhaps
  // the types of its columns, or its manifest, or nullopt at the end of the last input.
  // Errors name input, folder and file: kNotFound for a missing root, kInvalid for a forbidden
  // folder, a table that has a log of its own, a symbolic link to nowhere, an encoding
  // or delimiter that cannot be cut, a file that does not match the partition format or is no
  // Parquet, an input without files or rows, one that changed while its groups were planned, and
  // what is wrong with a manifest; else what the file system says. An input that may be empty is
  // passed over, and a note says so. After an error the planner is done: make a new one.
  Result<std::optional<std::string>> Next();

  // What people are told of the inputs whose listing has ended since the last call: names that were
  // left out (left_out.h).
  std::vector<std::string> TakeNotes();

  // Mini-batches and items planned so far, the cursor's included.
  uint64_t batches() const;
  uint64_t items() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Leaves of the inputs what was selected.
void TakeOnly(const api::Selection& selection, std::vector<PlanInput>& inputs);

}  // namespace parallelrun::plan
