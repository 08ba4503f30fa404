// Where results, logs and state go.
#include "api/fields/bind.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"

namespace parallelrun::fields {

const FieldList& OutputFields() {
  static const FieldList fields = {
      Bound("volume", &Output::to, &VolumePath::volume, Text(63),
            "One of spec.volumes; also holds logs and state.")
          .Required(),
      Bound("path", &Output::to, &VolumePath::path, Path(),
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
          "Name of the output file, at most 200 bytes.")
          .ServerFills(),
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
      Bound("volume", &StateOptions::in, &VolumePath::volume, Text(63), "One of spec.volumes.")
          .Otherwise("the output's"),
      Bound("path", &StateOptions::in, &VolumePath::path, Path(), "Folder, relative to the volume.")
          .Otherwise("NAME/state"),
      Bound("ephemeral", &StateOptions::ephemeral, Boolean(),
            "true: the state is lost with the coordinator's pod, and so is a resume.")
          .UnlessInitial(),
  };
  return fields;
}

}  // namespace parallelrun::fields
