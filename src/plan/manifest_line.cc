#include "plan/manifest_line.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/escape.h"
#include "base/json.h"
#include "store/file_path.h"

namespace parallelrun::plan {
namespace {

constexpr size_t kMostPath = 4096;        // bytes, as of a path anywhere
constexpr int kMostDepthOfMetadata = 16;  // it stands in lists and objects of others

// `find .` and its like write each path so.
std::string_view WithoutDotSlash(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  return name;
}

Error NoLine(std::string what) { return {Code::kInvalid, std::move(what)}; }

// The fields of one line of CSV, whose quotes hold no line end.
Result<std::vector<std::string>> FieldsOfLine(std::string_view line) {
  std::vector<std::string> fields;
  for (size_t at = 0;;) {
    std::string field;
    if (at < line.size() && line[at] == '"') {
      while (true) {
        const size_t quote = line.find('"', at + 1);
        if (quote == std::string_view::npos) {
          return NoLine(
              "a quote is still open at its end: a field of a manifest holds no line end");
        }
        field += line.substr(at + 1, quote - at - 1);
        at = quote + 1;
        if (at == line.size() || line[at] != '"') break;
        field += '"';  // written twice
      }
      if (at < line.size() && line[at] != ',') {
        return NoLine("text stands behind a closing quote: write a quote within quotes twice");
      }
    } else {
      const size_t end = std::min(line.find(',', at), line.size());
      field = line.substr(at, end - at);
      at = end;
    }
    fields.push_back(std::move(field));
    if (at == line.size()) return fields;
    ++at;  // the comma
  }
}

std::string Listed(const std::vector<std::string>& names) {
  std::string listed;
  for (const std::string& name : names) listed += (listed.empty() ? "" : ", ") + name;
  return Printable(listed, kShown);
}

}  // namespace

std::string WhyNoItem(std::string_view name) {
  if (name.size() > kMostPath) return "is longer than 4,096 bytes: no file has such a path";
  if (name.find('\0') != std::string_view::npos) {
    return "has a NUL byte, and no path does: write the manifest as text, one path a line";
  }
  if (name.find("://") != std::string_view::npos) {
    return "is a URL, and no path below the input's: write it relative to that";
  }
  if (name.starts_with('/')) {
    return "is an absolute path: write it relative to the folder of the input";
  }
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part == "..") return "leaves the folder of the input: name what lies below it";
    if (part.empty() || part == ".") {
      return R"(is not how a listing writes a path: leave out "//", "/./" and a "/" at the end)";
    }
    begin = end + 1;
  }
  return "";
}

Result<std::optional<ManifestEntry>> ManifestLines::Read(std::string_view line) {
  ManifestEntry entry{line, {}};
  if (format_ != api::ManifestFormat::kText) {
    const bool rows = format_ == api::ManifestFormat::kCsv;
    if (rows && header_.empty()) {
      if (const Status header = ReadHeader(line); !header.ok()) return header.error();
      return std::optional<ManifestEntry>();
    }
    if (const Status read = rows ? ReadRow(line) : ReadObject(line); !read.ok()) {
      return read.error();
    }
    entry = {name_, metadata_};
  }
  const Result<std::string_view> name = NameIn(entry.name);
  if (!name.ok()) return name.error();
  entry.name = *name;
  return std::optional(entry);
}

Result<std::string_view> ManifestLines::NameIn(std::string_view text) const {
  std::string_view name = WithoutDotSlash(text);
  if (!below_.empty() && name.find("://") != std::string_view::npos) {
    if (!name.starts_with(below_)) {
      return NoLine(
          fmt::format("\"{}\" is not below {}: an input names what lies below its own "
                      "path; write another input for other objects",
                      Printable(text, kShownLong), Printable(below_, kShownLong)));
    }
    name.remove_prefix(below_.size());
  }
  std::string why = WhyNoItem(name);
  if (why.empty() && below_.empty() && !store::IsFilePath(name)) {
    why = "has a part longer than 255 bytes: no file has such a name";
  }
  if (why.empty()) return name;
  return NoLine(fmt::format("\"{}\" {}", Printable(text, kShownLong), why));
}

Status ManifestLines::ReadHeader(std::string_view line) {
  Result<std::vector<std::string>> names = FieldsOfLine(line);
  if (!names.ok()) return names.error();
  for (size_t i = 0; i < names->size(); ++i) {
    const auto end = names->begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(names->begin(), end, (*names)[i]) == end) continue;
    return NoLine(fmt::format("the column \"{}\" stands in the header twice: rename one",
                              Printable((*names)[i], kShown)));
  }
  const auto path = std::find(names->begin(), names->end(), column_);
  if (path == names->end()) {
    return NoLine(
        fmt::format("the header has no column \"{}\", but {}: write the name of the one "
                    "with the paths as manifest.column",
                    Printable(column_, kShown), Listed(*names)));
  }
  path_at_ = static_cast<size_t>(path - names->begin());
  header_ = std::move(*names);
  return {};
}

// Values are texts: nothing of a manifest is guessed.
Status ManifestLines::ReadRow(std::string_view line) {
  const Result<std::vector<std::string>> fields = FieldsOfLine(line);
  if (!fields.ok()) return fields.error();
  if (fields->size() != header_.size()) {
    return NoLine(
        fmt::format("the row has {} field{}, and the header {}: quote a field that holds "
                    "a comma",
                    fields->size(), fields->size() == 1 ? "" : "s", header_.size()));
  }
  name_ = (*fields)[path_at_];
  metadata_ = "{";
  for (size_t i = 0; i < header_.size(); ++i) {
    metadata_ += (i == 0 ? "" : ",") + JsonText(header_[i]) + ":" + JsonText((*fields)[i]);
  }
  metadata_ += "}";
  return {};
}

// The line stays as it is, since a number of it may be longer than one of this program.
Status ManifestLines::ReadObject(std::string_view line) {
  const std::optional<nlohmann::json> object = ParseObject(line, kMostDepthOfMetadata);
  if (!object) {
    return NoLine("it is no JSON object: write one a line, as {\"path\": \"a.png\", \"id\": 7}");
  }
  const nlohmann::json& path = lenient::At(*object, column_.c_str());
  if (!path.is_string()) {
    return NoLine(
        fmt::format("the object has no text \"{}\": write the path of the file there, or "
                    "the name of the one with the paths as manifest.column",
                    Printable(column_, kShown)));
  }
  name_ = path.get<std::string>();
  metadata_ = line;
  return {};
}

}  // namespace parallelrun::plan
