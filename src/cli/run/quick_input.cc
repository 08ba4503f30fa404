#include "cli/run/quick_input.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "api/text.h"
#include "cli/run/continue_command.h"
#include "cli/run/local_job.h"
#include "coordinator/plan/glob.h"
#include "store/s3/s3_store.h"

namespace parallelrun {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSources = 32;  // a job's inputs
constexpr size_t kMostNames = 1000;  // looked at below each, to know what it holds
constexpr char kWildcards[] = "*?[";

struct Format {
  const char* name;  // of --format
  const char* shown;
  InputKind kind;
  TabularFormat tabular = TabularFormat::kCsv;
};
constexpr Format kFormats[] = {
    {"files", "files", InputKind::kFiles},
    {"csv", "CSV", InputKind::kTabular, TabularFormat::kCsv},
    {"tsv", "TSV", InputKind::kTabular, TabularFormat::kTsv},
    {"jsonl", "JSON lines", InputKind::kJsonLines},
    {"parquet", "Parquet", InputKind::kTabular, TabularFormat::kParquet},
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

bool HasWildcard(const std::string& text) {
  return text.find_first_of(kWildcards) != std::string::npos;
}

// The folder of a glob is what stands before its first name with a wildcard.
QuickSource GlobSource(const fs::path& glob) {
  fs::path folder;
  fs::path pattern;
  for (const fs::path& part : glob) {
    const bool wild = HasWildcard(part);
    (wild || !pattern.empty() ? pattern : folder) /= part;
  }
  return {folder, "", pattern};
}

// A URL is what is below a prefix, a glob, or one table: keys have no folders to look at.
QuickSource StoreSource(std::string url, const std::string& pattern) {
  const bool below = url.ends_with('/');
  while (url.ends_with('/')) url.pop_back();
  const size_t bucket_end = std::min(url.find('/', sizeof("s3://") - 1), url.size());
  size_t cut = url.size();
  if (const size_t wild = url.find_first_of(kWildcards, bucket_end); wild != std::string::npos) {
    cut = url.rfind('/', wild);
  } else if (!below && bucket_end < url.size() && SuffixOf(url).table != nullptr) {
    cut = url.rfind('/');
  }
  if (cut == url.size()) return {url, "", pattern, true};
  return {url.substr(0, cut), "", url.substr(cut + 1), true};
}

QuickSource SourceOf(const std::string& word, const std::string& pattern) {
  if (word.starts_with("s3://")) return StoreSource(word, pattern);
  const fs::path path = Absolute(fs::current_path(), word);
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return {path.parent_path(), path.filename(), ""};
  if (!fs::exists(path, ignored) && HasWildcard(word)) {
    return GlobSource(path);
  }
  return {path, "", pattern};
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
    compressed |= suffix.compressed && suffix.table->tabular == TabularFormat::kParquet;
    if (tables.empty()) first = file.filename();
    ++tables[suffix.table];
  }
};

// The names of a store come over the network: what is wrong with it is said here.
Status LookInStore(const QuickSource& source, Held& held) {
  const auto store = s3::OpenStore({source.folder, "", "", {}}, {});
  if (!store.ok()) return store.error();
  const Glob glob(source.pattern);
  const auto hidden = [](std::string_view path) {
    return path.substr(path.rfind('/') + 1).starts_with('.');
  };
  auto listing = (*store)->List(
      {[&](std::string_view name) { return !hidden(name) && glob.Matches(name); },
       [&](std::string_view folder) { return !hidden(folder) && glob.MayMatchBelow(folder); }},
      "");
  if (!listing.ok()) return listing.error();
  for (size_t seen = 0;; ++seen) {
    const auto next = (*listing)->Next();
    if (!next.ok()) return next.error();
    if (!*next) break;
    held.more = seen == kMostNames;
    if (held.more) break;
    const fs::path name((*next)->name);
    if (!name.filename().string().starts_with("_")) held.Add(name);
  }
  if (!held.tables.empty() || held.others > 0) return {};
  return Error{
      Code::kInvalid,
      fmt::format("no object{} below {}: correct bucket and prefix; one object is "
                  "named by a glob (s3://BUCKET/PREFIX/*.png)",
                  source.pattern.empty() ? "" : " matches " + source.pattern, source.folder)};
}

void Look(const QuickSource& source, Held& held) {
  if (!source.path.empty()) return held.Add(source.path);
  const Glob glob(source.pattern);
  std::error_code error;
  fs::recursive_directory_iterator entry(source.folder,
                                         fs::directory_options::skip_permission_denied, error);
  size_t seen = 0;
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (++seen > kMostNames) {
      held.more = true;
      return;
    }
    const std::string name = entry->path().filename();
    // What tools leave beside data (_SUCCESS, .crc) says nothing of what the data is.
    const bool marker = name.starts_with(".") || name.starts_with("_");
    std::error_code unknown;
    if (marker || !entry->is_regular_file(unknown)) continue;
    if (glob.Matches(entry->path().lexically_relative(source.folder).string())) {
      held.Add(entry->path());
    }
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

Error AskBack(const InputWords& input, const Held& held) {
  const Format& table = *held.tables.begin()->first;
  const size_t count = held.tables.begin()->second;
  const std::string rows =
      fmt::format("  {}\n      run() gets the rows of all of them, as one table",
                  CommandWith(input.command, table.name));
  const std::string files = fmt::format("  {}\n      run() gets the paths of the files",
                                        CommandWith(input.command, "files"));
  return Error{Code::kInvalid,
               fmt::format("--input {}: {}{} {} ({}{}). Say how they are to be read:\n{}\n{}",
                           input.words.front(), held.more ? "at least " : "", count,
                           count == 1 ? std::string("file of ") + table.shown
                                      : std::string("files of ") + table.shown,
                           held.first, count == 1 ? "" : ", …", rows, files)};
}

Result<const Format*> Decide(const InputWords& input, const QuickInput& out, std::string& note) {
  if (!input.format.empty()) return FormatNamed(input.format);
  Held held;
  for (const QuickSource& source : out.sources) {
    if (!source.in_store) {
      Look(source, held);
    } else if (const Status looked = LookInStore(source, held); !looked.ok()) {
      return Error{Code::kInvalid, "--input: " + looked.error().message};
    }
  }
  const bool all_tables = held.tables.size() == 1 && held.others == 0;
  if (!all_tables) return kFormats;
  if (held.compressed) {
    return Error{Code::kInvalid,
                 fmt::format("--input {}: {} is a compressed file of Parquet, which cannot be read "
                             "by parts: decompress it, or give run() the paths:\n  {}",
                             input.words.front(), held.first, CommandWith(input.command, "files"))};
  }
  const QuickSource& first = out.sources.front();
  const bool one_object = first.in_store && !first.pattern.empty() && !HasWildcard(first.pattern);
  const bool one_file = out.sources.size() == 1 && (one_object || !first.path.empty());
  if (!one_file) return AskBack(input, held);
  const Format* const table = held.tables.begin()->first;
  note = fmt::format("{} is read as a table of {}; --format files gives run() its path instead",
                     input.words.front(), table->shown);
  return table;
}

}  // namespace

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
  if (input.words.size() > kMostSources) {
    return Error{
        Code::kInvalid,
        fmt::format("--input has {} words, and a job takes {}: put a glob in quotes, so that "
                    "the shell leaves it as it is (--input 'images/*.png'), or name the "
                    "folder",
                    input.words.size(), kMostSources)};
  }
  std::set<std::string> known;
  for (const std::string& word : input.words) {
    QuickSource source = SourceOf(word, input.pattern);
    if (!known.insert(source.folder + "/" + source.path + "/" + source.pattern).second) {
      return Error{Code::kInvalid,
                   "--input names " + word + " twice: each item would be run twice"};
    }
    if (!input.pattern.empty() && source.pattern != input.pattern) {
      return Error{Code::kInvalid, "--pattern is for folders, and --input names " + word +
                                       ", which is none: leave --pattern out"};
    }
    out.sources.push_back(std::move(source));
  }
  const Result<const Format*> format = Decide(input, out, out.note);
  if (!format.ok()) return format.error();
  out.kind = (*format)->kind;
  out.format = (*format)->tabular;
  return out;
}

}  // namespace parallelrun
