#include "azure/convert/mltable.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "api/block_yaml.h"
#include "api/document.h"
#include "api/job.h"
#include "api/text.h"
#include "azure/convert/common.h"
#include "azure/fill_in.h"

namespace parallelrun::azure {
namespace {

namespace fs = std::filesystem;

constexpr char kFileName[] = "MLTable";

std::vector<std::string> Split(const std::string& path) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::path(path)) {
    if (!part.empty() && part != ".") parts.push_back(part.string());
  }
  return parts;
}

std::string Join(const std::vector<std::string>& parts, size_t begin, size_t end) {
  std::string path;
  for (size_t i = begin; i < end; ++i) path += (path.empty() ? "" : "/") + parts[i];
  return path;
}

bool IsWild(const std::string& part) { return part.find_first_of("*?[") != std::string::npos; }

std::string EncodingWord(const std::string& encoding) {
  static const std::map<std::string, std::string> kWords = {
      {"utf8", "utf-8"},   {"iso88591", "iso-8859-1"}, {"latin1", "latin-1"},
      {"ascii", "ascii"},  {"utf8bom", "utf-8-sig"},   {"windows1252", "cp1252"},
      {"utf16", "utf-16"}, {"utf32", "utf-32"},
  };
  const auto found = kWords.find(api::Squashed(encoding));
  return found != kWords.end() ? found->second : encoding;
}

class TableReader {
 public:
  TableReader(const std::string& field, Draft& draft)
      : field_(api::JoinPath(field, kFileName)), draft_(draft) {}

  MLTable Read(const api::Node& root) {
    Section top(&root, field_, draft_);
    ReadTransformations(top.Take("transformations"));
    KeepTypes();
    ReadPaths(top.Take("paths"));
    top.Pass({"$schema", "type", "name", "version", "description", "tags", "metadata"});
    top.Finish();
    return std::move(table_);
  }

 private:
  void ReadPaths(const api::Node* paths) {
    if (paths == nullptr || paths->kind != api::Node::Kind::kList || paths->items.empty()) {
      draft_.Lose(field_, "names no paths", "write path and pattern of spec.inputs[0]");
      return;
    }
    if (paths->items.size() > api::kMaxInputs) {
      draft_.Lose(
          field_,
          fmt::format("names more than {} paths, which is what a job may have of inputs",
                      api::kMaxInputs),
          fmt::format(
              "put the files below one folder, or into a few patterns: the first {} are here",
              api::kMaxInputs));
    }
    for (const api::Node& item : paths->items) {
      if (table_.places.size() == api::kMaxInputs) return;
      if (item.kind != api::Node::Kind::kMap) continue;
      for (const api::Node::Field& one : item.fields) AddPlace(one.key, one.value.text);
    }
  }

  void AddPlace(const std::string& kind, const std::string& written) {
    if (kind != "file" && kind != "folder" && kind != "pattern") {
      draft_.Lose(api::JoinPath(field_, "paths"),
                  api::Quoted(kind) + " is none of file, folder and pattern",
                  "write path and pattern of an input for it");
      return;
    }
    const bool elsewhere = IsElsewhere(written);
    std::vector<std::string> parts =
        Split(elsewhere ? PathInStorage(written) : fs::path(written).lexically_normal().string());
    if (elsewhere) {
      draft_.Lose(api::JoinPath(field_, "paths"), api::Quoted(written) + " is a place in the cloud",
                  "fill in a volume that has it, and check path and pattern");
    } else if (!parts.empty() && (parts[0] == ".." || parts[0] == "/")) {
      draft_.Lose(api::JoinPath(field_, "paths"),
                  api::Quoted(written) + " is outside of the MLTable's folder",
                  "let the volume be the folder that holds it, and check path and pattern");
      std::erase_if(parts, [](const std::string& part) { return part == ".." || part == "/"; });
    }
    const auto wild = std::find_if(parts.begin(), parts.end(), IsWild);
    const auto literal = static_cast<size_t>(wild - parts.begin());
    size_t root = parts.size();
    if (kind == "pattern" || (kind == "file" && !elsewhere && literal == parts.size())) {
      root = RootOf(parts, std::min(literal, parts.size() - 1), elsewhere);
    }
    const std::string path = Join(parts, 0, root);
    table_.places.push_back({.path = path.empty() ? "." : path,
                             .pattern = Join(parts, root, parts.size()),
                             .written = written});
  }

