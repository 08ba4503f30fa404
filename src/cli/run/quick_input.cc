#include "cli/run/quick_input.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "api/enums.h"
#include "api/text.h"
#include "cli/run/continue_command.h"
#include "cli/run/local_place.h"
#include "plan/glob.h"
#include "plan/input_names.h"
#include "store/object_stores.h"
#include "store/url_query.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamesBelow = 1000;  // looked at below each, to know what it holds

struct Format {
  const char* name;  // of --format
  const char* shown;
  api::InputKind kind;
  api::TabularFormat tabular = api::TabularFormat::kCsv;
};
constexpr Format kFormats[] = {
    {"files", "files", api::InputKind::kFiles},
    {"csv", "CSV", api::InputKind::kTabular, api::TabularFormat::kCsv},
    {"tsv", "TSV", api::InputKind::kTabular, api::TabularFormat::kTsv},
    {"jsonl", "JSON lines", api::InputKind::kJsonLines},
    {"parquet", "Parquet", api::InputKind::kTabular, api::TabularFormat::kParquet},
};

const Format* FormatNamed(const std::string& name) {
  for (const Format& format : kFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

struct Suffix {
  const Format* table = nullptr;  // none: no table
  bool compressed = false;
};

Suffix SuffixOf(const fs::path& file) {
  const auto lower = [](std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
  };
  Suffix out;
  fs::path name = file.filename();
  std::string last = lower(name.extension());
  if (last == ".gz" || last == ".zst") {
    out.compressed = true;
    last = lower(name.stem().extension());
  }
  if (last == ".ndjson") last = ".jsonl";
  if (last.size() > 1) out.table = FormatNamed(last.substr(1));
  if (out.table == kFormats) out.table = nullptr;  // a file called x.files
  return out;
}

// What a source holds: how many files of each kind of table, and of none.
struct Held {
  std::map<const Format*, size_t> tables;
  size_t others = 0;
  std::string first;        // of the tables
  bool compressed = false;  // a Parquet file
  bool more = false;        // not all was looked at

  void Add(const fs::path& file) {
    const Suffix suffix = SuffixOf(file);
    if (suffix.table == nullptr) {
      ++others;
      return;
    }
    // Text can be read so; of Parquet the parts are compressed, and never the file.
    compressed |= suffix.compressed && suffix.table->tabular == api::TabularFormat::kParquet;
    if (tables.empty()) first = file.filename();
    ++tables[suffix.table];
  }
};

plan::InputNames NamesOf(const QuickSource& source) {
  plan::PlanInput input;
  input.root = source.folder;
  input.pattern = source.pattern;
  return plan::InputNames(input);
}

// How the word would mean something else, where it means nothing: a slash at its end makes a prefix
// of what else is one object.
std::string OtherReading(const std::string& word, const QuickSource& source) {
  if (source.pattern.find('?') != std::string::npos) return " (a ? is any one character)";
  if (!source.pattern.empty()) {
    return word.ends_with("/" + source.pattern) && !HasWildcard(source.pattern)
               ? " (what lies below a prefix of that name is written with a / at its end)"
               : "";
  }
  const bool has_name = source.folder.find('/', source.folder.find("://") + 3) != std::string::npos;
  return word.ends_with('/') && has_name
             ? " (one object of that name is written without the / at its end)"
             : "";
}

// The names of a store come over the network: what is wrong with it is said here.
Status LookInStore(const std::string& word, const QuickSource& source,
                   const std::string& allow_empty, Held& held) {
  const auto store = store::OpenObjectStore({source.folder, "", "", {}, {}}, {});
  if (!store.ok()) return store.error();
  const plan::InputNames names = NamesOf(source);
  auto listing =
      (*store)->List({[&](std::string_view name) { return names.Means(name); },
                      [&](std::string_view folder) { return names.MayMeanBelow(folder); }},
                     "");
  if (!listing.ok()) return listing.error();
  for (size_t seen = 0;; ++seen) {
    const auto next = (*listing)->Next();
    if (!next.ok()) return next.error();
    if (!*next) break;
    held.more = seen == kMostNamesBelow;
    if (held.more) break;
    const fs::path name((*next)->name);
    if (!name.filename().string().starts_with("_")) held.Add(name);
  }
  const bool may_be_missing = allow_empty == api::EnumWord(api::AllowEmpty::kMissing);
  if (!held.tables.empty() || held.others > 0 || may_be_missing) return {};
  const bool may_be_empty = allow_empty == api::EnumWord(api::AllowEmpty::kExisting);
  if (may_be_empty && source.pattern.empty()) {
    const Result<bool> there = (*store)->IsThere();
    if (!there.ok()) return there.error();
    if (*there) return {};
  }
  return Error{Code::kInvalid,
               fmt::format("no object{} below {}: correct bucket and prefix{}",
                           source.pattern.empty() ? "" : " matches " + source.pattern,
                           source.folder, OtherReading(word, source))};
}

void Look(const QuickSource& source, Held& held) {
  if (!source.path.empty()) return held.Add(source.path);
  const plan::InputNames names = NamesOf(source);
  std::error_code error;
  // Links to folders too, as the planner follows them.
  fs::recursive_directory_iterator entry(source.folder,
                                         fs::directory_options::skip_permission_denied |
                                             fs::directory_options::follow_directory_symlink,
                                         error);
  size_t seen = 0;
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (++seen > kMostNamesBelow) {
      held.more = true;
      return;
    }
    const std::string path = entry->path().lexically_relative(source.folder);
    if (!names.MayMeanBelow(path)) entry.disable_recursion_pending();
    // What tools leave beside data (_SUCCESS) says nothing of what the data is.
    const bool marker = entry->path().filename().string().starts_with("_");
    std::error_code unknown;
    if (marker || !entry->is_regular_file(unknown)) continue;
    if (names.Means(path)) held.Add(entry->path());
  }
}

// The command as it was typed, with that format.
std::string CommandWith(const std::vector<std::string>& words, const std::string& format) {
  std::string text;
  bool added = false;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  for (const std::string& word : words) {
    if (word == "--" && !added) {
      add("--format " + format);
      added = true;
    }
    add(ForShell(word));
  }
  if (!added) add("--format " + format);
  return text;
}

// "2 files of CSV and 1 file of TSV".
std::string Counted(const Held& held) {
  std::vector<std::string> kinds;
  for (const auto& [table, count] : held.tables) {
    kinds.push_back(fmt::format("{} {} of {}", count, count == 1 ? "file" : "files", table->shown));
  }
  return (held.more ? "at least " : "") + fmt::format("{}", fmt::join(kinds, " and "));
}

Error AskBack(const InputWords& input, const Held& held) {
  const Format& table = *held.tables.begin()->first;
  const std::string rows =
      fmt::format("  {}\n      run() gets the rows of all of them, as one table",
                  CommandWith(input.command, table.name));
  const std::string files = fmt::format("  {}\n      run() gets the paths of the files",
                                        CommandWith(input.command, "files"));
  return Error{Code::kInvalid,
               fmt::format("--input {}: {} ({}{}). Say how they are to be read:\n{}\n{}",
                           input.words.front(), Counted(held), held.first,
                           held.tables.begin()->second == 1 ? "" : ", …", rows, files)};
}

// A job reads tables of one kind.
Error AskForOneKind(const InputWords& input, const Held& held) {
  const char* const name = held.tables.begin()->first->name;
  return Error{Code::kInvalid,
               fmt::format("--input {}: {} ({}, …). Say how they are to be read:\n  {}\n      "
                           "run() gets the paths of the files\n  --format {} --pattern '**/*.{}' "
                           "in its place, and the like for each kind, into an output of its "
                           "own\n      run() gets the rows of these",
                           input.words.front(), Counted(held), held.first,
                           CommandWith(input.command, "files"), name, name)};
}

Result<const Format*> Decide(const InputWords& input, const QuickInput& out, std::string& note) {
  if (!input.format.empty()) return FormatNamed(input.format);
  Held held;
  for (size_t i = 0; i < out.sources.size(); ++i) {
    const QuickSource& source = out.sources[i];
    if (!source.in_store) {
      Look(source, held);
      continue;
    }
    const Status looked = LookInStore(input.words[i], source, input.allow_empty, held);
    if (!looked.ok()) return Error{Code::kInvalid, "--input: " + looked.error().message};
  }
  if (held.tables.empty()) return kFormats;
  if (held.others > 0) {
    note = fmt::format(
        "{} holds {}, and other files: run() gets the paths of all of them; for rows "
        "write --format {}, with --pattern or a glob for the tables alone",
        input.words.front(), Counted(held), held.tables.begin()->first->name);
    return kFormats;
  }
  if (held.compressed) {
    return Error{Code::kInvalid,
                 fmt::format("--input {}: {} is a compressed file of Parquet, which cannot be read "
                             "by parts: decompress it, or give run() the paths:\n  {}",
                             input.words.front(), held.first, CommandWith(input.command, "files"))};
  }
  if (held.tables.size() > 1) return AskForOneKind(input, held);
  const QuickSource& first = out.sources.front();
  const bool one_object = first.in_store && !first.pattern.empty() && !HasWildcard(first.pattern);
  const bool one_file = out.sources.size() == 1 && (one_object || !first.path.empty());
  if (!one_file) return AskBack(input, held);
  const Format* const table = held.tables.begin()->first;
  note = fmt::format("{} is read as a table of {}; --format files gives run() its path instead",
                     input.words.front(), table->shown);
  return table;
}

// Whether `outer` has `inner` in it. Of two globs only a listing tells; the planner gives each file
// to the first.
bool Holds(const QuickSource& outer, const QuickSource& inner) {
  if (!outer.path.empty() || outer.in_store != inner.in_store) return false;
  const std::string within = outer.folder.ends_with('/') ? outer.folder : outer.folder + "/";
  const std::string place = inner.path.empty() ? inner.folder : inner.folder + "/" + inner.path;
  if (!(place + "/").starts_with(within)) return false;
  if (outer.pattern.empty()) return true;
  return !inner.path.empty() && plan::Glob(outer.pattern).Matches(place.substr(within.size()));
}

}  // namespace

