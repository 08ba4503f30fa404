#include "cli/run/quick_output.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/escape.h"
#include "cli/run/local_place.h"
#include "store/object_stores.h"
#include "store/s3/address.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kScheme = "s3://";
constexpr std::array kWritten = {
    std::pair{".csv", api::OutputFormat::kCsv}, std::pair{".jsonl", api::OutputFormat::kJsonl},
    std::pair{".ndjson", api::OutputFormat::kJsonl}, std::pair{".txt", api::OutputFormat::kText},
    std::pair{".parquet", api::OutputFormat::kParquet}};
// Whoever types one of these means no folder.
constexpr std::array<std::string_view, 11> kOthers = {
    ".tsv", ".json", ".pq", ".arrow", ".feather", ".avro", ".orc", ".xlsx", ".gz", ".zst", ".zip"};

// "" without one.
std::string LowerSuffix(const fs::path& name) {
  std::string suffix = name.extension();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return suffix;
}

// Nothing: it is no file. kInvalid: a file of a format that is not written.
Result<std::optional<api::OutputFormat>> FormatOf(const fs::path& path, const std::string& word) {
  const std::string suffix = LowerSuffix(path.filename());
  for (const auto& [known, format] : kWritten) {
    if (suffix == known) return std::optional(format);
  }
  if (std::find(kOthers.begin(), kOthers.end(), suffix) == kOthers.end()) {
    return std::optional<api::OutputFormat>();
  }
  return Error{Code::kInvalid,
               "--output: " + word + " is a file of a format that is not written: name a file " +
                   "that ends in .csv, .jsonl, .parquet or .txt, or a folder, as " + word + "/"};
}

// A key has no folder to look at: its end tells whether it is the file's. A query would stand in
// the key.
Result<QuickOutput> InStore(const std::string& word, const std::string& state) {
  if (const size_t query = word.find('?'); query != std::string::npos) {
    return Error{Code::kInvalid,
                 fmt::format("--output: {} has a ? behind it, and what follows one is not used in "
                             "the URL of a store: leave it out",
                             Printable(word.substr(0, query), kShownShort))};
  }
  const Result<store::s3::Address> address = store::s3::ParseAddress(word);
  if (!address.ok()) return address.error().With("--output");
  QuickOutput output;
  output.url = address->Url("");
  while (output.url.ends_with('/')) output.url.pop_back();
  const std::string name = output.url.substr(output.url.rfind('/') + 1);
  if (!word.ends_with('/') && !address->prefix.empty()) {
    const Result<std::optional<api::OutputFormat>> format = FormatOf(name, word);
    if (!format.ok()) return format.error();
    if (*format) {
      output.file = name;
      output.format = **format;
      output.url.erase(output.url.size() - name.size() - 1);
    }
  }
  output.folder = state.empty() ? RunFolderOf(name) : state;
  return output;
}

}  // namespace

Result<QuickOutput> LookAtOutput(const std::string& word, const std::string& state) {
  const Status state_here =
      MustBePath("--state", state, "logs and state lie in a folder of this machine");
  if (!state_here.ok()) return state_here.error();
  if (word.starts_with(kScheme)) return InStore(word, state);
  if (store::IsStoreUrl(word)) {
    return Error{Code::kInvalid,
                 "--output: rows go to a folder or to S3 (s3://BUCKET/PREFIX/); of Azure Blob "
                 "Storage only inputs are read"};
  }
  const Status folder_here = MustBePath("--output", word,
                                        "rows go to a folder of this machine or to S3 "
                                        "(s3://BUCKET/PREFIX/)");
  if (!folder_here.ok()) return folder_here.error();
  if (!state.empty()) {
    return Error{Code::kInvalid,
                 "--state goes with an output in a store (--output s3://BUCKET/PREFIX/): logs and "
                 "state of any other lie beside it"};
  }
  const fs::path path(word);
  std::error_code ignored;
  if (!path.has_filename() || fs::is_directory(path, ignored)) {
    return QuickOutput{.folder = word, .file = ""};
  }
  const Result<std::optional<api::OutputFormat>> format = FormatOf(path, word);
  if (!format.ok()) return format.error();
  if (!*format) return QuickOutput{.folder = word, .file = ""};
  const std::string folder = path.parent_path();
  return QuickOutput{folder.empty() ? "." : folder, path.filename(), **format};
}

std::string RunFolderOf(const std::string& output_file) { return output_file + ".run"; }

}  // namespace parallelrun::cli
