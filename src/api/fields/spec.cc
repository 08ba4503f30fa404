// The fields of spec itself.
#include "api/fields/bind.h"
#include "api/fields/read.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"
#include "api/parse_parts.h"

namespace parallelrun::api::fields {
namespace {

using nlohmann::json;

json WriteCode(const JobSpec& spec) {
  const CodeSource& code = spec.code;
  switch (code.kind) {
    case CodeKind::kJobFolder: return nullptr;
    case CodeKind::kConfigMap: return {{"configMap", {{"name", code.name}}}};
    case CodeKind::kVolume: return {{"volume", code.name}, {"path", code.path}};
    case CodeKind::kImage: return {{"image", {{"path", code.path}}}};
    case CodeKind::kFolder: return {{"path", code.path}};
  }
  return nullptr;
}

json WriteVolumes(const JobSpec& spec) {
  json list;
  for (const Volume& volume : spec.volumes) {
    if (volume.name == kStateVolume) continue;  // follows from the state
    json& written = list.emplace_back(json{{"name", volume.name}});
    if (!volume.kind.empty()) written[volume.kind] = volume.source;
  }
  return list;
}

// An object of the spec with fields of its own.
template <typename T>
Field Section(std::string name, T JobSpec::*member, const FieldList& fields, std::string text) {
  const Shape shape = Object(fields);
  return Both<JobSpec>(
      std::move(name), shape, std::move(text),
      [member, below = shape.fields](const JobSpec& spec) {
        return WriteFields(*below, &(spec.*member));
      },
      [member, below = shape.fields](const Value& map, JobSpec& spec, Target target) {
        ReadObject(map, *below, &(spec.*member), target);
      });
}

// A list of such objects, which server-side apply merges by their names. `read` takes it and the
// spec: names are compared.
template <typename T, typename Read>
Field Sections(std::string name, std::vector<T> JobSpec::*member, size_t most, const Shape& shape,
               std::string text, Read read) {
  return Both<JobSpec>(
      std::move(name), ListOf(shape, most, Shape::Merge::kByName), std::move(text),
      [member, below = shape.fields](const JobSpec& spec) {
        json list;
        for (const T& one : spec.*member) list.push_back(WriteFields(*below, &one));
        return list;
      },
      [read](const Value& list, JobSpec& spec, Target target) { read(list, spec, target); });
}

template <typename T, typename... Read>
Field Of(std::string name, T JobSpec::*member, Shape shape, std::string text, Read... read) {
  return Bound(std::move(name), member, std::move(shape), std::move(text), read...);
}

// What is read with a look at the rest of the spec.
template <typename Write>
Field Own(std::string name, Shape shape, std::string text, Write write,
          void (*read)(const Value&, JobSpec&)) {
  return Both<JobSpec>(std::move(name), std::move(shape), std::move(text), write,
                       [read](const Value& value, JobSpec& spec, Target) { read(value, spec); });
}

Shape StateShape() {
  return Object(StateFields())
      .With({"!(has(self.ephemeral) && self.ephemeral && (has(self.volume) || has(self.path)))",
             "ephemeral state lies on no volume: remove volume and path, or ephemeral"})
      .With({"!has(self.volumeClaimTemplate) || (!has(self.volume) || self.volume == \"" +
                 std::string(kStateVolume) + "\") && !(has(self.ephemeral) && self.ephemeral)",
             "stands beside a volume or ephemeral: keep one of the three", ".volumeClaimTemplate"})
      .With({"!has(self.store) || (!has(self.volume) || self.volume == \"" +
                 std::string(kStateVolume) +
                 "\") && !has(self.volumeClaimTemplate) && !(has(self.ephemeral) && "
                 "self.ephemeral)",
             "stands beside a volume, a claim or ephemeral: keep one of them", ".store"});
}

Shape InputShape() {
  return Object(InputFields())
      .With({"[has(self.files), has(self.tabular), has(self.jsonLines)].exists_one(x, x)",
             "has no kind or several: write exactly one of files, tabular and jsonLines"})
      .With({"!has(self.manifest) || has(self.files)",
             "names files, and the items here are their rows: write files, or leave it out",
             ".manifest"})
      .With({"!has(self.manifest) || !has(self.files) || (!has(self.files.pattern) && "
             "!has(self.files.exclude))",
             "stands beside a pattern or an exclude, which choose from a listing: keep one of them",
             ".manifest"})
      .With({"!has(self.manifest) || !has(self.partitionFormat)",
             "stands beside a partitionFormat: keep one of them", ".manifest"})
      .With({"!has(self.manifest) || !has(self.manifest.etagColumn) || !has(self.files) || "
             "has(self.files.store)",
             "stands beside a volume, whose files have no ETag: write sizeColumn, or leave it out",
             ".manifest.etagColumn"})
      .With({"!has(self.manifest) || (!has(self.manifest.sizeColumn) && "
             "!has(self.manifest.etagColumn)) || !has(self.files) || !has(self.files.access) || "
             "self.files.access != \"Uri\"",
             "has columns of sizes or ETags beside access: Uri, with which nobody but run() reads "
             "the objects: leave them out, run() is told all columns",
             ".manifest"});
}

Shape SideInputShape() {
  return Object(SideInputFields())
      .With({"has(self.volume) || has(self.store)",
             "is required: write the name of one of spec.volumes, or store with that of one of "
             "spec.stores",
             ".volume"})
      .With({"!has(self.volume) || !has(self.store)", "stands beside a store: keep one of the two",
             ".volume"})
      .With({"!has(self.mountPath) || !has(self.store)",
             "is where a volume is mounted, and what lies in a store is fetched: leave it out, "
             "$(sideInputs.NAME) says where it is",
             ".mountPath"});
}

Shape EntryScript() {
  const std::string mend =
      ": write a file (score.py), a path (src/score.py) or a module (scoring.main) inside the code";
  return AnyText(1024)
      .With({"size(self) > 0", "must not be empty"})
      .With({R"(!self.startsWith("/"))", "is absolute" + mend})
      .With({R"cel(self.matches("^/|^$") || (self.endsWith(".py") ? )cel"
             R"cel(!self.matches("(^|/)([.][.])?(/|$)") : )cel"
             R"cel(self.matches("^[^\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]+)cel"
             R"cel(([.][^\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]+)*$")))cel",
             "is no Python file or module" + mend});
}

