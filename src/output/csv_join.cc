#include "output/csv_join.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/json.h"

namespace parallelrun::output {
namespace {

constexpr size_t kMostNames = size_t{2} << 20;  // workers write half of that
constexpr size_t kShownNames = 20;
constexpr char kNothing[] = "\"\"";  // a row of one empty field: readers pass over empty lines

Error NotNames() {
  return {Code::kCorrupt, "the rows do not begin with the names of their columns"};
}

std::string Quoted(const std::string& text) {
  if (!text.empty() && text.find_first_of("\",\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string Listed(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kShownNames); ++i) {
    list += (i > 0 ? ", " : "") + names[i];
  }
  return names.size() > kShownNames ? fmt::format("{}, ... ({} in all)", list, names.size()) : list;
}

}  // namespace

Result<std::optional<std::vector<std::string>>> NamedColumns(std::string_view rows) {
  using Columns = std::optional<std::vector<std::string>>;
  const size_t end = rows.find('\n');
  if (end == std::string_view::npos) {
    return rows.size() > kMostNames ? Result<Columns>(NotNames()) : Columns();
  }
  const std::optional<nlohmann::json> list = ParseJson(rows.substr(0, end), 2);
  if (!list || !list->is_array() || list->empty()) return NotNames();
  std::vector<std::string> names;
  for (const nlohmann::json& name : *list) {
    if (!name.is_string()) return NotNames();
    names.push_back(name.get<std::string>());
  }
  return Columns(std::move(names));
}

CsvJoin::CsvJoin(std::vector<std::string> columns) : columns_(std::move(columns)) {}

Status CsvJoin::Begin(const Put& put) {
  std::string header;
  for (size_t i = 0; i < columns_.size(); ++i) header += (i > 0 ? "," : "") + Quoted(columns_[i]);
  return columns_.empty() ? Status() : put(header + '\n');
}

Status CsvJoin::Add(std::string_view rows, bool first, const Put& put) {
  if (first) {
    at_ = At::kNames;
    names_.clear();
  }
  if (at_ == At::kNames) {
    // Most results have the columns of the one before: a look at the bytes tells.
    if (first && !same_names_.empty() && rows.starts_with(same_names_)) {
      at_ = At::kAsTheyAre;
      rows.remove_prefix(same_names_.size());
    } else {
      const size_t before = names_.size();
      names_.append(rows.substr(0, rows.find('\n') + 1));
      if (rows.find('\n') == std::string_view::npos) names_.append(rows);
      const auto named = NamedColumns(names_);
      if (!named.ok()) return named.error();
      if (!*named) return {};
      if (const Status taken = TakeNames(**named); !taken.ok()) return taken;
      rows.remove_prefix(names_.size() - before);
    }
  }
  return at_ == At::kAsTheyAre ? put(rows) : Rearrange(rows, put);
}

Status CsvJoin::End(const Put& /*put*/) { return {}; }

Status CsvJoin::TakeNames(const std::vector<std::string>& names) {
  if (names == columns_) {
    at_ = At::kAsTheyAre;
    same_names_ = names_;
    return {};
  }
  sources_.assign(columns_.size(), std::nullopt);
  for (size_t i = 0; i < names.size(); ++i) {
    const auto column = std::find(columns_.begin(), columns_.end(), names[i]);
    if (column == columns_.end()) {
      return Error{
          Code::kInvalid,
          fmt::format("has the column {}, which the columns of the output lack: {}. It has "
                      "{}. Write output.columns with all that the output is to have",
                      Quoted(names[i]), Listed(columns_), Listed(names))};
    }
    sources_[static_cast<size_t>(column - columns_.begin())] = i;
  }
  at_ = At::kByName;
  width_ = names.size();
  fields_.assign(1, "");
  quoted_ = false;
  return {};
}

// A doubled quotation mark ends and begins the quoted part, which changes nothing here.
Status CsvJoin::Rearrange(std::string_view rows, const Put& put) {
  for (const char c : rows) {
    if (c == '"') quoted_ = !quoted_;
    if (quoted_ || (c != ',' && c != '\n')) {
      fields_.back() += c;
    } else if (c == ',') {
      fields_.emplace_back();
    } else {
      if (fields_.size() != width_) return Error{Code::kCorrupt, "a row of another width"};
      if (const Status written = put(Line()); !written.ok()) return written;
      fields_.assign(1, "");
    }
  }
  return {};
}

std::string CsvJoin::Line() const {
  std::string line;
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (i > 0) line += ',';
    if (sources_[i]) line += fields_[*sources_[i]];
  }
  return (line.empty() ? kNothing : line) + '\n';
}

}  // namespace parallelrun::output
