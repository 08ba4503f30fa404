#include "plan/partition_format.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/escape.h"

namespace parallelrun::plan {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool StandsForDigit(char c) { return std::string_view("yMdHms").find(c) != std::string_view::npos; }

bool MatchesDate(std::string_view letters, std::string_view text) {
  return std::equal(letters.begin(), letters.end(), text.begin(), [](char letter, char c) {
    return StandsForDigit(letter) ? IsDigit(c) : letter == c;
  });
}

constexpr std::string_view kYear = "yyyy";

// What a date may be written with, in the order of the ISO format.
constexpr std::array<std::string_view, 6> kDateParts = {kYear, "MM", "dd", "HH", "mm", "ss"};

bool IsDate(std::string_view letters) { return letters.find('y') != std::string_view::npos; }

// Whether each letter that stands for a digit is one of such a part, and no part is there twice.
bool IsGoodDate(std::string_view letters) {
  std::string rest(letters);
  for (const std::string_view part : kDateParts) {
    const size_t at = rest.find(part);
    if (at != std::string::npos) rest.replace(at, part.size(), part.size(), ' ');
  }
  return letters.find(kYear) != std::string_view::npos &&
         std::none_of(rest.begin(), rest.end(), StandsForDigit);
}

Error BadFormat(std::string_view format, std::string_view why) {
  return {Code::kInvalid, fmt::format("partitionFormat {}: {}; write each key in braces, as in "
                                      "{{user}}/{{season}}/{{genre}}.wav",
                                      Printable(format, 1024), why)};
}

}  // namespace

Result<PartitionFormat> PartitionFormat::Parse(std::string_view format) {
  PartitionFormat parsed;
  const std::string_view whole = format;
  while (format.starts_with('/')) format.remove_prefix(1);
  while (!format.empty()) {
    const size_t open = std::min(format.find_first_of("{}"), format.size());
    if (open > 0) {
      parsed.parts_.push_back({Part::Kind::kLiteral, std::string(format.substr(0, open))});
      format.remove_prefix(open);
      continue;
    }
    const size_t close = format.find_first_of("{}", 1);
    if (format[0] != '{' || close == std::string_view::npos || format[close] != '}') {
      return BadFormat(whole, "a brace is not closed or not opened");
    }
    const std::string_view inside = format.substr(1, close - 1);
    format.remove_prefix(close + 1);
    const size_t colon = std::min(inside.find(':'), inside.size());
    const std::string name(inside.substr(0, colon));
    const bool any = inside.empty();
    if (name.empty() && !any) return BadFormat(whole, "a key has no name");
    if (std::find(parsed.names_.begin(), parsed.names_.end(), name) != parsed.names_.end()) {
      return BadFormat(whole, fmt::format("the key {} stands in it twice", Printable(name, 256)));
    }
    const bool date = colon < inside.size();
    if (date && colon + 1 == inside.size()) {
      return BadFormat(whole, fmt::format("no date stands behind the colon of the key {}",
                                          Printable(name, 256)));
    }
    if (!date && !parsed.parts_.empty() && IsText(parsed.parts_.back())) {
      return BadFormat(whole, fmt::format("nothing stands in front of the key {}, so that nobody "
                                          "can tell where it begins",
                                          any ? "{}" : Printable(name, 256)));
    }
    if (any) {
      parsed.parts_.push_back({Part::Kind::kAny, ""});
      continue;
    }
    const std::string letters(date ? inside.substr(colon + 1) : std::string_view());
    if (IsDate(letters) && !IsGoodDate(letters)) {
      return BadFormat(whole, fmt::format("the date of the key {} is to be written with yyyy, MM, "
                                          "dd, HH, mm and ss, each once at most",
                                          Printable(name, 256)));
    }
    parsed.names_.push_back(name);
    parsed.dates_.push_back(IsDate(letters) ? letters : "");
    parsed.parts_.push_back({date ? Part::Kind::kDate : Part::Kind::kName, letters});
  }
  if (parsed.names_.empty()) return BadFormat(whole, "it has no key");
  return parsed;
}

// Tries what every name may be, longest first, and never the same twice.
struct PartitionFormat::Attempt {
  const std::vector<Part>& parts;
  std::string_view path;
  std::vector<bool> failed;  // (part, position in path)
  std::vector<std::string_view> values;

  bool From(size_t part, size_t at) {
    if (part == parts.size()) return at == path.size();
    const size_t state = part * (path.size() + 1) + at;
    if (failed[state]) return false;
    const bool matched = Matches(parts[part], part, at);
    failed[state] = !matched;
    return matched;
  }