// What is run, where.
FieldList Script() {
  return {
      Of("entryScript", &JobSpec::entry_script, EntryScript(),
         "The Python file with run(): a file (score.py), a path (src/score.py) or a module "
         "(scoring.main) inside the code.",
         ReadEntryScript)
          .Required("write the file with run(), as in score.py")
          .ToldToNodes("entryScript")
          .In(kWorker),
      Both<JobSpec>(
          "code", CodeShape(),
          "Where the entry script and what it imports come from: exactly one of "
          "configMap, volume (with path) and image. `parallelrun submit` packs a local "
          "folder into a ConfigMap. Every node works on a copy of its own.",
          WriteCode,
          [](const Value& map, JobSpec& spec, Target target) { ReadCode(map, target, spec.code); })
          .RequiredInCluster("write code: {configMap: {name: NAME}}, or a volume or an image")
          .In(kCommand | kOperator | kWorker),
      Of("arguments", &JobSpec::arguments, ListOf(AnyText(4096), 100),
         "Arguments of the script. $(inputs.NAME), $(sideInputs.NAME) and $(output) stand for "
         "folders. "
         "Numbers and booleans are quoted: \"0.5\".",
         ReadArguments)
          .In(kWorker),
      Section("environment", &JobSpec::environment, EnvironmentFields(),
              "The container that the script runs in.")
          .RequiredInCluster("write environment: {image: IMAGE}")
          .In(kCommand | kOperator),
  };
}

