// The rules that concern several fields of a job.
#include <algorithm>

#include "api/arguments.h"
#include "api/check_parts.h"
#include "api/devices.h"
#include "api/parse_parts.h"
#include "api/processes.h"
#include "base/count_of.h"

namespace parallelrun::api {
namespace {

class Checker {
 public:
  Checker(const Job& job, Target target, const PlaceholderForms& placeholders, Problems& problems)
      : spec_(job.spec), target_(target), placeholders_(placeholders), problems_(problems) {}

  void Check() {
    CheckInputs();
    CheckStores();
    CheckVolumes(spec_, target_, problems_);
    CheckState();
    CheckPartitions();
    CheckColumns();
    CheckPlaceholders();
    CheckDevices();
  }

 private:
  bool HasProblem(const std::string& field) const { return HasProblemBelow(problems_, field); }

  void CheckInputs() {
    if (spec_.inputs.empty() && spec_.rank_mini_batch_count == 0 && !HasProblem("spec.inputs")) {
      AddError(problems_, "spec.inputs", "is required",
               "write at least one input, or rankMiniBatchCount for mini-batches without input");
    }
    for (size_t i = 1; i < spec_.inputs.size(); ++i) {
      if (spec_.inputs[i].kind == spec_.inputs[0].kind || HasProblem("spec.inputs[")) continue;
      AddError(
          problems_, InputPath(spec_, i),
          "is of another kind than spec.inputs[0]." + std::string(EnumWord(spec_.inputs[0].kind)),
          "make all inputs of one kind; what each node only reads is a side input");
    }
  }

  // "a" may be one object, and "a/" is what lies below: whose the files there are would be known
  // only once the store is asked.
  void CheckPrefix(size_t i) {
    const Input& input = spec_.inputs[i];
    for (size_t j = 0; j < i; ++j) {
      const Input& other = spec_.inputs[j];
      const bool whole = input.pattern.empty() && other.pattern.empty();
      if (other.store != input.store || !whole) continue;
      if (other.from.path + "/" != input.from.path && input.from.path + "/" != other.from.path) {
        continue;
      }
      AddError(problems_, InputPath(spec_, i) + ".path",
               "differs from that of spec.inputs[" + std::to_string(j) +
                   "] in the / at its end alone, and that one may be a prefix too",
               "give one of them a store of its own, or leave it out");
    }
  }

  // An input lies on a volume or in a store.
  void CheckStores() {
    for (size_t i = 0; i < spec_.stores.size(); ++i) {
      const ObjectStore& store = spec_.stores[i];
      if (store.url.empty() || store.url.starts_with("s3://")) continue;
      const std::string field = "spec.stores[" + std::to_string(i) + "]";
      if (!store.credentials.secret_name.empty()) {
        AddError(problems_, field + ".credentials", "are keys of S3, and the store is Azure's",
                 "leave them out: the pods' workload identity counts");
      }
      if (store.node_credentials) {
        AddError(problems_, field + ".nodeCredentials", "is of S3, and the store is Azure's",
                 "leave it out: nodes read it by their own identity");
      }
      if (store.encryption) {
        AddError(problems_, field + ".encryption", "is of S3, and the store is Azure's",
                 "leave it out");
      }
      if (!store.region.empty() || store.path_style) {
        AddError(problems_, field, "has a region or a pathStyle, which buckets of S3 have",
                 "leave them out");
      }
    }
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      const Input& input = spec_.inputs[i];
      const std::string field = InputPath(spec_, i);
      if (HasProblem(JoinPath("spec.inputs", i))) continue;
      CheckOnePlace(input.from.volume, input.store, field);
      if (input.from.volume.empty() && !input.store.empty()) CheckPrefix(i);
      if (input.access == Access::kUri && input.store.empty()) {
        AddError(problems_, field + ".access", "Uri is for inputs in stores",
                 "leave it out, run() gets the paths of a volume's files");
      }
    }
    CheckManifests();
    CheckSideInputs();
    if (!HasProblem("spec.output")) {
      CheckOutputStore();
      CheckSideFiles();
    }
    if (!HasProblem("spec.logs")) CheckLogStore();
  }