  // How many of `parts`, the first `literal` of which have no wildcard, are the input's path: the
  // partition format speaks of what is below it. `${{inputs.x}}` is the folder of the MLTable, so
  // that is the path where nothing else asks for one.
  size_t RootOf(const std::vector<std::string>& parts, size_t literal, bool elsewhere) {
    std::string& format = table_.partition_format;
    if (format.empty()) return elsewhere ? literal : 0;
    if (std::find(parts.begin(), parts.end(), "**") != parts.end()) return literal;
    // Of folders alone, as /year={y}/month={m}: ours speaks of the whole path, the name included.
    const bool folders = format.find('=') != std::string::npos &&
                         parts.back().find('=') == std::string::npos &&
                         format.rfind('=') > format.rfind('/') + 1;
    if (folders && !format.ends_with("/{file}")) format += "/{}";
    const auto levels = static_cast<size_t>(std::count(format.begin(), format.end(), '/')) + 1;
    return parts.size() > levels ? std::min(parts.size() - levels, literal) : 0;
  }

  void ReadTransformations(const api::Node* list) {
    if (list == nullptr || list->kind != api::Node::Kind::kList) return;
    for (const api::Node& item : list->items) {
      if (IsScalar(item)) {
        ReadOne(item.text, nullptr);
      } else if (item.kind == api::Node::Kind::kMap) {
        for (const api::Node::Field& one : item.fields) ReadOne(one.key, &one.value);
      }
    }
  }

  void ReadOne(const std::string& name, const api::Node* value) {
    const std::string field = api::JoinPath(field_, name);
    if (name == "extract_columns_from_partition_format") return ReadFormat(value, field);
    if (name == "convert_column_types") return ReadTypes(value, field);
    const bool options = value != nullptr && value->kind == api::Node::Kind::kMap;
    Section section(options ? value : nullptr, field, draft_);
    if (name == "read_delimited") {
      ReadDelimited(section);
    } else if (name == "read_parquet" || name == "read_delta_lake") {
      table_.kind = api::InputKind::kTabular;
      Set("format", "Parquet");
      if (name == "read_delta_lake") {
        draft_.Lose(field, "the files of a Delta table hold rows that were removed from it",
                    "export the table to parquet files first");
        return;
      }
    } else if (name == "read_json_lines") {
      table_.kind = api::InputKind::kJsonLines;
      draft_.Lose(field, "run() gets a list of dict, not a DataFrame",
                  "begin run() with pandas.DataFrame(mini_batch)");
      section.Pass({"encoding", "invalid_lines"});
    } else {
      draft_.Lose(field, "tables are read as they are", "do it at the beginning of run()");
      return;
    }
    if (section.True("include_path_column")) {
      draft_.Lose(section.PathOf("include_path_column"), "a row has no column with its file's path",
                  "write partitionFormat of the input: its keys are columns");
    }
    section.Pass({"infer_column_types", "partition_size", "path_column", "support_multi_line"});
    section.Finish();
  }

