// Where results, logs and state go.
#include <algorithm>

#include "api/fields/bind.h"
#include "api/fields/read.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"
#include "api/text.h"

namespace parallelrun::api::fields {
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

// Of a claim that the operator makes; Kubernetes judges what stands in it.
Field StateClaim() {
  constexpr size_t kMostOfAnnotation = 32768;
  const Shape storage = Object({Carried("storage", Quantity(), "How large it is, as 1Gi.")
                                    .Required("write how large it is to be, as in storage: 1Gi")});
  const Shape resources = Object({Carried("requests", storage, "What it is to have at least.")
                                      .Required("write requests: {storage: 1Gi}")});
  const Shape spec = Object(
      {Carried("storageClassName", AnyText(kMostObjectName),
               "Its StorageClass; the cluster's default if not given."),
       Carried("accessModes",
               ListOf(Words({"ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"}), 3),
               "How it can be mounted; ReadWriteOnce if not given. Only the coordinator does."),
       Carried("resources", resources, "How large it is.")
           .Required("write resources: {requests: {storage: 1Gi}}")});
  const Shape shape = Object(
      {Carried(
           "metadata",
           Object({Carried("labels", MapOf(AnyText(kMostObjectName), 64), "Labels."),
                   Carried("annotations", MapOf(AnyText(kMostOfAnnotation), 64), "Annotations.")}),
           "Labels and annotations of the claim."),
       Carried("spec", spec, "As of a PersistentVolumeClaim.")
           .Required("write spec: {resources: {requests: {storage: 1Gi}}}")});
  return Bound("volumeClaimTemplate", &StateOptions::claim_template, shape,
               "In place of a volume or a store: the operator makes this claim, which is deleted "
               "with "
               "the job. Beside an output in a store, logs lie on it too, if they name no volume.",
               [shape](const Value& value, nlohmann::json& out) {
                 CheckShape(value, shape);
                 out = WithoutNulls(value.node);
               })
      .OnlyInCluster()
      .UnlessInitial();
}

}  // namespace

const FieldList& OutputFields() {
  static const FieldList fields = {
      BoundIn("volume", &Output::to, &VolumePath::volume, Text(63),
              "One of spec.volumes; also holds logs and state."),
      Bound("store", &Output::store, Text(63),
            "In place of a volume: one of spec.stores. Logs and state then lie there too, if they "
            "name no volume."),
      BoundIn("path", &Output::to, &VolumePath::path, Path(),
              "Folder of the output, relative to the volume, or prefix of its key; NAME/output if "
              "not given.")
          .Otherwise("NAME/output"),
      Bound("action", &Output::action, WordsOf<OutputAction>(),
            "AppendRow: all rows in one file. SummaryOnly: the script writes its own, rows are "
            "counted.")
          .ToldToNodes("outputAction")
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
      Bound(
          "format", &Output::format, WordsOf<OutputFormat>(),
          "text: rows as str() has them (if not given). jsonl: each row as JSON on a line of its "
          "own. csv: the names of the columns once, then the values of each row. parquet: a table "
          "with types.")
          .ToldToWorkers("outputFormat")
          .UnlessInitial(),
      Bound("columns", &Output::columns, ListOf(Text(1000), 1000, Shape::Merge::kAsSet),
            "With format csv or parquet, the columns of the output in their order; if not given, "
            "those of the first mini-batch that has rows.")
          .ToldToWorkers("outputColumns"),
      Bound("nanAsNull", &Output::nan_as_null, Boolean(),
            "With format jsonl, numbers that JSON does not have (NaN, infinite ones) become null; "
            "if not given, they fail their mini-batch. The same with csv and parquet inside of a "
            "dict "
            "or list.")
          .ToldToWorkers("nanAsNull")
          .UnlessInitial(),
      Bound(
          "provenance", &Output::provenance, Boolean(),
          "With format jsonl, csv or parquet, each row also has _file, _row and _minibatch, which "
          "say where it comes from.")
          .ToldToWorkers("provenance")
          .UnlessInitial(),
      Bound("sideFiles", &Output::side_files, WordsOf<SideFiles>(),
            "Direct: what the script writes below $(output) is there at once (if not given). "
            "Staged: it is there when the job has succeeded, and only what attempts that count "
            "have written.")
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
          .OnlyInCluster()
          .ServerFills(),
  };
  return fields;
}

const FieldList& LogFields() {
  static const FieldList fields = {
      BoundIn("volume", &Logs::to, &VolumePath::volume, Text(63), "One of spec.volumes.")
          .Otherwise("the output's"),
      Bound("store", &Logs::store, Text(63),
            "In place of a volume: one of spec.stores. Each run of the job has a prefix of its own "
            "there, below path."),
      BoundIn("path", &Logs::to, &VolumePath::path, Path(),
              "Folder, relative to the volume, or prefix of keys below the store's URL.")
          .Otherwise("NAME/logs"),
  };
  return fields;
}

const FieldList& StateFields() {
  static const FieldList fields = {
      BoundIn("volume", &StateOptions::in, &VolumePath::volume, Text(63), "One of spec.volumes.")
          .Otherwise("the output's"),
      Bound("store", &StateOptions::store, Text(63),
            "In place of a volume, with an output in a store: one of spec.stores. The ledger lies "
            "there, below path in a folder of the job's own."),
      BoundIn("path", &StateOptions::in, &VolumePath::path, Path(),
              "Folder, relative to the volume, or prefix of keys below the store's URL.")
          .Otherwise("NAME/state"),
      Bound("ephemeral", &StateOptions::ephemeral, Boolean(),
            "true: the state is lost with the coordinator's pod, and so is a resume.")
          .OnlyInCluster()
          .UnlessInitial(),
      StateClaim(),
  };
  return fields;
}

}  // namespace parallelrun::api::fields