std::optional<NamedTables> TablesNamed(const std::string& path) {
  Held held;
  Look(SourceOf(path, ""), held);
  if (held.tables.size() != 1) return std::nullopt;
  const Format& table = *held.tables.begin()->first;
  return NamedTables{table.kind, table.tabular};
}

bool NamesATable(const std::string& file) { return SuffixOf(file).table != nullptr; }

const std::vector<std::string>& InputFormats() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Format& format : kFormats) all.emplace_back(format.name);
    return all;
  }();
  return names;
}

Result<QuickInput> LookAtInput(const InputWords& input) {
  QuickInput out;
  if (input.words.size() > api::kMaxInputs) {
    return Error{
        Code::kInvalid,
        fmt::format("--input has {} words, and a job takes {}: put a glob in quotes, so that "
                    "the shell leaves it as it is (--input 'images/*.png'), or name the "
                    "folder",
                    input.words.size(), api::kMaxInputs)};
  }
  std::set<std::string> known;
  for (const std::string& word : input.words) {
    // What is no secret may be told in full from here on.
    if (const Status query = store::CheckQuery(word); !query.ok()) {
      return query.error().With("--input");
    }
    if (!store::IsStoreUrl(word)) {
      const Status here = MustBePath("--input", word,
                                     "inputs are folders and files of this machine, S3 "
                                     "(s3://BUCKET/PREFIX/) and Azure Blob Storage (abfss://...); "
                                     "copy what lies elsewhere to one of these first");
      if (!here.ok()) return here.error();
    }
    QuickSource source = SourceOf(word, input.pattern);
    if (source.in_store && MayBeOneObject(word)) {
      Result<std::optional<QuickSource>> object = OneObject(word);
      if (!object.ok()) return object.error().With("--input");
      if (*object) source = std::move(**object);
    }
    if (!known.insert(source.folder + "/" + source.path + "/" + source.pattern).second) {
      return Error{Code::kInvalid,
                   "--input names " + word + " twice: each item would be run twice"};
    }
    if (!input.pattern.empty() && source.pattern != input.pattern) {
      return Error{Code::kInvalid, "--pattern is for folders, and --input names " + word +
                                       ", which is none: leave --pattern out"};
    }
    for (size_t i = 0; i < out.sources.size(); ++i) {
      const bool before = Holds(out.sources[i], source);
      if (!before && !Holds(source, out.sources[i])) continue;
      return Error{Code::kInvalid,
                   fmt::format("--input names {1}, and {0}, which has it in it: each of its items "
                               "would be run twice",
                               before ? input.words[i] : word, before ? word : input.words[i])};
    }
    out.sources.push_back(std::move(source));
  }
  const Result<const Format*> format = Decide(input, out, out.note);
  if (!format.ok()) return format.error();
  out.kind = (*format)->kind;
  out.format = (*format)->tabular;
  return out;
}

}  // namespace parallelrun::cli
