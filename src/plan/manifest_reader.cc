#include "plan/manifest_reader.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/escape.h"

namespace parallelrun::plan {
namespace {

bool IsBlank(std::string_view line) { return line.find_first_not_of(" \t") == line.npos; }

}  // namespace

Result<std::unique_ptr<ManifestReader>> ManifestReader::Open(store::Store& store,
                                                             const std::string& name,
                                                             const PlanManifest& manifest,
                                                             std::stop_token stop) {
  auto text = TextReader::Open(store, name, true, std::move(stop));
  if (!text.ok()) return text.error();
  return std::unique_ptr<ManifestReader>(new ManifestReader(std::move(*text), manifest));
}

Error ManifestReader::Wrong(uint64_t line, const std::string& what) const {
  return {Code::kInvalid, fmt::format("{}:{}: {}", Printable(text_->path(), 4096), line, what)};
}

Result<std::optional<ManifestItem>> ManifestReader::Next() {
  while (true) {
    const Result<bool> read = ReadLine();
    if (!read.ok()) return read.error();
    if (!*read) return std::optional<ManifestItem>();
    if (IsBlank(line_)) continue;
    const Result<std::optional<ManifestEntry>> entry = entries_.Read(line_);
    if (!entry.ok()) return Wrong(lines_, entry.error().message);
    if (!*entry) continue;
    if (++items_ > kMostItems) {
      return Wrong(lines_,
                   "the manifest has more than 10,000,000 items: cut it into several, each of an "
                   "input of its own");
    }
    return std::optional(ManifestItem{**entry, lines_});
  }
}

// False at the end. What is read in front of a line that is too long is not kept.
Result<bool> ManifestReader::ReadLine() {
  line_.clear();
  ++lines_;
  while (true) {
    if (text_->rest().empty()) {
      if (const Status filled = text_->Fill(); !filled.ok()) return filled.error();
      if (text_->rest().empty()) break;
    }
    const std::string_view rest = text_->rest();
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (line_.size() + end > kMostLine) {
      return Wrong(lines_, "the line is longer than 65,536 bytes: is it a manifest?");
    }
    line_.append(rest.substr(0, end));
    const bool whole = end < rest.size();
    text_->Pass(whole ? end + 1 : end);
    if (!whole) continue;
    if (line_.ends_with('\r')) line_.pop_back();
    return true;
  }
  if (line_.ends_with('\r')) line_.pop_back();
  return !line_.empty();
}

}  // namespace parallelrun::plan
