// Where results, logs and state go.
#include <algorithm>

#include "api/fields/bind.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"
#include "api/text.h"

namespace parallelrun::fields {
namespace {

void ReadFileName(const Value& value, std::string& out) {
  constexpr std::string_view kForbidden = "~\"#%&*:<>?/\\{|}";
  const auto text = value.NonEmptyString();
  if (!text) return;
  out = *text;
  const bool control = std::any_of(text->begin(), text->end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (text->find_first_of(kForbidden) != std::string::npos || *text == "." || *text == ".." ||
      text->size() > 200 || control) {
    value.Error(Quoted(*text) + " cannot name the output file",
                "write a name without " + std::string(kForbidden) +
                    ", at most 200 bytes; the folder goes into output.path");
  }
}

}  // namespace

const FieldList& OutputFields() {
  static const FieldList fields = {
      BoundIn("volume", &Output::to, &VolumePath::volume, Text(63),
              "One of spec.volumes; also holds logs and state.")
          .Required("write the name of one of spec.volumes"),
      BoundIn("path", &Output::to, &VolumePath::path, Path(),
              "Folder of the output, relative to the volume; NAME/output if not given.")
          .Otherwise("NAME/output"),
      Bound("action", &Output::action, WordsOf<OutputAction>(),
            "AppendRow: all rows in one file. SummaryOnly: the script writes its own, rows are "
            "counted.")
          .ServerFills(),
      Bound(
          "fileName", &Output::file_name,
          Text(200).With(
              {R"cel(!self.matches("[~\"#%&*:<>?/\\\\{|}\\x00-\\x1f]") && )cel"
               R"cel(!self.matches("^[.][.]?$") && size(bytes(self)) <= 200)cel",
               R"(cannot name the output file: write a name without ~"#%&*:<>?/\{|}, at most 200 )"
               "bytes; the folder goes into output.path"}),
          "Name of the output file, at most 200 bytes.", ReadFileName)
          .ServerFills(),
      Bound("format", &Output::format, WordsOf<OutputFormat>(),
            "text: rows as str() has them (if not given). jsonl: each row as JSON on a line of its "
            "own.")
          .UnlessInitial(),
      Bound("nanAsNull", &Output::nan_as_null, Boolean(),
            "With format jsonl, numbers that JSON does not have (NaN, infinite ones) become null; "
            "if not given, they fail their mini-batch.")
          .UnlessInitial(),
      Bound("order", &Output::order, WordsOf<OutputOrder>(),
            "MiniBatch: the order of the input. Completion: the order in which mini-batches ended.")
          .ServerFills(),
      Bound(
          "ifExists", &Output::if_exists, WordsOf<IfExists>(),
          "What to do with an earlier run of this job: Fail refuses to start; Resume continues it, "
          "which for a finished one changes nothing; Overwrite starts over; RetryFailed continues "
          "it, "
          "and runs what failed in a finished one again.")
          .ServerFills(),
      Bound("mountOnNodes", &Output::mount_on_nodes, Boolean(),
            "false: only the coordinator gets the output's volume.")
          .ServerFills(),
  };
  return fields;
}

const FieldList& LogFields() {
  static const FieldList fields = {
      Bound("volume", &VolumePath::volume, Text(63), "One of spec.volumes.")
          .Otherwise("the output's"),
      Bound("path", &VolumePath::path, Path(), "Folder, relative to the volume.")
          .Otherwise("NAME/logs"),
  };
  return fields;
}

const FieldList& StateFields() {
  static const FieldList fields = {
      BoundIn("volume", &StateOptions::in, &VolumePath::volume, Text(63), "One of spec.volumes.")
          .Otherwise("the output's"),
      BoundIn("path", &StateOptions::in, &VolumePath::path, Path(),
              "Folder, relative to the volume.")
          .Otherwise("NAME/state"),
      Bound("ephemeral", &StateOptions::ephemeral, Boolean(),
            "true: the state is lost with the coordinator's pod, and so is a resume.")
          .UnlessInitial(),
  };
  return fields;
}

}  // namespace parallelrun::fields
