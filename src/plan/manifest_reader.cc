#include "plan/manifest_reader.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/escape.h"

namespace parallelrun::plan {
namespace {

constexpr size_t kMostPath = 4096;  // bytes, as of a path anywhere

bool IsBlank(std::string_view line) { return line.find_first_not_of(" \t") == line.npos; }

// `find .` and its like write each path so.
std::string_view WithoutDotSlash(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  return name;
}

}  // namespace

std::string WhyNoItem(std::string_view name) {
  if (name.size() > kMostPath) return "is longer than 4,096 bytes: no file has such a path";
  if (name.find('\0') != std::string_view::npos) {
    return "has a NUL byte, and no path does: write the manifest as text, one path a line";
  }
  if (name.find("://") != std::string_view::npos) {
    return "is a URL, and the input lies on a volume: write paths relative to its folder";
  }
  if (name.starts_with('/')) {
    return "is an absolute path: write it relative to the folder of the input";
  }
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part == "..") return "leaves the folder of the input: name what lies below it";
    if (part.empty() || part == ".") {
      return "is not how a listing writes a path: leave out \"//\", \"/./\" and a \"/\" at the end";
    }
    begin = end + 1;
  }
  return "";
}

Result<std::unique_ptr<ManifestReader>> ManifestReader::Open(store::Store& store,
                                                             const std::string& name,
                                                             std::stop_token stop) {
  auto text = TextReader::Open(store, name, true, std::move(stop));
  if (!text.ok()) return text.error();
  return std::unique_ptr<ManifestReader>(new ManifestReader(std::move(*text)));
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
    if (++items_ > kMostItems) {
      return Wrong(lines_,
                   "the manifest has more than 10,000,000 items: cut it into several, "
                   "each of an input of its own");
    }
    const std::string_view name = WithoutDotSlash(line_);
    if (const std::string why = WhyNoItem(name); !why.empty()) {
      return Wrong(lines_, fmt::format("\"{}\" {}", Printable(name, kShownLong), why));
    }
    return std::optional(ManifestItem{name, lines_});
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