  void CheckManifests() {
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      const Input& input = spec_.inputs[i];
      const std::string field = JoinPath("spec.inputs", i);
      if (!input.manifest || HasProblem(field)) continue;
      if (input.kind != InputKind::kFiles) {
        AddError(problems_, field + ".manifest", "names files, and the items here are their rows",
                 "write files, or leave it out");
      } else if (!input.pattern.empty() || !input.exclude.empty()) {
        AddError(problems_, field + ".manifest",
                 "stands beside a pattern or an exclude, which choose from a listing",
                 "keep one of them");
      } else if (!input.partition_format.empty()) {
        AddError(problems_, field + ".manifest", "stands beside a partitionFormat",
                 "keep one of them");
      } else {
        CheckPins(input, field + ".manifest");
        CheckFormat(*input.manifest, field + ".manifest");
      }
    }
  }

  void CheckPins(const Input& input, const std::string& field) {
    const bool sizes = !input.manifest->size_column.empty();
    const bool etags = !input.manifest->etag_column.empty();
    if (etags && input.store.empty()) {
      AddError(problems_, field + ".etagColumn", "stands beside a volume, whose files have no ETag",
               "write sizeColumn, or leave it out");
    }
    if ((!sizes && !etags) || input.access != Access::kUri) return;
    AddError(problems_, field,
             "has columns of sizes or ETags beside access: Uri, with which nobody but run() reads "
             "the objects",
             "leave them out, run() is told all columns");
  }

  // Else each row would be a path that is not there.
  void CheckFormat(const Manifest& manifest, const std::string& field) {
    if (manifest.format != ManifestFormat::kText) return;
    std::string_view name = manifest.path;
    for (const std::string_view packed : {".gz", ".zst"}) {
      if (name.ends_with(packed)) name.remove_suffix(packed.size());
    }
    const bool rows = name.ends_with(".csv");
    if (!rows && !name.ends_with(".jsonl") && !name.ends_with(".ndjson")) return;
    AddWarning(problems_, field + ".path",
               Quoted(manifest.path) + " is read as a text, whose lines are paths",
               std::string("write format: ") + (rows ? "CSV" : "JSONLines") +
                   ", or give a text another name");
  }

  void CheckSideInputs() {
    for (size_t i = 0; i < spec_.side_inputs.size(); ++i) {
      const SideInput& side = spec_.side_inputs[i];
      const std::string field = JoinPath("spec.sideInputs", i);
      if (HasProblem(field)) continue;
      CheckOnePlace(side.from.volume, side.store, field);
      if (side.store.empty() || side.mount_path.empty()) continue;
      AddError(problems_, field + ".mountPath",
               "is where a volume is mounted, and what lies in a store is fetched",
               "leave it out, $(sideInputs." + side.name + ") says where it is");
    }
  }

  // It lies on a volume, or in a store that the job has.
  void CheckOnePlace(const std::string& volume, const std::string& store,
                     const std::string& field) {
    if (volume.empty() != store.empty()) {
      if (!store.empty()) CheckStore(store, field + ".store");
      return;
    }
    AddError(problems_, field + ".volume", store.empty() ? "is required" : "stands beside a store",
             store.empty() ? "write the name of one of spec.volumes, or store with that of one of "
                             "spec.stores"
                           : "keep one of the two");
  }

  // A prefix of keys in a form in which two names of one are the same; "" for an unknown store.
  std::string InStore(const std::string& name, const std::string& path) const {
    for (const ObjectStore& store : spec_.stores) {
      if (store.name != name) continue;
      std::string url = store.url;
      while (url.ends_with('/')) url.pop_back();
      url += "/";
      if (path != ".") url += path;
      return store.endpoint + " " + url + (url.ends_with('/') ? "" : "/");
    }
    return "";
  }

  void CheckWrittenStore(const std::string& name, const std::string& field) {
    CheckStore(name, field);
    for (const ObjectStore& store : spec_.stores) {
      if (store.name != name || store.url.starts_with("s3://")) continue;
      AddError(problems_, field, "of Azure Blob Storage only inputs are read",
               "write a store of S3, or a volume");
    }
  }

