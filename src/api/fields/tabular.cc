// What tables are: how they are read, and the types of their columns.
#include <cctype>
#include <map>
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

}  // namespace

// What plans of before have none of is left out where it is the default.
const FieldList& TabularFields() {
  static const FieldList fields = {
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
  return fields;
}

}  // namespace parallelrun::api::fields
