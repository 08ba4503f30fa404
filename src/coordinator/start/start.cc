#include "coordinator/start/start.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "api/arguments.h"
#include "api/output_address.h"
#include "api/settings.h"
#include "api/to_json.h"
#include "base/count_of.h"
#include "base/log.h"
#include "base/random.h"
#include "coordinator/last_words.h"
#include "coordinator/log_tree/previous_logs.h"
#include "coordinator/progress.h"
#include "coordinator/start/earlier_run.h"
#include "coordinator/start/newest_pod.h"
#include "coordinator/start/output_folder.h"
#include "coordinator/start/output_place.h"
#include "coordinator/start/run_again.h"
#include "coordinator/start/start_server.h"
#include "coordinator/start/state_lock.h"
#include "job/work.h"
#include "ledger/claim.h"
#include "plan/columns/types_json.h"
#include "plan/input_store.h"
#include "plan/source.h"

namespace parallelrun::coordinator {
namespace {

// Longer than any write takes on a volume that works.
constexpr Duration kThreadsLimit = seconds(30);
constexpr Duration kLastLinesLimit = seconds(2);
constexpr char kOwnLog[] = "sys/master_role.txt";

// spec.output.ifExists as the job says it, unless the command line says otherwise.
api::IfExists WhatIfExists(const CoordinatorConfig& config) {
  if (config.overwrite) return api::IfExists::kOverwrite;
  if (config.retry_failed) return api::IfExists::kRetryFailed;
  if (config.resume) return api::IfExists::kResume;
  return config.job.spec.output.if_exists;
}

// What the state folder holds, and what it is continued with.
struct Opened {
  std::unique_ptr<ledger::Ledger> ledger;
  job::JobState state;
  uint32_t first_epoch = 0;  // of the run
  std::string plan_settings;
  std::string job;  // canonical JSON
};

// The files that were planned, beside those that are there now.
Result<plan::InputChanges> Compare(const JobLayout& layout, const Opened& opened,
                                   const Files& files, StartServer& starting) {
  const job::JobState& state = opened.state;
  starting.Begin("compares the files of the inputs with those that were planned", "files");
  spdlog::info("{} mini-batches were planned before: looking for files that have changed since",
               state.counts().planned);
  const plan::ReadPlan read =
      [&](const std::function<void(const job::PlanChunkRecord&)>& visit) -> Status {
    for (const job::JobState::Chunk& chunk : state.chunks()) {
      Result<std::string> bytes = opened.ledger->Read(chunk.place);
      if (!bytes.ok()) return bytes.error();
      const Result<job::WorkMaker> maker = job::WorkMaker::FromRecord(std::move(*bytes));
      if (!maker.ok()) return maker.error();
      visit(maker->chunk());
    }
    return {};
  };
  return plan::FindInputChanges(read, state.plan_ended(), layout.inputs,
                                plan::InputStores(files, layout.forbidden, layout.stores),
                                [&] { starting.Step(); });
}

// What is written anew for columns that are decided names some of them.
Status CheckTypes(const JobLayout& layout, const job::JobState& state) {
  for (const auto& [index, types] : state.types()) {
    const Result<plan::TypedTable> table = plan::TypesFromJson(types);
    if (!table.ok()) return table.error();
    if (index >= layout.inputs.size()) continue;
    if (Status known = plan::CheckWrittenTypes(*table, layout.inputs[index]); !known.ok())
      return known;
  }
  return {};
}

struct Decided {
  StartDecision decision;
  std::string warning;
  bool holds_rows = false;  // what is in the output's place
};

Result<Decided> Decide(const CoordinatorConfig& config, const JobLayout& layout,
                       const Opened& opened, Files& files, OutputPlace& output,
                       StartServer& starting) {
  NewRun run;
  run.if_exists = WhatIfExists(config);
  run.resource_uid = config.resource_uid;
  run.code_digest = config.code_digest;
  run.plan_settings = opened.plan_settings;
  run.job = opened.job;
  run.state_folder = layout.state_folder;
  run.output_folder = layout.output_folder;
  run.output_path = layout.output_path;
  run.in_pod = config.in_pod();
  for (const plan::PlanInput& input : layout.inputs) {
    if (input.allow_empty == api::AllowEmpty::kExisting)
      run.empty_if_existing = plan::PlaceOf(input);
  }
  if (Status looked = output.Look(run); !looked.ok()) return looked.error();
  const job::JobState& state = opened.state;
  if (AsksForDamage(run, state)) {
    starting.Begin("compares the output with what was published", "MiB");
    const Result<std::string> damage =
        output.Damage(*state.published(), opened.ledger->run_id(), state.settings()->generation,
                      [&] { starting.Step(); });
    if (!damage.ok()) return damage.error();
    run.output_damage = *damage;
  }
  const Result<StartDecision> decision = DecideStart(run, state);
  if (!decision.ok()) return decision.error();
  if (!decision->continues && !decision->has_finished) {
    return Decided{*decision, WarningOf(*decision, {}), HoldsRows(run, state)};
  }
  if (decision->continues) {
    if (const Status known = CheckTypes(layout, state); !known.ok()) return known.error();
  }
  const Result<plan::InputChanges> changes = Compare(layout, opened, files, starting);
  if (!changes.ok()) return changes.error();
  const Result<StartDecision> with_inputs = DecideWithInputs(run, state, *decision, *changes);
  if (!with_inputs.ok()) return with_inputs.error();
  return Decided{*with_inputs, WarningOf(*with_inputs, *changes), HoldsRows(run, state)};
}

Result<Opened> Claim(const CoordinatorConfig& config, const JobLayout& layout, Files& files,
                     StartServer& starting) {
  starting.Begin("reads the ledger", "records");
  ledger::LedgerOptions options;
  options.state_folder = layout.state_folder;
  if (!layout.output_path.empty() && layout.output_store.empty()) {
    options.output_folder = layout.output_folder;
    options.output_file = config.job.spec.output.file_name;
  }
  options.nonce = RandomU64();
  options.new_run_id = RandomU64();
  Opened opened;
  Result<std::unique_ptr<ledger::Ledger>> claimed = ledger::Ledger::Claim(
      files, options,
      [&](const job::Record& record, const job::Place& place, const job::Place& rows) {
        const auto* seal = std::get_if<job::SealRecord>(&record);
        if (seal != nullptr && seal->predecessor == 0) opened.first_epoch = place.epoch;
        starting.Step();
        return opened.state.Apply(record, place, rows);
      });
  if (!claimed.ok()) return claimed.error();
  opened.ledger = std::move(*claimed);
  if (opened.first_epoch == 0) opened.first_epoch = opened.ledger->epoch();
  if (!layout.output_path.empty()) opened.state.OutputIsAt(layout.output_path);
  opened.plan_settings = api::PlanSettings(config.job, config.volumes, config.selection);
  opened.job = api::CanonicalText(api::ToJson(config.job));
  return opened;
}

// Writes the first group of the epoch, with what was decided.
Status Begin(const CoordinatorConfig& config, const StartDecision& decision, Opened& opened) {
  job::SettingsRecord settings;
  settings.generation = decision.generation;
  settings.wall_us = SystemClock().WallNow().time_since_epoch().count();
  settings.code_digest = config.code_digest;
  settings.resource_uid = config.resource_uid;
  settings.plan_settings = opened.plan_settings;
  settings.job = opened.job;
  settings.may_replace = decision.may_replace;
  if (decision.overwrite) {
    opened.state = job::JobState();
    opened.first_epoch = opened.ledger->epoch();
  }
  Status begun =
      opened.ledger->Begin(decision.write_settings ? std::optional(settings) : std::nullopt,
                           decision.overwrite ? std::optional(RandomU64()) : std::nullopt);
  if (begun.ok() && decision.write_settings) begun = opened.state.Apply(settings, {}, {});
  return begun;
}

// Durable before anybody is told of it.
Status RunAgain(const JobLayout& layout, const Files& files, Opened& opened) {
  const auto again = ResultsToRunAgain(files, layout.state_folder, opened.state);
  if (!again.ok()) return again.error();
  uint64_t results = 0;
  for (const job::AgainRecord& record : *again) {
    const ledger::Ledger::Appended appended = opened.ledger->Append(record);
    if (Status s = opened.state.Apply(record, appended.record, appended.rows); !s.ok()) return s;
    results += record.results.size();
  }
  const Result<uint64_t> flushed = opened.ledger->Flush();
  if (!flushed.ok()) return flushed.error();
  spdlog::warn("{} again: the processes that had run them did not end their shutdown()",
               CountOf(results, "mini-batch", "is run", "are run"));
  return {};
}

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

// A coordinator that does not start publishes nothing: neither a token nor a claim of its own stays
// where the output goes.
Error Refuse(const ledger::Ledger& ledger, Files& files, OutputPlace& output, const Error& why) {
  if (const Status released = output.GiveBack(); !released.ok()) {
    spdlog::warn("{}", released.error().message);
  }
  if (!ledger.token_path().empty()) {
    if (const Status removed = ledger::RemoveToken(files, ledger.token_path()); !removed.ok()) {
      spdlog::warn("{}", removed.error().message);
    }
  }
  if (why.code != Code::kNoSpace) return why;
  return {why.code, why.message + "; make room there, and run again"};
}

// As the workers name them.
std::vector<std::string> ColumnsOf(const api::Output& output) {
  std::vector<std::string> columns = output.columns;
  if (output.provenance && !columns.empty()) {
    for (const char* name : {"_file", "_row", "_minibatch"}) columns.emplace_back(name);
  }
  return columns;
}

std::string HostName() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

// Nobody else publishes there meanwhile.
Status HoldOutput(const CoordinatorConfig& config, const JobLayout& layout, const Opened& opened,
                  Files& files, OutputPlace& output) {
  const api::JobSpec& spec = config.job.spec;
  const api::JobMetadata& metadata = config.job.metadata;
  output::ClaimOptions options;
  output::OutputOwner& owner = options.owner;
  owner.job = (metadata.name_space.empty() ? "" : metadata.name_space + "/") + metadata.name;
  owner.uid = config.resource_uid;
  owner.run_id = opened.ledger->run_id();
  owner.epoch = opened.ledger->epoch();
  owner.state_folder = layout.state_folder;
  if (!spec.state.ephemeral && spec.state.in.volume == spec.output.to.volume) {
    owner.near_state =
        std::filesystem::path(layout.state_folder).lexically_relative(layout.output_folder);
  }
  owner.host = HostName();
  owner.in_pod = config.in_pod();
  if (owner.in_pod) owner.address = api::OutputAddress(metadata.name_space, spec);
  // Other clusters may use the same bucket, and of their jobs no operator here knows.
  if (!layout.output_store.empty()) {
    owner.address = config.installation.empty() ? "" : config.installation + " " + owner.address;
  }
  owner.since = Rfc3339(SystemClock().WallNow());
  options.output_folder = layout.output_folder;
  if (!layout.output_path.empty()) options.output_file = spec.output.file_name;
  const std::optional<job::Settings>& settings = opened.state.settings();
  options.first_start = !settings || settings->resource_uid != config.resource_uid;
  options.at_work = [&files](const std::string& folder) { return StateIsLocked(files, folder); };
  return output.Hold(options);
}

// Some thread waits for a volume that hangs, and could be waited for for ever.
[[noreturn]] void LeaveProcess(CoordinatorExit exit) {
  spdlog::error("threads that wait for a volume are left behind: does one hang?");
  (void)EndBackgroundLog(kLastLinesLimit);
  std::_Exit(static_cast<int>(exit));
}

// `writer` is the one of the log tree, once there is one.
Result<CoordinatorExit> Serve(const CoordinatorConfig& config, Files& files,
                              std::shared_ptr<LogWriter>& writer) {
  Result<JobLayout> layout = LayOut(config.job, config.volumes, config.store_keys);
  if (!layout.ok()) return layout.error();
  plan::TakeOnly(config.selection, layout->inputs);
  Result<std::string> agent_job = AgentJob(config, *layout);
  if (!agent_job.ok()) return agent_job.error();
  std::optional<StartServer> starting(
      std::in_place, StartServer::Options{config.http, config.metrics_http, config.key});
  if (const Status made = files.MakeFolders(layout->output_folder); !made.ok()) return made.error();
  Result<LogSink> logs = LogSink::Open(files, layout->log_folder);
  if (!logs.ok()) return logs.error();
  const LogFolder log_folder = logs->folder();
  writer = std::make_shared<LogWriter>(std::move(*logs));

  if (config.in_pod()) {
    // `parallelrun run` sends a local coordinator's log there itself.
    if (const Status made = log_folder.Append(kOwnLog, ""); !made.ok()) return made.error();
    AlsoLogTo([writer](std::string line) { writer->Append(kOwnLog, std::move(line)); });
    if (const Status made = files.MakeFolders(layout->state_folder); !made.ok()) {
      return made.error();
    }
    const Status entered =
        EnterAsNewestPod(files, layout->state_folder, config.resource_uid, HostName());
    if (!entered.ok() && entered.error().code == Code::kStale) {
      spdlog::warn("{}", entered.error().message);
      LeaveLastWords(files, config.termination_message, LastErrorJson(entered.error().message));
      return CoordinatorExit::kSuperseded;
    }
    if (!entered.ok()) return entered.error();
  }
  Result<Opened> opened = Claim(config, *layout, files, *starting);
  if (!opened.ok()) return opened.error();
  ledger::Ledger& ledger = *opened->ledger;
  job::JobState& state = opened->state;
  const Result<std::unique_ptr<OutputPlace>> place = OpenOutput(config, *layout, files);
  if (!place.ok()) return place.error();
  OutputPlace& output = **place;
  if (const Status ended = output.EndOlder(ledger.epoch()); !ended.ok()) {
    return Refuse(ledger, files, output, ended.error());
  }
  const Result<Decided> decided = Decide(config, *layout, *opened, files, output, *starting);
  if (!decided.ok()) return Refuse(ledger, files, output, decided.error());
  if (const Status held = HoldOutput(config, *layout, *opened, files, output); !held.ok()) {
    return Refuse(ledger, files, output, held.error());
  }
  const StartDecision& decision = decided->decision;
  if (decision.logs_aside) {
    // Before the run begins: one that has begun is not started over by who comes again, and would
    // have the rest of these logs for its own.
    starting->Begin("sets the logs of the earlier run aside", "steps");
    const OpenLogs open = config.in_pod() ? OpenLogs::kCoordinator : OpenLogs::kCoordinatorAndNodes;
    const Result<std::string> aside = SetLogsAside(log_folder, open, SystemClock().WallNow());
    if (!aside.ok()) return Refuse(ledger, files, output, aside.error());
    if (!aside->empty()) {
      spdlog::info("the logs of the earlier run are in {}/{} now", log_folder.path(), *aside);
    }
  }
  const bool with_nothing = !state.settings() || decision.overwrite;
  if (const Status begun = Begin(config, decision, *opened); !begun.ok()) {
    return Refuse(ledger, files, output, begun.error());
  }
  // Of a restarted coordinator, too: the settings are those that the run was begun with.
  const bool replaces = decided->holds_rows && state.settings() && state.settings()->may_replace;
  for (plan::PlanInput& input : layout->inputs) input.replaces = replaces;
  if (decision.run_again) {
    if (const Status again = RunAgain(*layout, files, *opened); !again.ok()) {
      return Refuse(ledger, files, output, again.error());
    }
  }
  std::string warning = decided->warning;
  std::shared_ptr<output::ResultManifest> results;
  if (layout->output_path.empty()) {
    const output::OwnPlaces own = OwnPlacesOf(config, *layout);
    results = std::make_shared<output::ResultManifest>(
        files, output::ResultManifest::Places{layout->output_folder, layout->state_folder, own},
        ledger.run_id());
    const std::string left = BeginResults(with_nothing, *layout, own, files, *results);
    if (!left.empty()) warning = left;  // of a run that begins there is no other
  }
  if (!warning.empty()) spdlog::warn("{}", warning);
  for (const std::string& folder : api::FoldersOfOutput(config.job.spec.arguments)) {
    const Status made = files.MakeFolders(layout->output_folder + "/" + folder);
    if (!made.ok()) spdlog::warn("{}", made.error().message);  // the script may do without
  }
  spdlog::info("epoch {} of run {:016x}, {} mini-batches planned, {} settled", ledger.epoch(),
               ledger.run_id(), state.counts().planned,
               state.counts().succeeded + state.counts().failed);

  ServerOptions server_options;
  server_options.coordinator = Limits(config, *opened);
  server_options.http = config.http;
  server_options.metrics_http = config.metrics_http;
  server_options.ownerless_limit = config.ownerless_limit;
  server_options.key = config.key;
  server_options.agent_job = std::move(*agent_job);
  server_options.warning = warning;
  server_options.results = std::move(results);
  server_options.output_folder = layout->output_folder;
  server_options.sink =
      output.MakeSink(ledger, state.settings() ? state.settings()->generation : 0);
  server_options.publish.order = config.job.spec.output.order == api::OutputOrder::kMiniBatch
                                     ? output::RowOrder::kMiniBatch
                                     : output::RowOrder::kCompletion;
  server_options.publish.format = config.job.spec.output.format;
  server_options.publish.columns = ColumnsOf(config.job.spec.output);
  server_options.give_back = [&output] { return output.GiveBack(); };
  server_options.dead_letters = config.job.spec.isolate_failures;
  server_options.state_folder = layout->state_folder;
  server_options.ready_file = config.ready_file;
  server_options.page = config.page;
  server_options.inputs = layout->inputs;
  server_options.forbidden = layout->forbidden;
  server_options.stores = layout->stores;
  starting.reset();  // it holds the ports
  CoordinatorServer server(std::move(server_options), files, ledger, state, log_folder, *writer);
  LogInBackground();
  Result<CoordinatorExit> exit = server.Run();
  if (exit.ok()) {
    LeaveLastWords(files, config.termination_message,
                   LastWordsJson(server.Progress(), server.ended_because()));
  }
  output.Stop();
  // What it writes for the server first.
  const bool written = writer->Finish(kThreadsLimit);
  const bool ended = server.EndThreads(kThreadsLimit) && written;
  if (!ended && !exit.ok()) spdlog::error("{}", exit.error().message);
  if (!ended) LeaveProcess(exit.ok() ? *exit : CoordinatorExit::kCannotStart);
  if (!EndBackgroundLog(kLastLinesLimit)) {
    std::_Exit(static_cast<int>(exit.ok() ? *exit : CoordinatorExit::kCannotStart));
  }
  return exit;
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