// What it reads and writes.
FieldList Data() {
  return {
      Own("volumes", ListOf(VolumeShape(), 64, Shape::Merge::kByName),
          "Kubernetes volumes, mounted at /mnt/NAME in the coordinator and in every "
          "node. Each has exactly one source.",
          WriteVolumes, ReadVolumes)
          .In(kCommand | kOperator | kCoordinator | kWorker),
      Sections(
          "stores", &JobSpec::stores, kMaxInputs, Object(StoreFields()),
          "Buckets of S3, or of servers that speak its protocol, that inputs or the output lie "
          "in; containers of Azure Blob Storage, for inputs.",
          ReadStores)
          .In(kCommand | kCoordinator | kWorker | kOperator),
      Section("cache", &JobSpec::cache, CacheFields(),
              "The objects of stores that a node keeps while its script reads them.")
          .UnlessInitial()
          .In(kWorker),
      Of("rankMiniBatchCount", &JobSpec::rank_mini_batch_count, Whole(0),
         "Above 0, that many mini-batches without input; 0 if not given.")
          .In(kCoordinator),
      Sections("inputs", &JobSpec::inputs, kMaxInputs, InputShape(),
               "The data, cut into mini-batches. All inputs are of one kind: files, tabular or "
               "jsonLines. Required unless rankMiniBatchCount is set.",
               ReadInputs)
          .In(kCoordinator | kWorker),
      Sections("sideInputs", &JobSpec::side_inputs, kMaxInputs, SideInputShape(),
               "Data that every node only reads whole, such as a model.", ReadSideInputs)
          .In(kOperator | kCoordinator | kWorker),
      Section("output", &JobSpec::output, OutputFields(),
              "Where the result goes. The output file appears whole, when the job has succeeded.")
          .Required("write output: {volume: VOLUME}, or {store: STORE}")
          .In(kCoordinator | kOperator | kWorker),
      Section("logs", &JobSpec::logs, LogFields(),
              "Where the log tree goes; NAME/logs on the output's volume if not given.")
          .Otherwise("NAME/logs on the output's volume")
          .In(kCoordinator),
      Both<JobSpec>(
          "state", StateShape(),
          "Where the ledger goes, which a resume needs; NAME/state on the output's volume if not "
          "given.",
          [](const JobSpec& spec) { return WriteFields(StateFields(), &spec.state); },
          [](const Value& map, JobSpec& spec, Target) { ReadState(map, spec.state); })
          .Otherwise("NAME/state on the output's volume")
          .In(kCoordinator | kOperator),
  };
}

// The pods, and what each gets.
FieldList Nodes() {
  return {
      Of("nodeCount", &JobSpec::node_count, Whole(0),
         "Nodes (pods) that work on the job. May change while it runs, as by `kubectl scale`.")
          .ServerFills()
          .Changes(Change::kAnyTime)
          .OnlyInCluster()
          .In(kOperator | kCoordinator),
      Of("processCountPerNode", &JobSpec::process_count_per_node, Whole(1),
         "Worker processes of a node. If not given: its GPUs, else its CPU limit, else its CPU "
         "request "
         "rounded up, else 1.")
          .Otherwise("the node's GPUs, else its CPU limit, else its CPU request rounded up, else 1")
          .In(kWorker),
      Of("processesPerGpu", &JobSpec::processes_per_gpu, Whole(1),
         "Worker processes of a node that share one of its GPUs, on purpose: its memory has to "
         "hold all of them; 1 if not given.")
          .UnlessInitial()
          .ToldToNodes("processesPerGpu")
          .In(kWorker),
      Of("resources", &JobSpec::resources, ResourcesShape(),
         "What each node gets, shared by its worker processes.",
         [](const Value& map, json& out) { out = ReadResources(map); })
          .Changes(Change::kWhileSuspended)
          .In(kOperator | kWorker),
      Of("sharedMemory", &JobSpec::shared_memory, Quantity(), "Size of /dev/shm of a node, as 2Gi.",
         [](const Value& value, std::optional<uint64_t>& out) {
           const auto bytes = ReadQuantity(value, 1);
           if (bytes) out = static_cast<uint64_t>(*bytes);
         })
          .In(kOperator),
      Of("disruption", &JobSpec::disruption, WordsOf<Disruption>(),
         "Whether an autoscaler of the cluster may end the pods to give up their hosts: Avoid "
         "tells Cluster Autoscaler and Karpenter not to; Allow if not given. A drain does not "
         "ask; with Budget it waits for the end of the job where the coordinator is.")
          .UnlessInitial()
          .In(kOperator),
      Of("podTemplate", &JobSpec::pod_template, PodTemplateShape(),
         "Merged into all pods of the job; its values win, except for what makes a pod this job's. "
         "Like resources, it may change only while the job is suspended.",
         [](const Value& map, json& out) { out = ReadPodTemplate(map); })
          .Changes(Change::kWhileSuspended)
          .In(kOperator),
      Section("coordinator", &JobSpec::coordinator, CoordinatorFields(),
              "The pod that hands out the mini-batches and writes the output.")
          .In(kOperator | kCommand),
  };
}