  // A listing of a run that goes on would meet what lies there.
  void CheckNotInInput(const std::string& store, const std::string& path, const std::string& what,
                       const std::string& field) {
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      const Input& input = spec_.inputs[i];
      if (input.store.empty() || !input.pattern.empty()) continue;
      const std::string from = InStore(input.store, input.from.path);
      if (from.empty() || !InStore(store, path).starts_with(from)) continue;
      AddError(problems_, field, what + " is inside the input " + Quoted(input.name), kOutside);
    }
  }

  void CheckLogStore() {
    const Logs& logs = spec_.logs;
    if (logs.store.empty()) return;
    if (!logs.to.volume.empty()) {
      AddError(problems_, "spec.logs.volume", "stands beside a store", "keep one of the two");
    }
    CheckWrittenStore(logs.store, "spec.logs.store");
    CheckNotInInput(logs.store, logs.to.path, "the log folder", "spec.logs.path");
  }

  void CheckOutputStore() {
    const Output& output = spec_.output;
    if (output.to.volume.empty() == output.store.empty()) {
      AddError(problems_, "spec.output.volume",
               output.store.empty() ? "is required" : "stands beside a store",
               output.store.empty() ? "write the name of one of spec.volumes, or store with that "
                                      "of one of spec.stores"
                                    : "keep one of the two");
    }
    if (output.store.empty()) return;
    CheckWrittenStore(output.store, "spec.output.store");
    if (spec_.state.ephemeral) {
      AddError(problems_, "spec.state.ephemeral",
               "an output in a store is ended and given back by what the state holds",
               "remove it: without a volume the state lies on a claim that the operator makes");
    }
    CheckNotInInput(output.store, output.to.path, "the output", "spec.output.path");
    if (output.side_files == SideFiles::kStaged) return;
    if (output.action == OutputAction::kSummaryOnly) {
      AddError(problems_, "spec.output.action",
               "SummaryOnly leaves files, which go to a store with sideFiles: Staged",
               "write that beside it, or AppendRow, or a volume in place of the store");
    }
    for (const std::string& argument : spec_.arguments) {
      if (!NamesOutput(argument, placeholders_)) continue;
      AddError(problems_, "spec.arguments",
               "$(output) is a folder for the script, whose files go to a store with "
               "output.sideFiles: Staged",
               "write that, leave $(output) out, or write a volume in place of output.store");
      break;
    }
  }

  void CheckSideFiles() {
    const Output& output = spec_.output;
    if (output.side_files != SideFiles::kStaged) return;
    if (!output.mount_on_nodes) {
      AddError(problems_, "spec.output.sideFiles",
               "nodes write side files, and this output is not mounted there",
               "remove mountOnNodes, or sideFiles");
    }
  }

  void CheckStore(const std::string& name, const std::string& field) {
    std::vector<std::string> names;
    for (const ObjectStore& store : spec_.stores) names.push_back(store.name);
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    AddError(problems_, field, "there is no store " + Quoted(name),
             names.empty() ? "add it to spec.stores" : "write " + OrList(names));
  }

  void CheckStateStore() {
    const StateOptions& state = spec_.state;
    if (state.store.empty()) return;
    CheckWrittenStore(state.store, "spec.state.store");
    CheckNotInInput(state.store, state.in.path, "the state", "spec.state.path");
    if (!spec_.output.store.empty()) return;
    AddError(problems_, "spec.state.store", "is for an output in a store",
             "write output.store too, or a volume");
  }

  void CheckState() {
    CheckStateStore();
    if (!spec_.state.ephemeral) return;
    if (spec_.suspend && target_ == Target::kCluster) {
      AddError(problems_, "spec.suspend", "a job with ephemeral state would start anew after it",
               "remove state.ephemeral, so that the state lies on the output's volume");
    }
    const IfExists if_exists = spec_.output.if_exists;
    if (if_exists == IfExists::kResume || if_exists == IfExists::kRetryFailed) {
      AddError(problems_, "spec.output.ifExists",
               "there is no state to resume from when it is ephemeral",
               "remove state.ephemeral, or write Overwrite");
    }
  }

  static std::vector<std::string> KeysOf(const std::string& format) {
    std::vector<std::string> keys;
    for (size_t at = format.find('{'); at != std::string::npos; at = format.find('{', at + 1)) {
      const size_t end = format.find_first_of("}:", at);
      if (end == std::string::npos || end == at + 1) continue;  // {} has no name
      keys.push_back(format.substr(at + 1, end - at - 1));
    }
    return keys;
  }

  void CheckColumns() {
    const Output& output = spec_.output;
    if (HasProblem("spec.output")) return;
    const bool table =
        output.format == OutputFormat::kCsv || output.format == OutputFormat::kParquet;
    if (!output.columns.empty() && !table) {
      AddError(problems_, "spec.output.columns", "are those of a table",
               "write format: csv or format: parquet beside it, or remove it");
    }
    if (output.provenance && output.format == OutputFormat::kText) {
      AddError(problems_, "spec.output.provenance", "needs rows that have names",
               "write format: csv, jsonl or parquet beside it, or remove it");
    }
  }

  void CheckDevices() {
    const std::string field = "spec.processCountPerNode";
    const Devices devices = DevicesOf(spec_);
    if (!spec_.process_count_per_node || devices.count == 0 || HasProblem(field)) return;
    const int32_t most = ProcessesOnDevices(spec_);
    if (*spec_.process_count_per_node <= most) return;
    const int32_t each = spec_.processes_per_gpu;
    AddWarning(problems_, field,
               "is " + std::to_string(*spec_.process_count_per_node) + ", and a node has " +
                   CountOf(static_cast<uint64_t>(devices.count), "device") + " (" + devices.names +
                   ")" + (each > 1 ? " for " + std::to_string(each) + " processes each" : "") +
                   ": processes beyond that get none of their own, and see them all",
               "write " + std::to_string(most) +
                   ", share them out on purpose by a higher processesPerGpu, or have the script "
                   "choose which one it uses");
  }

  void CheckPartitions() {
    if (spec_.partition_keys.empty()) return;
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      const std::string& format = spec_.inputs[i].partition_format;
      const std::string field = JoinPath("spec.inputs", i) + ".partitionFormat";
      if (HasProblem(field)) continue;
      if (format.empty()) {
        AddError(problems_, field, "is required with partitionKeys",
                 "write where the keys stand in the path, as in {user}/{season}/{genre}.wav");
        continue;
      }
      const std::vector<std::string> keys = KeysOf(format);
      for (size_t k = 0; k < spec_.partition_keys.size(); ++k) {
        const std::string& key = spec_.partition_keys[k];
        if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
        AddError(problems_, JoinPath("spec.partitionKeys", k),
                 Quoted(key) + " is not a key of " + field, "write " + OrList(keys));
      }
    }
  }

  void CheckPlaceholders() {
    const std::vector<std::string> names = PlaceholderNames(spec_);
    for (size_t i = 0; i < spec_.arguments.size(); ++i) {
      for (const std::string& unknown :
           UnknownPlaceholders(spec_.arguments[i], names, placeholders_)) {
        AddError(
            problems_, JoinPath("spec.arguments", i), "unknown placeholder " + Quoted(unknown),
            "write one of " + PlaceholderList(names) + ", or $" + unknown + " for the text itself");
      }
    }
  }

  const JobSpec& spec_;
  const Target target_;
  const PlaceholderForms& placeholders_;
  Problems& problems_;
};

}  // namespace

std::string InputPath(const JobSpec& spec, size_t i) {
  return JoinPath(JoinPath("spec.inputs", i), EnumWord(spec.inputs[i].kind));
}

bool HasProblemBelow(const Problems& problems, const std::string& field) {
  return std::any_of(problems.begin(), problems.end(),
                     [&](const Problem& problem) { return problem.field.starts_with(field); });
}

void CheckJob(const Job& job, Target target, const PlaceholderForms& placeholders,
              Problems& problems) {
  Checker(job, target, placeholders, problems).Check();
}

}  // namespace parallelrun::api