  bool Matches(const Part& part, size_t index, size_t at) {
    const std::string_view rest = path.substr(at);
    if (part.kind == Part::Kind::kLiteral) {
      return rest.starts_with(part.text) && From(index + 1, at + part.text.size());
    }
    if (part.kind == Part::Kind::kDate) {
      const size_t size = part.text.size();
      if (rest.size() < size || !MatchesDate(part.text, rest)) return false;
      return Taken(index, at, size);
    }
    const bool any = part.kind == Part::Kind::kAny;
    for (size_t size = std::min(rest.find('/'), rest.size()); size > 0; --size) {
      if (any ? From(index + 1, at + size) : Taken(index, at, size)) return true;
    }
    return false;
  }

  bool Taken(size_t index, size_t at, size_t size) {
    values.push_back(path.substr(at, size));
    if (From(index + 1, at + size)) return true;
    values.pop_back();
    return false;
  }
};

std::optional<std::vector<std::string_view>> PartitionFormat::Match(std::string_view path) const {
  Attempt attempt{parts_, path, std::vector<bool>(parts_.size() * (path.size() + 1)), {}};
  if (!attempt.From(0, 0)) return std::nullopt;
  return std::move(attempt.values);
}

std::optional<std::string> DateOf(std::string_view letters, std::string_view value) {
  namespace chrono = std::chrono;
  std::array<int, kDateParts.size()> parts = {0, 1, 1, 0, 0, 0};
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t at = letters.find(kDateParts[i]);
    if (at == std::string_view::npos) continue;
    parts[i] = 0;
    for (const char c : value.substr(at, kDateParts[i].size()))
      parts[i] = parts[i] * 10 + (c - '0');
  }
  const auto [year, month, day, hour, minute, second] = parts;
  const chrono::year_month_day date{chrono::year(year), chrono::month(static_cast<unsigned>(month)),
                                    chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || year < 1678 || year > 2261 || hour > 23 || minute > 59 || second > 59) {
    return std::nullopt;
  }
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", year, month, day, hour, minute, second);
}

Result<PathContext> PathContext::Make(const std::string& format,
                                      const std::vector<std::string>& keys) {
  PathContext context;
  context.text_ = format;
  if (format.empty() && keys.empty()) return context;
  auto parsed = PartitionFormat::Parse(format);
  if (!parsed.ok()) return parsed.error();
  const std::vector<std::string>& names = parsed->names();
  for (const std::string& key : keys.empty() ? names : keys) {
    const auto found = std::find(names.begin(), names.end(), key);
    if (found == names.end()) {
      return BadFormat(format,
                       fmt::format("it does not hold the partition key {}", Printable(key, 256)));
    }
    context.picked_.push_back(static_cast<size_t>(found - names.begin()));
  }
  context.format_ = std::move(*parsed);
  return context;
}

Result<std::string> PathContext::Of(std::string_view path) const {
  if (!format_) return std::string();
  const auto values = format_->Match(path);
  if (!values) {
    return Error{Code::kInvalid,
                 fmt::format("the file {} does not match partitionFormat {}; fix the format, "
                             "narrow pattern, or name the file in exclude",
                             Printable(path, 4096), Printable(text_, 1024))};
  }
  for (size_t i = 0; i < values->size(); ++i) {
    const std::string& letters = format_->dates()[i];
    if (letters.empty() || DateOf(letters, (*values)[i])) continue;
    return Error{Code::kInvalid,
                 fmt::format("the file {}: {} is no date ({} in partitionFormat {}); rename the "
                             "file, or name it in exclude",
                             Printable(path, 4096), Printable((*values)[i], 256),
                             Printable(letters, 256), Printable(text_, 1024))};
  }
  std::string object;
  for (const size_t index : picked_) {
    object += (object.empty() ? '{' : ',') + JsonText(format_->names()[index]) + ':' +
              JsonText((*values)[index]);
  }
  return object + '}';
}

std::string PathContext::Columns() const {
  std::string columns;
  for (size_t i = 0; i < format_->names().size(); ++i) {
    columns += (columns.empty() ? "[{\"name\":" : ",{\"name\":") + JsonText(format_->names()[i]) +
               (format_->dates()[i].empty() ? "}" : ",\"date\":true}");
  }
  return columns + ']';
}

std::string PathContext::Values(std::string_view path) const {
  const auto found = format_->Match(path);
  if (!found) return "[]";  // of no file that Of() took
  std::string values;
  for (size_t i = 0; i < found->size(); ++i) {
    const std::string& letters = format_->dates()[i];
    const std::string_view value = (*found)[i];
    values += (values.empty() ? '[' : ',') +
              JsonText(letters.empty() ? value : DateOf(letters, value).value_or(""));
  }
  return values + ']';
}

}  // namespace parallelrun::plan