  void ReadDelimited(Section& section) {
    table_.kind = api::InputKind::kTabular;
    const std::string encoding = EncodingWord(section.Text("encoding"));
    const bool in_utf8 = ReadDelimiter(section, encoding);
    const std::string plain = api::Squashed(encoding);
    if (plain.starts_with("utf16") || plain.starts_with("utf32")) {
      draft_.Lose(section.PathOf("encoding"), api::Quoted(encoding) + " cannot be cut into rows",
                  "convert the files to utf-8");
    } else if (!encoding.empty() && encoding != "utf-8" && !in_utf8) {
      Set("encoding", api::QuotedYaml(encoding));
    }
    ReadHeader(section);
    if (section.True("empty_as_string")) {
      draft_.Lose(section.PathOf("empty_as_string"), "an empty cell is a missing value",
                  "write keepDefaultNa: false in spec.inputs[0].tabular, or use fillna(\"\")");
    }
    if (const api::Node* const infer = section.Take("infer_column_types");
        infer != nullptr && IsScalar(*infer) && !IsTrueWord(infer->text)) {
      draft_.Lose(section.PathOf("infer_column_types"), "the types of columns are decided",
                  "write dtypes: {COLUMN: text} in spec.inputs[0].tabular");
    }
  }

  // True: for its sake the files are to be converted to UTF-8. One that no job takes is left open:
  // with none at all the table would be read by commas.
  bool ReadDelimiter(Section& section, const std::string& encoding) {
    std::string delimiter = section.Text("delimiter");
    if (delimiter == "\\t") delimiter = "\t";  // in single quotes
    if (delimiter.empty() || delimiter == ",") return false;
    const std::string field = section.PathOf("delimiter");
    if (!api::IsDelimiter(delimiter)) {
      draft_.Lose(field, api::Quoted(delimiter) + " cannot separate columns here",
                  fmt::format("write another one into the files, of {} bytes at most and without a "
                              "quotation mark or a line break, and fill it in",
                              api::kMostDelimiter));
      Set("delimiter", api::QuotedYaml(kFillIn));
      return false;
    }
    Set("delimiter", api::QuotedYaml(delimiter));
    const bool ascii =
        std::all_of(delimiter.begin(), delimiter.end(), [](unsigned char c) { return c < 0x80; });
    static const std::set<std::string> kUtf8 = {"", "utf8", "utf8sig", "ascii"};
    if (ascii || kUtf8.contains(api::Squashed(encoding))) return false;
    draft_.Lose(field,
                fmt::format("{} has other bytes in {} than in utf-8, in which it is looked for",
                            api::Quoted(delimiter), api::Quoted(encoding)),
                "convert the files to utf-8");
    return true;
  }

  void ReadHeader(Section& section) {
    const std::string header = api::Squashed(section.Text("header"));
    const std::string field = section.PathOf("header");
    if (header == "noheader") {
      Set("header", "None");
    } else if (header == "fromfirstfile") {
      Set("header", "FirstFile");
    } else if (header == "allfilesdifferentheaders") {
      draft_.Lose(field, "the files of an input have the same columns",
                  "write one input, or one job, for each kind of file");
    } else if (!header.empty() && header != "allfilessameheaders") {
      draft_.Lose(field, api::Quoted(header) + " is not known",
                  "write header of spec.inputs[0].tabular");
    }
  }

  void ReadFormat(const api::Node* value, const std::string& field) {
    const api::Node* text = value;
    if (value != nullptr && value->kind == api::Node::Kind::kMap)
      text = value->Find("partition_format");
    if (text == nullptr || !IsScalar(*text) || text->text.empty()) {
      return draft_.Lose(field, "names no format", "write partitionFormat of the input");
    }
    table_.partition_format = text->text.substr(text->text.starts_with('/') ? 1 : 0);
  }

  // {columns: [a, b], column_type: int}, or a list of such.
  void ReadTypes(const api::Node* value, const std::string& field) {
    static const std::map<std::string, std::string> kTypes = {
        {"int", "integer"}, {"float", "number"}, {"string", "text"}, {"boolean", "boolean"}};
    if (value == nullptr) return;
    if (value->kind == api::Node::Kind::kList) {
      for (const api::Node& item : value->items) ReadTypes(&item, field);
      return;
    }
    const api::Node* const columns =
        value->kind == api::Node::Kind::kMap ? value->Find("columns") : nullptr;
    const api::Node* const type =
        value->kind == api::Node::Kind::kMap ? value->Find("column_type") : nullptr;
    const auto known = type != nullptr ? kTypes.find(type->text) : kTypes.end();
    if (columns == nullptr || known == kTypes.end()) {
      return draft_.Lose(field, "columns are integer, number, boolean or text",
                         "convert them at the beginning of run()");
    }
    std::vector<api::Node> names = columns->items;
    if (IsScalar(*columns)) names.push_back(*columns);
    for (const api::Node& name : names) types_[name.text] = known->second;
  }