// How the input is cut.
FieldList MiniBatches() {
  return {
      Of("partitionKeys", &JobSpec::partition_keys, ListOf(Text(63), 32, Shape::Merge::kAsSet, 1),
         "Keys of partitionFormat: all files with the same values are one mini-batch. They win "
         "over "
         "miniBatchSize.",
         ReadPartitionKeys)
          .In(kCoordinator),
      // With partitionKeys it decides nothing: a job must not differ by it.
      Own(
          "miniBatchSize", Size(),
          "What one run() gets: a number of files or lines, or bytes of a table, as 1MB "
          "(powers of 1024). 10 files or lines, or 1MB, if not given.",
          [](const JobSpec& spec) {
            return spec.partition_keys.empty() ? Said(spec.mini_batch_size) : json();
          },
          ReadMiniBatchSize)
          .Otherwise("10 files or lines, or 1MB of a table")
          .In(kCoordinator),
  };
}

FieldList LifeCycle() {
  return {
      Of("cancel", &JobSpec::cancel,
         Boolean().With(
             {"!oldSelf || self",
              "cannot be taken back: give the job another name, or delete it and create it "
              "anew, with output.ifExists: Resume to continue"}),
         "true ends the job as Failed with reason Canceled; logs and state are kept. It cannot be "
         "taken back.")
          .ServerFills()
          .Changes(Change::kOnlyOn)
          .OnlyInCluster()
          .In(kOperator | kCoordinator),
      Of("suspend", &JobSpec::suspend, Boolean(),
         "true removes the pods and keeps what is finished; false continues.")
          .ServerFills()
          .Changes(Change::kAnyTime)
          .In(kOperator),
      Of("onOutputTaken", &JobSpec::on_output_taken, WordsOf<OnOutputTaken>(),
         "What the job does while another one that is not over publishes to its output: Wait for "
         "the end of that one, or Fail at once; Wait if not given.")
          .UnlessInitial()
          .In(kOperator),
      Of("activeDeadlineSeconds", &JobSpec::active_deadline, Whole(1),
         "The job fails when it has been active for so long; time suspended does not count.")
          .Changes(Change::kAnyTime)
          .In(kOperator),
      Of("ttlSecondsAfterFinished", &JobSpec::ttl_after_finished, Whole(0),
         "So long after the end the job's pods, Secret, Service and other objects go; the job and "
         "its output stay.")
          .Changes(Change::kAnyTime)
          .In(kOperator),
      Of("startupDeadlineSeconds", &JobSpec::startup_deadline, Whole(1),
         "The job fails when its first node is not ready by then.")
          .In(kOperator),
      Of("deleteAfterFinished", &JobSpec::delete_after_finished, Boolean(),
         "true: ttlSecondsAfterFinished deletes the job too. Output, logs and ledger stay.")
          .ServerFills()
          .In(kOperator),
      Of("managedBy", &JobSpec::managed_by,
         AnyText(63).With({R"(self.matches("^[^/]+/."))",
                           "does not name a controller: write a domain and a name, such as "
                           "kueue.x-k8s.io/multikueue, at most 63 characters"}),
         "Another controller that manages the job, as kueue.x-k8s.io/multikueue.", ReadManagedBy)
          .In(kOperator),
  };
}

FieldList Watching() {
  return {
      Of("loggingLevel", &JobSpec::logging_level, WordsOf<LoggingLevel>(),
         "Level of Python's logging in the script.")
          .ServerFills()
          .ToldToNodes("loggingLevel")
          .In(kWorker),
      Of("profiling", &JobSpec::profiling, WordsOf<Profiling>(),
         "Profiler of the worker processes; None if not given.")
          .ToldToWorkers("profiling")
          .In(kWorker),
      Of("resourceMonitorIntervalSeconds", &JobSpec::resource_monitor_interval, Whole(0),
         "How often each node logs its use of CPU, memory and GPUs; 600 if not given, 0 for never.")
          .ToldToNodes("resourceMonitorIntervalSeconds")
          .In(kWorker),
  };
}

}  // namespace

const FieldList& SpecFields() {
  static const FieldList all = [] {
    FieldList fields;
    for (FieldList part :
         {Script(), Data(), Nodes(), MiniBatches(), FailureRuleFields(), LifeCycle(), Watching()}) {
      for (Field& field : part) fields.push_back(std::move(field));
    }
    return fields;
  }();
  return all;
}

}  // namespace parallelrun::api::fields
