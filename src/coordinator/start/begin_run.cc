#include "coordinator/start/begin_run.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <functional>
#include <utility>
#include <variant>

#include "api/output_address.h"
#include "api/settings.h"
#include "api/to_json.h"
#include "base/count_of.h"
#include "base/random.h"
#include "base/time.h"
#include "coordinator/log_tree/previous_logs.h"
#include "coordinator/start/earlier_run.h"
#include "coordinator/start/lost_side_files.h"
#include "coordinator/start/newest_pod.h"
#include "coordinator/start/run_again.h"
#include "coordinator/start/state_lock.h"
#include "coordinator/start/stored_side_inputs.h"
#include "job/work.h"
#include "ledger/claim.h"
#include "plan/columns/types_json.h"
#include "plan/input_changes.h"
#include "plan/input_store.h"
#include "plan/manifest_pin.h"
#include "plan/source.h"

namespace parallelrun::coordinator {
namespace {

// spec.output.ifExists as the job says it, unless the command line says otherwise.
api::IfExists WhatIfExists(const CoordinatorConfig& config) {
  if (config.overwrite) return api::IfExists::kOverwrite;
  if (config.retry_failed) return api::IfExists::kRetryFailed;
  if (config.resume) return api::IfExists::kResume;
  return config.job.spec.output.if_exists;
}

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
  std::vector<plan::PlanInput> inputs = layout.inputs;
  for (const auto& [index, types] : state.types()) {
    if (index >= inputs.size() || inputs[index].manifest.path.empty()) continue;
    const Status kept = plan::KeepManifest(types, inputs[index].manifest);
    if (!kept.ok()) return kept.error();
  }
  return plan::FindInputChanges(read, state.plan_ended(), inputs,
                                plan::InputStores(files, layout.forbidden, layout.stores),
                                [&] { starting.Step(); });
}

// What is written anew for columns that are decided names some of them.
Status CheckTypes(const JobLayout& layout, const job::JobState& state) {
  for (const auto& [index, types] : state.types()) {
    if (index < layout.inputs.size() && !layout.inputs[index].manifest.path.empty()) continue;
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
  bool holds_rows = false;                  // what is in the output's place
  std::vector<job::AgainRecord> lost = {};  // results whose side files are gone
};

Result<Decided> Decide(const CoordinatorConfig& config, const JobLayout& layout,
                       const Opened& opened, Files& files, ledger::StateNotes& notes,
                       OutputPlace& output, StartServer& starting) {
  NewRun run;
  run.if_exists = WhatIfExists(config);
  run.resource_uid = config.resource_uid;
  run.code_digest = config.code_digest;
  run.plan_settings = opened.plan_settings;
  run.job = opened.job;
  run.state_folder = layout.state_folder;
  run.output_folder = layout.output_folder;
  run.output_path = layout.output_store.empty() ? layout.output_path : layout.published_path;
  run.in_pod = config.in_pod();
  for (const plan::PlanInput& input : layout.inputs) {
    if (input.allow_empty == api::AllowEmpty::kExisting)
      run.empty_if_existing = plan::PlaceOf(input);
  }
  if (Status looked = output.Look(run); !looked.ok()) return looked.error();
  const job::JobState& state = opened.state;
  if (state.settings() && state.settings()->code_digest != run.code_digest) {
    run.code_change =
        FirstChange(KeptCodeFiles(notes, state.settings()->code_digest), config.code_files);
  }
  if (AsksForDamage(run, state)) {
    starting.Begin("compares the output with what was published", "MiB");
    const Result<std::string> damage =
        output.Damage(*state.published(), opened.ledger->run_id(), state.settings()->generation,
                      [&] { starting.Step(); });
    if (!damage.ok()) return damage.error();
    run.output_damage = *damage;
  }
  std::vector<job::AgainRecord> lost;
  if (AsksForSideFiles(run, state)) {
    starting.Begin("looks for the side files of finished mini-batches", "steps");
    auto found =
        ResultsWithoutSideFiles(*opened.ledger, state, output.SideFiles(opened.ledger->run_id()));
    if (!found.ok()) return found.error();
    lost = std::move(*found);
    run.side_files_lost = !lost.empty();
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
  return Decided{*with_inputs, WarningOf(*with_inputs, *changes), HoldsRows(run, state),
                 std::move(lost)};
}

// Which versions of them nodes fetch. Whoever goes on with a run has them fetch those that it began
// with: of two listings, nodes that came early and late would have other bytes.
Result<std::vector<job::SideInput>> SideInputs(const CoordinatorConfig& config,
                                               const JobLayout& layout, const Opened& opened,
                                               const Files& files, ledger::StateNotes& notes,
                                               bool anew, StartServer& starting) {
  if (layout.side_inputs.empty()) return std::vector<job::SideInput>();
  starting.Begin("lists the side inputs in stores", "steps");
  const plan::OpenStore open = plan::InputStores(files, {}, layout.stores);
  const uint64_t most = config.job.spec.cache.size;
  if (anew) return ListSideInputs(layout.side_inputs, open, most);
  return GoOnWithSideInputs(notes, opened.ledger->run_id(), layout.side_inputs, open, most);
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

// The results that `records` name are void, but for those that are so already; durable before
// anybody is told of it. `why` they are, for people.
Status RunAgain(std::vector<job::AgainRecord> records, const char* why, Opened& opened) {
  uint64_t results = 0;
  for (job::AgainRecord& record : records) {
    std::erase_if(record.results, [&opened](const job::AgainRecord::Result& result) {
      return opened.state.StateOf(result.id) != job::MiniBatch::State::kSucceeded;
    });
    if (record.results.empty()) continue;
    const ledger::Ledger::Appended appended = opened.ledger->Append(record);
    if (Status s = opened.state.Apply(record, appended.record, appended.rows); !s.ok()) return s;
    results += record.results.size();
  }
  if (results == 0) return {};
  const Result<uint64_t> flushed = opened.ledger->Flush();
  if (!flushed.ok()) return flushed.error();
  spdlog::warn("{} again: {}", CountOf(results, "mini-batch", "is run", "are run"), why);
  return {};
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

// Before the run begins: one that has begun is not started over by who comes again, and would have
// the rest of these logs for its own.
Status SetEarlierLogsAside(const CoordinatorConfig& config, const LogFolder& log_folder) {
  const OpenLogs open = config.in_pod() ? OpenLogs::kCoordinator : OpenLogs::kCoordinatorAndNodes;
  const Result<std::string> aside = SetLogsAside(log_folder, open, SystemClock().WallNow());
  if (!aside.ok()) return aside.error();
  if (!aside->empty()) {
    spdlog::info("the logs of the earlier run are in {}/{} now", log_folder.path(), *aside);
  }
  return {};
}

// BeginRun, but for what it leaves behind where it fails.
Result<Begun> TakeUp(const CoordinatorConfig& config, const JobLayout& layout,
                     const LogFolder& log_folder, Files& files, ledger::StateNotes& notes,
                     OutputPlace& output, StartServer& starting, Opened& opened) {
  if (const Status ended = output.EndOlder(opened.ledger->epoch()); !ended.ok()) {
    return ended.error();
  }
  Result<Decided> decided = Decide(config, layout, opened, files, notes, output, starting);
  if (!decided.ok()) return decided.error();
  const bool with_nothing = !opened.state.settings() || decided->decision.overwrite;
  Result<std::vector<job::SideInput>> side_inputs =
      SideInputs(config, layout, opened, files, notes, with_nothing, starting);
  if (!side_inputs.ok()) return side_inputs.error();
  if (const Status held = HoldOutput(config, layout, opened, files, output); !held.ok()) {
    return held.error();
  }
  const StartDecision& decision = decided->decision;
  if (decision.logs_aside) {
    starting.Begin("sets the logs of the earlier run aside", "steps");
    if (const Status aside = SetEarlierLogsAside(config, log_folder); !aside.ok()) {
      return aside.error();
    }
  }
  Begun run;
  run.warning = decided->warning;
  run.with_nothing = with_nothing;
  run.side_inputs = std::move(*side_inputs);
  if (const Status begun = Begin(config, decision, opened); !begun.ok()) return begun.error();
  if (decision.write_settings && !config.code_files.empty()) {
    const Status kept = KeepCodeFiles(notes, config.code_digest, config.code_files);
    if (!kept.ok()) return kept.error();
  }
  if (!run.side_inputs.empty()) {
    // Under the name of the run, which it has only now.
    const Status kept = KeepSideInputs(notes, opened.ledger->run_id(), run.side_inputs);
    if (!kept.ok()) return kept.error();
  }
  // Of a restarted coordinator, too: the settings are those that the run was begun with.
  const auto& settings = opened.state.settings();
  run.replaces = decided->holds_rows && settings && settings->may_replace;
  if (decision.run_again) {
    auto unclosed = ResultsToRunAgain(*opened.ledger, opened.state);
    if (!unclosed.ok()) return unclosed.error();
    const Status again =
        RunAgain(std::move(*unclosed),
                 "the processes that had run them did not end their shutdown()", opened);
    if (!again.ok()) return again.error();
  }
  if (decision.continues) {
    const Status again =
        RunAgain(std::move(decided->lost), "their side files are not there any more", opened);
    if (!again.ok()) return again.error();
  }
  return run;
}

}  // namespace

Result<Opened> Claim(const CoordinatorConfig& config, const JobLayout& layout, StatePlace& state,
                     StartServer& starting) {
  starting.Begin("reads the ledger", "records");
  Opened opened;
  Result<std::unique_ptr<ledger::Ledger>> claimed =
      state.Claim([&](const job::Record& record, const job::Place& place, const job::Place& rows) {
        const auto* seal = std::get_if<job::SealRecord>(&record);
        if (seal != nullptr && seal->predecessor == 0) opened.first_epoch = place.epoch;
        starting.Step();
        return opened.state.Apply(record, place, rows);
      });
  if (!claimed.ok()) return claimed.error();
  opened.ledger = std::move(*claimed);
  if (opened.first_epoch == 0) opened.first_epoch = opened.ledger->epoch();
  if (!layout.published_path.empty()) opened.state.OutputIsAt(layout.published_path);
  opened.plan_settings = api::PlanSettings(config.job, config.volumes, config.selection);
  opened.job = api::CanonicalText(api::ToJson(config.job));
  return opened;
}

Result<Begun> BeginRun(const CoordinatorConfig& config, const JobLayout& layout,
                       const LogFolder& log_folder, Files& files, ledger::StateNotes& notes,
                       OutputPlace& output, StartServer& starting, Opened& opened) {
  Result<Begun> run = TakeUp(config, layout, log_folder, files, notes, output, starting, opened);
  if (!run.ok()) return Refuse(*opened.ledger, files, output, run.error());
  return run;
}

}  // namespace parallelrun::coordinator