  void KeepTypes() {
    if (types_.empty()) return;
    const bool parquet = std::any_of(table_.tabular.begin(), table_.tabular.end(),
                                     [](const auto& one) { return one.first == "format"; });
    if (table_.kind == api::InputKind::kTabular && !parquet) {
      std::string types;
      for (const auto& [name, type] : types_) {
        types += fmt::format("{}{}: {}", types.empty() ? "" : ", ", api::QuotedYaml(name), type);
      }
      Set("dtypes", "{" + types + "}");
    } else {
      draft_.Lose(api::JoinPath(field_, "convert_column_types"),
                  "these files say their types themselves",
                  "convert them at the beginning of run()");
    }
  }

  void Set(const std::string& name, const std::string& value) {
    for (auto& [known, old] : table_.tabular) {
      if (known == name) {
        old = value;
        return;
      }
    }
    table_.tabular.emplace_back(name, value);
  }

  std::string field_;
  Draft& draft_;
  MLTable table_;
  std::map<std::string, std::string> types_;  // by the names of their columns
};

// Whether "MLTable" could be one of the files.
bool MayHoldIt(const DraftData& data) {
  const std::string last = data.pattern.substr(data.pattern.rfind('/') + 1);
  return last.find('.') == std::string::npos;
}

}  // namespace

std::optional<MLTable> ReadMLTable(std::string_view text, const std::string& field, Draft& draft) {
  const api::Document document = api::ReadForeignDocument(text, api::PlainScalars::kTexts);
  if (document.job.kind == api::Node::Kind::kMap && !api::HasErrors(document.problems)) {
    return TableReader(field, draft).Read(document.job);
  }
  const api::Problem first = document.problems.empty()
                                 ? api::Problem{.what = "it holds no map of fields"}
                                 : document.problems.front();
  draft.Lose(field, "the MLTable cannot be read: " + first.what, first.mend);
  return std::nullopt;
}

std::optional<MLTable> FindMLTable(const AzureInput& input, const ConvertOptions& options,
                                   Draft& draft) {
  if (input.path.empty() || IsElsewhere(input.path) || !options.read) return std::nullopt;
  const fs::path path = fs::path(input.path).lexically_normal();
  const fs::path file = path.filename() == kFileName ? path : path / kFileName;
  const Result<std::string> text = options.read(file.string());
  if (!text.ok()) return std::nullopt;
  return ReadMLTable(*text, input.field, draft);
}

std::vector<DraftData> InputsOf(const std::optional<MLTable>& table, const DraftData& data,
                                bool of_table) {
  std::vector<DraftData> inputs;
  const std::vector<MLTable::Place> all = {{.path = data.path}};
  const bool named = table && !table->places.empty();
  for (const MLTable::Place& place : named ? table->places : all) {
    DraftData one = data;
    one.path = place.path;
    one.pattern = place.pattern;
    if (!place.written.empty()) one.comment += ": " + place.written;
    // The table lies here, what it names does not.
    if (IsElsewhere(place.written)) one.folder.clear();
    if (table) one.partition_format = table->partition_format;
    if (of_table && MayHoldIt(one)) one.exclude = {std::string("**/") + kFileName};
    if (!inputs.empty()) {
      one.name += "-" + std::to_string(inputs.size() + 1);
      one.volume_of = data.name;
    }
    inputs.push_back(std::move(one));
  }
  return inputs;
}

}  // namespace parallelrun::azure
