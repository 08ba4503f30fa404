// Inputs and side inputs.
#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "api/fields/bind.h"
#include "api/fields/read.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"
#include "api/text.h"

namespace parallelrun::api::fields {
namespace {

const TabularOptions& Table(const void* input) { return static_cast<const Input*>(input)->tabular; }

void ReadInputName(const Value& value, std::string& out) { ReadPlainName(value, "an input", out); }

void ReadMountPath(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString();
  if (!text) return;
  out = *text;
  if (text->front() != '/' || *text == "/" || text->find(':') != std::string::npos ||
      (*text + "/").find("/../") != std::string::npos) {
    value.Error(Quoted(*text) + " is no place for a folder",
                "write an absolute path without \":\" and \"..\", as in /models");
  }
}

// With the slash at its end that in a store says that it is a prefix: OfKind takes it off
// elsewhere.
void ReadInputPath(const Value& value, std::string& out) {
  std::optional<std::string> path = ReadRelativePath(value);
  if (!path) return;
  if (*path != "." && value.String().value_or("").ends_with('/')) *path += '/';
  out = std::move(*path);
}

void ReadPattern(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString();
  if (!text) return;
  out = *text;
  if (text->front() == '/' || text->find("..") != std::string::npos) {
    value.Error(Quoted(*text) + " leaves the input's path", "write it relative, as in **/*.png");
  } else if (text->find('{') != std::string::npos) {
    value.Error("braces in " + Quoted(*text) + " are not expanded",
                "write *, ?, [abc] and **, or one input for each pattern");
  }
}

void ReadDelimiter(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString();
  if (!text) return;
  out = *text;
  if (IsDelimiter(*text)) return;
  value.Error(Quoted(*text) + " cannot separate columns",
              "write one character, as in \";\" or \"\\t\", or several, as in \"||\": 8 bytes at "
              "most, and no quotation mark or line break");
}

void ReadEncoding(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString(kMostName);
  if (!text) return;
  out = *text;
  const std::string name = Squashed(*text);
  if (name.starts_with("utf16") || name.starts_with("utf32")) {
    value.Error(Quoted(*text) + " cannot be cut into rows by its bytes",
                "convert the files to utf-8");
  }
}

void ReadColumnTypes(const Value& map, std::map<std::string, ColumnType>& types) {
  if (!map.IsMap()) return;
  constexpr size_t kMostColumns = 1000;
  if (map.node.fields.size() > kMostColumns) {
    map.Error("has more than 1,000 columns", "name those whose type is not what is decided");
    return;
  }
  for (const Node::Field& field : map.node.fields) {
    const Value value = map.Within(field.value, JoinPath(map.path, field.key));
    if (const auto type = value.Enum<ColumnType>()) types[field.key] = *type;
  }
}

// Of a comment, or that takes the meaning from what follows it.
void ReadMark(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString();
  if (!text) return;
  const auto byte = static_cast<unsigned char>(text->front());
  const bool good =
      text->size() == 1 && byte > ' ' && byte < 0x7F && std::isalnum(byte) == 0 && *text != "\"";
  if (good) {
    out = *text;
  } else {
    value.Error(Quoted(*text) + " cannot be told from data",
                "write one character that is no letter, digit, blank or quote, as in \"#\"");
  }
}

void ReadQuote(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString();
  if (!text) return;
  out = *text;
  const auto byte = static_cast<unsigned char>(text->front());
  if (*text == "None" || (text->size() == 1 && std::ispunct(byte) != 0 && byte < 0x80)) return;
  value.Error(Quoted(*text) + " cannot be told from data",
              "write one character that is no letter, digit or blank, as in \"'\", or None");
}

void ReadPartitionFormat(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString();
  if (!text) return;
  out = *text;
  size_t keys = 0;
  bool good = true;
  for (size_t at = 0; at < text->size() && good; ++at) {
    if ((*text)[at] == '}') good = false;
    if ((*text)[at] != '{') continue;
    const size_t end = text->find_first_of("{}", at + 1);
    good = end != std::string::npos && (*text)[end] == '}';
    if (end != at + 1) ++keys;  // {} is any text, without a name
    at = good ? end : at;
  }
  if (!good || keys == 0) {
    value.Error(Quoted(*text) + " names no keys",
                "write each key in braces, as in {user}/{season}/{genre}.wav");
  }
}

const Condition kTypesAreDecided = {
    R"(!has(self.typing) || self.typing != "PerMiniBatch")",
    "has no meaning with typing PerMiniBatch: remove it, or typing",
    [](const void* input) { return Table(input).typing == Typing::kOnce; },
    "has no meaning with typing: PerMiniBatch", "remove it, or typing"};

const Condition kIsText = {
    R"(self.format != "Parquet")", "has no meaning for Parquet: remove it",
    [](const void* input) { return Table(input).format != TabularFormat::kParquet; },
    "has no meaning for Parquet", "remove it"};

// That the delimiter, or the one that it is if not given, does not hold the mark: as CEL, and asked
// of what was read.
std::string NotInDelimiter(const std::string& mark) {
  return R"(!(has(self.delimiter) ? self.delimiter : self.format == "TSV" ? "\t" : ",").contains()"
         "self." +
         mark + ")";
}
bool IsNotInDelimiter(const TabularOptions& table, const std::string& mark) {
  const std::string_view initial = table.format == TabularFormat::kTsv ? "\t" : ",";
  const std::string_view delimiter = table.delimiter.empty() ? initial : table.delimiter;
  return delimiter.find(mark) == std::string_view::npos;
}

// No mark is another one, or a part of the delimiter: nobody could tell what it stands for.
const Condition kQuotesOnly = {
    R"(self.quote == "None" || ()" + NotInDelimiter("quote") +
        R"( && (!has(self.comment) || self.comment != self.quote) && )"
        R"((!has(self.escape) || self.escape != self.quote)))",
    "is the comment or the escape too, or in the delimiter: write another one",
    [](const void* input) {
      const TabularOptions& table = Table(input);
      return table.quote == "None" || (IsNotInDelimiter(table, table.quote) &&
                                       table.quote != table.comment && table.quote != table.escape);
    },
    "is the comment or the escape too, or in the delimiter", "write another one"};

const Condition kCommentsOnly = {
    NotInDelimiter("comment") + " && (!has(self.escape) || self.escape != self.comment)",
    "is the escape too, or in the delimiter: write another one",
    [](const void* input) {
      const TabularOptions& table = Table(input);
      return table.comment.empty() ||
             (IsNotInDelimiter(table, table.comment) && table.comment != table.escape);
    },
    "is the escape too, or in the delimiter", "write another one"};

const Condition kEscapesOnly = {
    NotInDelimiter("escape"), "is in the delimiter too: write another one",
    [](const void* input) {
      return Table(input).escape.empty() || IsNotInDelimiter(Table(input), Table(input).escape);
    },
    "is in the delimiter too", "write another one"};

template <typename T, typename... Read>
Field OfTable(std::string name, T TabularOptions::*member, Shape shape, std::string text,
              Read... read) {
  return BoundIn(std::move(name), &Input::tabular, member, std::move(shape), std::move(text),
                 read...);
}

Shape Mark() {
  return Text(kMostText).With(
      {R"(self.matches("^[!#-/:-@\\[-`{-~]$"))",
       "cannot be told from data: write one character that is no letter, digit, "
       R"(blank or quote, as in "#")"});
}

// Which files: the same for every kind of input.
FieldList Source() {
  return {
      BoundIn("volume", &Input::from, &VolumePath::volume, Text(kMostName), "One of spec.volumes."),
      Bound("store", &Input::store, Text(kMostName), "In place of a volume: one of spec.stores."),
      BoundIn(
          "path", &Input::from, &VolumePath::path, Path(),
          "Folder or file, relative to the volume; below the store's URL the key of one object, or "
          "a prefix of keys, which it always is with a slash at its end. All of it if not given.",
          ReadInputPath)
          .Otherwise("all of the volume or store"),
      Bound("pattern", &Input::pattern,
            Text(kMostText)
                .With({R"(!self.startsWith("/") && !self.contains(".."))",
                       "leaves the input's path: write it relative, as in **/*.png"})
                .With({R"(!self.contains("{"))",
                       "braces are not expanded: write *, ?, [abc] and **, or one input for each "
                       "pattern"}),
            "Which files, relative to the path, as **/*.png; every file if not given.", ReadPattern)
          .Otherwise("every file"),
      Bound("exclude", &Input::exclude, ListOf(Text(kMostText), 100, Shape::Merge::kAsSet),
            "Files and folders to leave out; patterns as in pattern."),
  };
}

FieldList FileFields() {
  FieldList fields = Source();
  fields.push_back(
      Bound("access", &Input::access, WordsOf<Access>(),
            "Of an input in a store, what run() gets: paths of files that the node has fetched "
            "(Path, if not given), or the URLs of the objects (Uri).")
          .UnlessInitial());
  return fields;
}

// What plans of before have none of is left out where it is the default.
FieldList TableFields() {
  FieldList fields = Source();
  FieldList more = {
      OfTable("format", &TabularOptions::format, WordsOf<TabularFormat>(),
              "Parquet needs pyarrow in the image.")
          .ServerFills(),
      OfTable("delimiter", &TabularOptions::delimiter,
              Text(kMostText).With(
                  {R"(size(bytes(self)) <= 8 && self.matches("^[^\n\r\"\\x00]+$"))",
                   R"(cannot separate columns: write one character, as in ";" or "\t", or )"
                   R"(several, as in "||": 8 bytes at most, and no quotation mark or line break)"}),
              "One character between columns, or several, 8 bytes at most; a comma, or a tab for "
              "TSV, if not given.",
              ReadDelimiter)
          .Otherwise("a comma, or a tab for TSV")
          .On({&kIsText}),
      OfTable("quote", &TabularOptions::quote,
              Text(kMostText).With(
                  {R"(self == "None" || self.matches("^[!-/:-@\\[-`{-~]$"))",
                   "cannot be told from data: write one character that is no letter, digit or "
                   R"(blank, as in "'", or None)"}),
              "The character that quotes fields; the quotation mark if not given. None says that "
              "fields are not quoted.",
              ReadQuote)
          .Otherwise("the quotation mark")
          .UnlessInitial()
          .On({&kIsText, &kQuotesOnly}),
      OfTable(
          "header", &TabularOptions::header, WordsOf<HeaderMode>(),
          "Which files begin with a line of column names: AllFiles (if not given), FirstFile for "
          "all of them, None for columns named Column1 and so on.")
          .On({&kIsText}),
      OfTable(
          "encoding", &TabularOptions::encoding,
          Text(kMostName).With(
              {R"cel(!self.matches("^[-_ ]*[uU][-_ ]*[tT][-_ ]*[fF][-_ ]*(1[-_ ]*6|3[-_ ]*2)"))cel",
               "cannot be cut into rows by its bytes: convert the files to utf-8"}),
          "Any but UTF-16 and UTF-32; utf-8 if not given.", ReadEncoding)
          .On({&kIsText}),
      OfTable(
          "quotedNewlines", &TabularOptions::quoted_newlines, Boolean(),
          "false says that no field holds a line break, which makes cutting cheaper; true if not "
          "given.")
          .On({&kIsText}),
      OfTable(
          "typing", &TabularOptions::typing, WordsOf<Typing>(),
          "When the types of the columns are decided: Once, before the first mini-batch and for "
          "all of them (if not given), or by each mini-batch for itself.")
          .UnlessInitial(),
      OfTable("dtypes", &TabularOptions::dtypes, MapOf(WordsOf<ColumnType>(), 1000),
              "The types of columns by their names, in place of those that are decided.",
              ReadColumnTypes)
          .Anew()
          .On({&kIsText, &kTypesAreDecided}),
      OfTable("naValues", &TabularOptions::na_values,
              ListOf(AnyText(kMostText), 100, Shape::Merge::kWhole),
              "Texts that stand for a missing value, too.")
          .On({&kIsText, &kTypesAreDecided}),
      OfTable(
          "keepDefaultNa", &TabularOptions::keep_default_na, Boolean(),
          "false says that only naValues stand for a missing value, not the words of pandas too; "
          "true if not given.")
          .UnlessInitial()
          .On({&kIsText, &kTypesAreDecided}),
      OfTable("skipRows", &TabularOptions::skip_rows, Whole(0),
              "Lines at the front of each file that are passed over; 0 if not given.")
          .UnlessInitial()
          .On({&kIsText}),
      OfTable("comment", &TabularOptions::comment, Mark(),
              "One character; from it on, outside of quotes, the rest of a line is left out.",
              ReadMark)
          .On({&kIsText, &kTypesAreDecided, &kCommentsOnly}),
      OfTable("escape", &TabularOptions::escape, Mark(),
              "One character; what follows it is text, whatever it is.", ReadMark)
          .On({&kIsText, &kTypesAreDecided, &kEscapesOnly}),
      OfTable(
          "badRows", &TabularOptions::bad_rows, WordsOf<BadRows>(),
          "What becomes of rows that do not fit the columns: they fail their mini-batch (Fail, if "
          "not given), or are left out, counted as failed items and listed (Skip).")
          .UnlessInitial()
          .Anew()
          .On({&kIsText, &kTypesAreDecided}),
      OfTable(
          "maxFieldSize", &TabularOptions::max_field_size, Size(),
          "Bytes of one field, as 1MB (powers of 1024). A longer one is an error, as is a quote "
          "that is still open at the end of a file; 1MB if not given.")
          .Otherwise("1MB")
          .UnlessInitial()
          .Anew()
          .On({&kIsText}),
  };
  for (Field& field : more) fields.push_back(std::move(field));
  return fields;
}

// An input has one kind, whose fields are those of the input itself.
Field OfKind(InputKind kind, FieldList fields, std::string text, std::vector<CelRule> rules = {}) {
  Shape shape =
      Object(std::move(fields))
          .With({"has(self.volume) || has(self.store)",
                 "is required: write the name of one of spec.volumes, or store with that of one of "
                 "spec.stores",
                 ".volume"})
          .With({"!has(self.volume) || !has(self.store)",
                 "stands beside a store: keep one of the two", ".volume"});
  for (CelRule& rule : rules) shape = std::move(shape).With(std::move(rule));
  return Both<Input>(
      std::string(EnumWord(kind)), shape, std::move(text),
      [kind, below = shape.fields](const Input& input) {
        return input.kind == kind ? WriteFields(*below, &input) : nlohmann::json();
      },
      [kind, below = shape.fields](const Value& value, Input& input, Target target) {
        input.kind = kind;
        ReadObject(value, *below, &input, target);
        if (input.store.empty() && input.from.path.ends_with('/')) input.from.path.pop_back();
      });
}

}  // namespace

const FieldList& InputFields() {
  static const FieldList fields = {
      Bound("name", &Input::name, PlainName("an input"),
            "Name that placeholders and messages give.", ReadInputName)
          .Required(),
      OfKind(
          InputKind::kFiles, FileFields(), "Each file is an item; run() gets paths.",
          {{R"cel(!has(self.access) || self.access != "Uri" || has(self.store))cel",
            "Uri is for inputs in stores: leave it out, run() gets the paths of a volume's files",
            ".access"}}),
      OfKind(InputKind::kTabular, TableFields(), "Each row is an item; run() gets a DataFrame."),
      OfKind(InputKind::kJsonLines, Source(), "Each line is an item; run() gets a list of dict."),
      Bound(
          "partitionFormat", &Input::partition_format,
          Text(kMostText).With(
              {R"(self.matches("^([^{}]|[{][}])*[{][^{}]+[}]([^{}]|[{][^{}]*[}])*$"))",
               "names no keys: write each key in braces, as in "
               "{user}/{season}/{genre}.wav"}),
          "Names parts of each file's path below the input's path, as {user}/{season}/{genre}.wav; "
          "the whole path must match. {} is any part of a name that is no column.",
          ReadPartitionFormat),
      Bound("allowEmpty", &Input::allow_empty, WordsOf<AllowEmpty>(),
            "Whether it may have no item: Never (if not given); Existing, where a file without "
            "rows, or a folder, is there; Missing, also where nothing is, or no file matches, and "
            "in place of an output that has rows.")
          .UnlessInitial()
          .Anew(),
  };
  return fields;
}

const FieldList& SideInputFields() {
  static const FieldList fields = {
      Bound("name", &SideInput::name, PlainName("an input"), "Name that placeholders give.",
            ReadInputName)
          .Required(),
      BoundIn("volume", &SideInput::from, &VolumePath::volume, Text(kMostName),
              "One of spec.volumes."),
      Bound("store", &SideInput::store, Text(kMostName),
            "In place of a volume: one of spec.stores. Each node fetches all of it before init()."),
      BoundIn(
          "path", &SideInput::from, &VolumePath::path, Path(),
          "Folder or file, relative to the volume; below the store's URL the key of one object, or "
          "a prefix of keys, which it always is with a slash at its end. All of it if not given.",
          ReadInputPath)
          .Otherwise("all of the volume or store"),
      Bound("mountPath", &SideInput::mount_path,
            Text(kMostText).With(
                {R"cel(self.matches("^/+[^/:]") && !self.contains(":") && )cel"
                 R"cel(!self.matches("/[.][.](/|$)"))cel",
                 R"(is no place for a folder: write an absolute path without ":" and )"
                 R"("..", as in /models)"}),
            "Where the volume is mounted, absolute; below /mnt if not given.", ReadMountPath)
          .Otherwise("below /mnt")
          .OnlyInCluster(),
  };
  return fields;
}

}  // namespace parallelrun::api::fields
