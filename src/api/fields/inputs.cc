// Inputs and side inputs.
#include "api/fields/bind.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"

namespace parallelrun::fields {
namespace {

constexpr size_t kName = 63;
constexpr size_t kText = 1024;

const TabularOptions& Table(const void* input) { return static_cast<const Input*>(input)->tabular; }

const Condition kTypesAreDecided = {
    R"(!has(self.typing) || self.typing != "PerMiniBatch")",
    "has no meaning with typing PerMiniBatch: remove it, or typing",
    [](const void* input) { return Table(input).typing == Typing::kOnce; }};

const Condition kIsText = {
    R"(self.format != "Parquet")", "has no meaning for Parquet: remove it",
    [](const void* input) { return Table(input).format != TabularFormat::kParquet; }};

template <typename T>
Field OfTable(std::string name, T TabularOptions::*member, Shape shape, std::string text) {
  return Bound(std::move(name), &Input::tabular, member, std::move(shape), std::move(text));
}

Shape Mark() {
  return Text(kText).With(
      {R"(self.matches("^[!#-/:-@\\[-`{-~]$"))",
       "cannot be told from data: write one character that is no letter, digit, "
       R"(blank or quote, as in "#")"});
}

// Which files: the same for every kind of input.
FieldList Source() {
  return {
      Bound("volume", &Input::from, &VolumePath::volume, Text(kName), "One of spec.volumes.")
          .Required(),
      Bound("path", &Input::from, &VolumePath::path, Path(),
            "Folder or file, relative to the volume; all of it if not given.")
          .Otherwise("the volume's root"),
      Bound("pattern", &Input::pattern,
            Text(kText)
                .With({R"(!self.startsWith("/") && !self.contains(".."))",
                       "leaves the input's path: write it relative, as in **/*.png"})
                .With({R"(!self.contains("{"))",
                       "braces are not expanded: write *, ?, [abc] and **, or one input for each "
                       "pattern"}),
            "Which files, relative to the path, as **/*.png; every file if not given.")
          .Otherwise("every file"),
      Bound("exclude", &Input::exclude, ListOf(Text(kText), 100, Shape::Merge::kAsSet),
            "Files and folders to leave out; patterns as in pattern."),
  };
}

// What plans of before have none of is left out where it is the default.
FieldList TableFields() {
  FieldList fields = Source();
  FieldList more = {
      OfTable("format", &TabularOptions::format, WordsOf<TabularFormat>(),
              "Parquet needs pyarrow in the image.")
          .ServerFills(),
      OfTable(
          "delimiter", &TabularOptions::delimiter,
          Text(kText).With({R"(self.matches("^[^\n\r\"\x80-\U0010ffff]$"))",
                            R"(cannot separate columns: write one character, as in ";" or "\t")"}),
          "One character between columns; a comma, or a tab for TSV, if not given.")
          .Otherwise("a comma, or a tab for TSV")
          .On({&kIsText}),
      OfTable(
          "header", &TabularOptions::header, WordsOf<HeaderMode>(),
          "Which files begin with a line of column names: AllFiles (if not given), FirstFile for "
          "all of them, None for columns named Column1 and so on.")
          .On({&kIsText}),
      OfTable(
          "encoding", &TabularOptions::encoding,
          Text(kName).With(
              {R"cel(!self.matches("^[-_ ]*[uU][-_ ]*[tT][-_ ]*[fF][-_ ]*(1[-_ ]*6|3[-_ ]*2)"))cel",
               "cannot be cut into rows by its bytes: convert the files to utf-8"}),
          "Any but UTF-16 and UTF-32; utf-8 if not given.")
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
              "The types of columns by their names, in place of those that are decided.")
          .On({&kIsText, &kTypesAreDecided}),
      OfTable("naValues", &TabularOptions::na_values,
              ListOf(AnyText(kText), 100, Shape::Merge::kWhole),
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
              "One character; from it on, outside of quotes, the rest of a line is left out.")
          .On({&kIsText, &kTypesAreDecided}),
      OfTable("escape", &TabularOptions::escape, Mark(),
              "One character; what follows it is text, whatever it is.")
          .On({&kIsText, &kTypesAreDecided}),
      OfTable(
          "badRows", &TabularOptions::bad_rows, WordsOf<BadRows>(),
          "What becomes of rows that do not fit the columns: they fail their mini-batch (Fail, if "
          "not given), or are left out, counted as failed items and listed (Skip).")
          .UnlessInitial()
          .On({&kIsText, &kTypesAreDecided}),
  };
  for (Field& field : more) fields.push_back(std::move(field));
  return fields;
}

// An input has one kind, whose fields are those of the input itself.
Field OfKind(InputKind kind, FieldList fields, std::string text) {
  const Shape shape = Object(std::move(fields));
  return Written<Input>(std::string(EnumWord(kind)), shape, std::move(text),
                        [kind, below = shape.fields](const Input& input) {
                          return input.kind == kind ? WriteFields(*below, &input)
                                                    : nlohmann::json();
                        });
}

}  // namespace

const FieldList& InputFields() {
  static const FieldList fields = {
      Bound("name", &Input::name, InputName(), "Name that placeholders and messages give.")
          .Required(),
      OfKind(InputKind::kFiles, Source(), "Each file is an item; run() gets paths."),
      OfKind(InputKind::kTabular, TableFields(), "Each row is an item; run() gets a DataFrame."),
      OfKind(InputKind::kJsonLines, Source(), "Each line is an item; run() gets a list of dict."),
      Bound(
          "partitionFormat", &Input::partition_format,
          Text(kText).With({R"(self.matches("^[^{}]*([{][^{}]+[}][^{}]*)+$"))",
                            "names no keys: write each key in braces, as in "
                            "{user}/{season}/{genre}.wav"}),
          "Names parts of each file's path below the input's path, as {user}/{season}/{genre}.wav; "
          "the whole path must match."),
  };
  return fields;
}

const FieldList& SideInputFields() {
  static const FieldList fields = {
      Bound("name", &SideInput::name, InputName(), "Name that placeholders give.").Required(),
      Bound("volume", &SideInput::from, &VolumePath::volume, Text(kName), "One of spec.volumes.")
          .Required(),
      Bound("path", &SideInput::from, &VolumePath::path, Path(),
            "Folder or file, relative to the volume; all of it if not given.")
          .Otherwise("the volume's root"),
      Bound("mountPath", &SideInput::mount_path,
            Text(kText).With({R"cel(self.matches("^/+[^/:]") && !self.contains(":") && )cel"
                              R"cel(!self.matches("/[.][.](/|$)"))cel",
                              R"(is no place for a folder: write an absolute path without ":" and )"
                              R"("..", as in /models)"}),
            "Where it is mounted, absolute; below /mnt if not given.")
          .Otherwise("below /mnt"),
  };
  return fields;
}

}  // namespace parallelrun::fields
