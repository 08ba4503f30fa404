#include "coordinator/start/start.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <xxhash.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/log.h"
#include "coordinator/last_words.h"
#include "coordinator/log_tree/log_sender.h"
#include "coordinator/log_tree/log_spool.h"
#include "coordinator/log_tree/stored_logs.h"
#include "coordinator/progress.h"
#include "coordinator/start/begin_run.h"
#include "coordinator/start/newest_pod.h"
#include "coordinator/start/object_mount.h"
#include "coordinator/start/output_folder.h"
#include "coordinator/start/output_place.h"
#include "coordinator/start/output_store.h"
#include "coordinator/start/start_server.h"
#include "coordinator/start/state_place.h"
#include "output/side_files.h"
#include "store/answer_tally.h"

namespace parallelrun::coordinator {
namespace {

// Longer than any write takes on a volume that works.
constexpr Duration kThreadsLimit = seconds(30);
constexpr Duration kLastLinesLimit = seconds(2);
constexpr char kOwnLog[] = "sys/master_role.txt";

CoordinatorLimits Limits(const CoordinatorConfig& config, const Opened& opened) {
  const std::string& plan = opened.plan_settings;
  CoordinatorLimits limits;
  limits.spec = config.job.spec;
  limits.first_epoch = opened.first_epoch;
  // Those in force: a control may have changed them, and a run that stays finished keeps its own.
  const auto& settings = opened.state.settings();
  limits.rules = job::RulesOf(settings ? settings->job : opened.job);
  // A pod's end is told (podEnds), with what it means for its mini-batches: they wait for that.
  if (config.in_pod()) limits.broken_grace = limits.lease;
  limits.speculation = config.speculation();
  const SystemClock clock;
  limits.wall_offset = clock.WallNow().time_since_epoch() - clock.Now().time_since_epoch();
  limits.nodes = config.nodes;
  limits.processes = config.processes;
  // Work of one setting is never mixed with another's: see offers in docs/coordinator-api.md.
  limits.settings_digest = XXH3_64bits_withSeed(plan.data(), plan.size(), config.code_digest);
  return limits;
}

// As the workers name them.
std::vector<std::string> ColumnsOf(const api::Output& output) {
  std::vector<std::string> columns = output.columns;
  if (output.provenance && !columns.empty()) {
    for (const char* name : {"_file", "_row", "_minibatch"}) columns.emplace_back(name);
  }
  return columns;
}

// Some thread waits for a volume that hangs, and could be waited for for ever.
[[noreturn]] void LeaveProcess(CoordinatorExit exit) {
  spdlog::error("threads that wait for a volume are left behind: does one hang?");
  (void)EndBackgroundLog(kLastLinesLimit);
  std::_Exit(static_cast<int>(exit));
}

// With the inputs that the user has chosen, and stores whose answers are counted.
Result<JobLayout> LayOutSelection(const CoordinatorConfig& config) {
  Result<JobLayout> layout = LayOut(config.job, config.volumes, config.store_keys);
  if (!layout.ok()) return layout;
  plan::TakeOnly(config.selection, layout->inputs);
  // Whoever lists, signs or publishes asks the same store: the progress tells of it once.
  for (auto& [name, wished] : layout->stores) {
    wished.tally = std::make_shared<store::AnswerTally>();
  }
  return layout;
}

// `writer` is its own.
Result<LogFolder> OpenLogTree(const CoordinatorConfig& config, const JobLayout& layout,
                              Files& files, std::shared_ptr<LogWriter>& writer) {
  if (const Status made = files.MakeFolders(layout.output_folder); !made.ok()) return made.error();
  Result<LogSink> logs = LogSink::Open(files, layout.log_folder);
  if (!logs.ok()) return logs.error();
  const LogFolder folder = logs->folder();
  writer = std::make_shared<LogWriter>(std::move(*logs));
  // `parallelrun run` sends a local coordinator's log there itself.
  if (config.in_pod()) {
    if (const Status made = folder.Append(kOwnLog, ""); !made.ok()) return made.error();
    AlsoLogTo([writer](std::string line) { writer->Append(kOwnLog, std::move(line)); });
  }
  return folder;
}

// False: a newer pod of this job has begun, and the last words say so.
Result<bool> EnterPod(const CoordinatorConfig& config, StatePlace& place, Files& files) {
  const Status entered = EnterAsNewestPod(place.notes(), config.resource_uid, HostName());
  if (entered.ok()) return true;
  if (entered.error().code != Code::kStale) return entered.error();
  spdlog::warn("{}", entered.error().message);
  LeaveLastWords(files, config.termination_message, LastErrorJson(entered.error().message));
  return false;
}

// With SummaryOnly, what the script writes itself; else none. What a person should know of it takes
// the place of `warning`: of a run that begins there is no other.
std::shared_ptr<output::ResultManifest> BeginManifest(const CoordinatorConfig& config,
                                                      const JobLayout& layout, Files& files,
                                                      const ledger::Ledger& ledger,
                                                      bool with_nothing, std::string& warning) {
  if (!layout.output_path.empty() || !layout.output_store.empty()) return nullptr;
  const output::OwnPlaces own = OwnPlacesOf(config, layout);
  auto results = std::make_shared<output::ResultManifest>(
      files, output::ResultManifest::Places{layout.output_folder, layout.state_folder, own},
      ledger.run_id());
  const std::string left = BeginResults(with_nothing, layout, own, files, *results);
  if (!left.empty()) warning = left;
  return results;
}

// Those below the output that its arguments name; the script may do without. Where side files are
// staged each process makes its own.
void MakeFoldersOfScript(const CoordinatorConfig& config, const JobLayout& layout, Files& files) {
  if (layout.stages) return;
  for (const std::string& folder : OwnPlacesOf(config, layout).made) {
    const Status made = files.MakeFolders(folder);
    if (!made.ok()) spdlog::warn("{}", made.error().message);
  }
}

// Where and how side files are brought to their places; nothing where they are not staged.
std::optional<output::StagedOutput> StagedOf(const CoordinatorConfig& config,
                                             const JobLayout& layout, Files& files,
                                             const ledger::Ledger& ledger, OutputPlace& output) {
  if (!layout.stages) return std::nullopt;
  output::StagedOutput staged;
  staged.list_alone = layout.output_path.empty();
  staged.stored = output.StoredSide(ledger);
  if (staged.stored) {
    staged.newest = [&ledger] { return ledger.CheckNewest(); };
    return staged;
  }
  staged.files = &files;
  staged.places = {layout.output_folder, output::StagingNameOf(ledger.run_id()),
                   OwnPlacesOf(config, layout), output::ReservedNames(OutputFileOf(config))};
  staged.newest = [&files, &ledger]() -> Status {
    if (Status newest = ledger.CheckNewest(); !newest.ok()) return newest;
    const Result<bool> there = files.Exists(ledger.token_path());
    if (!there.ok()) return there.error();
    return *there ? Status()
                  : Error{Code::kStale,
                          ledger.token_path() + " is gone: another coordinator has taken over"};
  };
  return staged;
}

// What the logs go to, where they go to a store. Asks nobody yet.
struct LogStores {
  std::unique_ptr<store::WriteStore> store;
  std::unique_ptr<store::Store> listed;
  std::stop_source stop = {};
};

Result<LogStores> OpenLogStores(const JobLayout& layout) {
  LogStores stores;
  if (layout.log_store.empty()) return stores;
  Result<std::unique_ptr<store::WriteStore>> store = OpenLogStore(layout, stores.stop.get_token());
  if (!store.ok()) return store.error();
  Result<std::unique_ptr<store::Store>> listed = OpenLogList(layout, stores.stop.get_token());
  if (!listed.ok()) return listed.error();
  stores.store = std::move(*store);
  stores.listed = std::move(*listed);
  return stores;
}

// What brings them there; none where they stay. Before anybody uploads.
Result<std::shared_ptr<LogSender>> MakeLogSender(const JobLayout& layout, Files& files,
                                                 ledger::StateNotes& notes,
                                                 const ledger::Ledger& ledger, LogStores stores,
                                                 LogWriter& writer) {
  if (!stores.store) return std::shared_ptr<LogSender>();
  const uint64_t run_id = ledger.run_id();
  const Result<std::string> run = StoredLogsName(notes, run_id, SystemClock().WallNow());
  if (!run.ok()) return run.error();
  Result<std::shared_ptr<LogSpool>> spool =
      LogSpool::Open(files, layout.state_folder + "/log_segments", run_id, ledger.epoch());
  if (!spool.ok()) return spool.error();
  writer.KeepSegments(*spool);
  return std::make_shared<LogSender>(
      std::make_unique<StoredLogs>(std::move(stores.store), std::move(stores.listed), *run,
                                   std::move(stores.stop)),
      std::move(*spool));
}

// But for what only Serve has: the warning, the results and the agents' job.
ServerOptions OptionsOf(const CoordinatorConfig& config, const JobLayout& layout, Files& files,
                        const Opened& opened, OutputPlace& output) {
  const api::JobSpec& spec = config.job.spec;
  const std::optional<job::Settings>& settings = opened.state.settings();
  ServerOptions options;
  options.coordinator = Limits(config, opened);
  options.http = config.http;
  options.metrics_http = config.metrics_http;
  options.ownerless_limit = config.ownerless_limit;
  options.key = config.key;
  options.output_folder = layout.output_folder;
  options.sink = output.MakeSink(*opened.ledger, settings ? settings->generation : 0);
  options.publish.order = spec.output.order == api::OutputOrder::kMiniBatch
                              ? output::RowOrder::kMiniBatch
                              : output::RowOrder::kCompletion;
  options.publish.format = spec.output.format;
  options.publish.columns = ColumnsOf(spec.output);
  options.publish.staged = StagedOf(config, layout, files, *opened.ledger, output);
  options.generation = settings ? settings->generation : 0;
  options.give_back = [&output] { return output.GiveBack(); };
  options.put_reports = [&output, &ledger = *opened.ledger,
                         generation = settings ? settings->generation : 0](const LogFolder& logs) {
    return output.PutReports(logs, ledger, generation);
  };
  options.dead_letters = spec.isolate_failures;
  // For people.
  options.state_folder = layout.state_store.empty() ? layout.state_folder : layout.state_url;
  options.ready_file = config.ready_file;
  options.page = config.page;
  options.inputs = layout.inputs;
  options.forbidden = layout.forbidden;
  options.stores = layout.stores;
  options.url_life = config.url_life;
  for (const api::ObjectStore& store : config.job.spec.stores) {
    if (!NodesReadByUrls(config, store)) continue;
    options.signed_stores[store.name] = layout.stores.at(store.name);
  }
  return options;
}

// The epoch has ended as `exit` says. Ends the process where its threads do not end.
void EndThreads(CoordinatorServer& server, LogWriter& writer, const Result<CoordinatorExit>& exit) {
  const CoordinatorExit status = exit.ok() ? *exit : CoordinatorExit::kCannotStart;
  // What it writes for the server first.
  const bool written = writer.Finish(kThreadsLimit);
  const bool ended = server.EndThreads(kThreadsLimit) && written;
  if (!ended && !exit.ok()) spdlog::error("{}", exit.error().message);
  if (!ended) LeaveProcess(status);
  if (!EndBackgroundLog(kLastLinesLimit)) std::_Exit(static_cast<int>(status));
}

// From the first request to the last words of an epoch that is served.
Result<CoordinatorExit> ServeEpoch(const CoordinatorConfig& config, ServerOptions options,
                                   Files& files, Opened& opened, const LogFolder& log_folder,
                                   LogWriter& writer, OutputPlace& output, StatePlace& place) {
  CoordinatorServer server(std::move(options), files, *opened.ledger, opened.state, log_folder,
                           writer);
  LogInBackground();
  Result<CoordinatorExit> exit = server.Run();
  if (exit.ok()) {
    LeaveLastWords(files, config.termination_message,
                   LastWordsJson(server.Progress(), server.ended_because()));
  }
  output.Stop();
  place.Stop();
  EndThreads(server, writer, exit);
  return exit;
}

// `writer` is the one of the log tree, once there is one.
Result<CoordinatorExit> Serve(const CoordinatorConfig& config, Files& files,
                              std::shared_ptr<LogWriter>& writer) {
  Result<JobLayout> layout = LayOutSelection(config);
  if (!layout.ok()) return layout.error();
  if (const auto told = AgentJob(config, *layout); !told.ok()) return told.error();
  if (const Status fit = CheckMounts(*layout); !fit.ok()) return fit.error();
  std::optional<StartServer> starting(
      std::in_place, StartServer::Options{config.http, config.metrics_http, config.key});
  const Result<LogFolder> log_folder = OpenLogTree(config, *layout, files, writer);
  if (!log_folder.ok()) return log_folder.error();
  const Result<std::unique_ptr<StatePlace>> place = OpenState(config, *layout, files);
  if (!place.ok()) return place.error();
  ledger::StateNotes& notes = (*place)->notes();
  if (config.in_pod()) {
    const Result<bool> newest = EnterPod(config, **place, files);
    if (!newest.ok()) return newest.error();
    if (!*newest) return CoordinatorExit::kSuperseded;
  }
  Result<Opened> opened = Claim(config, *layout, **place, *starting);
  if (!opened.ok()) return opened.error();
  const ledger::Ledger& ledger = *opened->ledger;
  const Result<std::unique_ptr<OutputPlace>> output = OpenOutput(config, *layout, files, notes);
  if (!output.ok()) return output.error();
  Result<LogStores> log_stores = OpenLogStores(*layout);
  if (!log_stores.ok()) return log_stores.error();
  const Result<Begun> run =
      BeginRun(config, *layout, *log_folder, files, notes, **output, *starting, *opened);
  if (!run.ok()) return run.error();
  for (plan::PlanInput& input : layout->inputs) input.replaces = run->replaces;
  if (layout->stages) {
    layout->staging_folder = layout->output_folder + "/" + output::StagingNameOf(ledger.run_id());
  }
  if (layout->stages || run->with_nothing) {
    const Status ended = (*output)->EndOtherSideFiles(ledger);
    if (!ended.ok()) spdlog::warn("{}", ended.error().message);
  }
  std::string warning = run->warning;
  const auto results = BeginManifest(config, *layout, files, ledger, run->with_nothing, warning);
  if (!warning.empty()) spdlog::warn("{}", warning);
  MakeFoldersOfScript(config, *layout, files);
  const job::JobCounts& counts = opened->state.counts();
  spdlog::info("epoch {} of run {:016x}, {} mini-batches planned, {} settled", ledger.epoch(),
               ledger.run_id(), counts.planned, counts.succeeded + counts.failed);

  Result<std::string> agent_job = AgentJob(config, *layout, run->side_inputs);
  if (!agent_job.ok()) return agent_job.error();
  Result<std::shared_ptr<LogSender>> log_sender =
      MakeLogSender(*layout, files, notes, ledger, std::move(*log_stores), *writer);
  if (!log_sender.ok()) return log_sender.error();
  ServerOptions options = OptionsOf(config, *layout, files, *opened, **output);
  options.agent_job = std::move(*agent_job);
  options.side_inputs = run->side_inputs;
  options.warning = warning;
  options.results = results;
  options.log_sender = std::move(*log_sender);
  starting.reset();  // it holds the ports
  return ServeEpoch(config, std::move(options), files, *opened, *log_folder, *writer, **output,
                    **place);
}

}  // namespace

Result<CoordinatorExit> RunCoordinator(const CoordinatorConfig& config, Files& files) {
  std::shared_ptr<LogWriter> writer;
  Result<CoordinatorExit> exit = Serve(config, files, writer);
  if (exit.ok()) return exit;
  Error why = exit.error();
  if (config.in_pod() && why.code == Code::kPermission) {
    why.message += fmt::format(
        "; this pod runs as user {} and group {}: let them write to the volume, or name others in "
        "spec.podTemplate.spec.securityContext",
        geteuid(), getegid());
  }
  if (config.in_pod() && why.code == Code::kNoSpace) {
    why.message += "; make room on the volume, then delete the job and apply it again";
  }
  LeaveLastWords(files, config.termination_message, LastErrorJson(why.message));
  if (writer && !writer->Finish(kThreadsLimit)) {
    spdlog::error("{}", why.message);
    LeaveProcess(CoordinatorExit::kCannotStart);
  }
  return why;
}

}  // namespace parallelrun::coordinator
