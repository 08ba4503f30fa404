#include "plan/manifest_line.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/escape.h"
#include "base/json.h"
#include "store/file_path.h"
#include "store/objects/object_version.h"
#include "store/objects/refusal.h"

namespace parallelrun::plan {
namespace {

constexpr size_t kMostPath = 4096;        // bytes, as of a path anywhere
constexpr int kMostDepthOfMetadata = 16;  // it stands in lists and objects of others
constexpr uint64_t kMostSize = std::numeric_limits<int64_t>::max();  // bytes

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

// What an object says of its file; empty: nothing. Nothing where it is no text and no number.
std::optional<std::string> SaidOf(const nlohmann::json& object, const std::string& column) {
  if (column.empty()) return "";
  const nlohmann::json& said = lenient::At(object, column.c_str());
  if (said.is_null()) return "";
  if (said.is_number_unsigned()) return std::to_string(said.get<uint64_t>());
  if (said.is_string()) return said.get<std::string>();
  return std::nullopt;
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
    entry = {name_, metadata_, pin_};
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
  struct Sought {
    const std::string& column;
    const char* what;
    size_t& at;
  };
  for (const Sought& sought : {Sought{column_, "paths as manifest.column", path_at_},
                               Sought{size_column_, "sizes as manifest.sizeColumn", size_at_},
                               Sought{etag_column_, "ETags as manifest.etagColumn", etag_at_}}) {
    if (sought.column.empty()) continue;
    const auto found = std::find(names->begin(), names->end(), sought.column);
    if (found == names->end()) {
      return NoLine(
          fmt::format("the header has no column \"{}\", but {}: write the name of the one with the "
                      "{}",
                      Printable(sought.column, kShown), Listed(*names), sought.what));
    }
    sought.at = static_cast<size_t>(found - names->begin());
  }
  header_ = std::move(*names);
  return {};
}

// Of what a line says nothing, anything may be there.
Status ManifestLines::ReadPin(std::string_view size, std::string_view etag) {
  pin_ = {};
  if (!size.empty()) {
    uint64_t bytes = 0;
    const char* const end = size.data() + size.size();
    const auto [stopped, error] = std::from_chars(size.data(), end, bytes);
    if (error != std::errc() || stopped != end || bytes > kMostSize) {
      return NoLine(fmt::format("\"{}\" is no size: write a number of bytes as \"{}\", or nothing",
                                Printable(size, kShown), Printable(size_column_, kShown)));
    }
    pin_.size = bytes;
  }
  pin_.etag = store::PlainEtag(etag);
  const auto odd = [](char c) { return c <= ' ' || c > '~' || c == '"'; };
  if (pin_.etag.size() > store::kMostEtag || std::any_of(pin_.etag.begin(), pin_.etag.end(), odd)) {
    return NoLine(
        fmt::format("\"{}\" is no ETag: write it as the store lists it as \"{}\", or "
                    "nothing",
                    Printable(etag, kShown), Printable(etag_column_, kShown)));
  }
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
  const auto said = [&](const std::string& column, size_t at) {
    return column.empty() ? std::string_view() : std::string_view((*fields)[at]);
  };
  return ReadPin(said(size_column_, size_at_), said(etag_column_, etag_at_));
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
  const std::optional<std::string> size = SaidOf(*object, size_column_);
  const std::optional<std::string> etag = SaidOf(*object, etag_column_);
  if (size && etag) return ReadPin(*size, *etag);
  return NoLine(
      fmt::format("\"{}\" is neither a text nor a number that is not negative: write one, "
                  "or null",
                  Printable(size ? etag_column_ : size_column_, kShown)));
}

}  // namespace parallelrun::plan
