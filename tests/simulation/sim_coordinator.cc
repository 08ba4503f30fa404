#include "tests/simulation/sim_coordinator.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "coordinator/start/earlier_run.h"
#include "coordinator/start/newest_pod.h"
#include "coordinator/start/run_again.h"
#include "job/record_codec.h"
#include "ledger/claim.h"
#include "ledger/history.h"
#include "output/folder_sink.h"
#include "output/output_file.h"

namespace parallelrun::simulation {

using coordinator::RunEnd;

namespace {

RunEnd::Options OptionsOfEnd(const Scenario& scenario) {
  RunEnd::Options end;
  end.publishes = scenario.append_row;
  end.output_folder = kOutputFolder;
  end.state_folder = kStateFolder;
  end.ownerless_limit = scenario.ownerless;
  return end;
}

}  // namespace

std::string RivalClaim() {
  output::OutputOwner rival;
  rival.job = "rival";
  rival.uid = "of another cluster";
  rival.run_id = 1;
  rival.epoch = 1;
  rival.state_folder = "/rival/state";
  rival.in_pod = true;
  return output::ClaimText(rival);
}

SimCoordinator::SimCoordinator(World& world, size_t id, CoordinatorStart start)
    : world_(world),
      clock_(world.DrawClock()),
      id_(id),
      start_(std::move(start)),
      files_(world.disk()) {
  files_.OnRename([this](const std::string& to) {
    if (to != kOutputPath) return;
    if (world_.tracing()) world_.Trace(fmt::format("epoch {} publishes", epoch()));
    const bool indexed = world_.disk().Has(kIndexPath);
    world_.oracle().Renamed(epoch(), world_.disk().Contents(kOutputPath),
                            indexed ? world_.disk().Contents(kIndexPath) : "", state_);
  });
}

void SimCoordinator::Later(Duration delay, void (SimCoordinator::*event)()) {
  world_.OnCoordinator(id_, delay, [event](SimCoordinator& c) { (c.*event)(); });
}

void SimCoordinator::Start() {
  const Scenario& s = world_.scenario();
  if (start_.pod != 0) {
    Status entered = files_.MakeFolders(kStateFolder);
    if (entered.ok()) {
      entered =
          coordinator::EnterAsNewestPod(*ledger::MakeFolderNotes(files_, kStateFolder), start_.uid,
                                        fmt::format("job-coordinator-{}", start_.pod));
    }
    if (!entered.ok()) {
      if (world_.tracing()) world_.Trace(entered.error().message);
      return CannotStart(entered.error().code == Code::kStale
                             ? coordinator::CoordinatorExit::kSuperseded
                             : coordinator::CoordinatorExit::kCannotStart);
    }
  }
  ledger::LedgerOptions options;
  options.state_folder = kStateFolder;
  if (s.append_row) {
    options.output_folder = kOutputFolder;
    options.output_file = kOutputFile;
  }
  options.nonce = world_.rng().Next();
  options.new_run_id = world_.rng().Next();
  const uint64_t read_at = world_.oracle().Now();
  uint32_t run = 0;  // named by its first epoch
  Result<std::unique_ptr<ledger::Ledger>> claimed = ledger::Ledger::Claim(
      files_, options,
      [&](const job::Record& record, const job::Place& place, const job::Place& rows) {
        const auto* seal = std::get_if<job::SealRecord>(&record);
        if (seal != nullptr && seal->predecessor == 0) run = place.epoch;
        return state_.Apply(record, place, rows);
      });
  if (!claimed.ok()) {
    if (claimed.error().code == Code::kCorrupt) {
      world_.oracle().Violated("11 a sealed prefix never changes", claimed.error().message);
    }
    if (world_.tracing()) world_.Trace("the claim fails: " + claimed.error().message);
    return CannotStart(coordinator::CoordinatorExit::kCannotStart);
  }
  ledger_ = std::move(*claimed);
  world_.oracle().Claimed(epoch(), read_at, run, state_);

  std::optional<job::SettingsRecord> settings;
  coordinator::NewRun wanted;
  wanted.if_exists = start_.if_exists;
  wanted.resource_uid = start_.uid;
  wanted.plan_settings = "{}";
  if (s.append_row) wanted.output_path = kOutputPath;
  wanted.output_there = world_.disk().Has(kOutputPath);
  wanted.in_pod = true;
  if (coordinator::AsksForDamage(wanted, state_)) {
    const Result<std::string> damage = output::DamageOf(files_, kOutputPath, *state_.published());
    if (!damage.ok()) return CannotStart(coordinator::CoordinatorExit::kCannotStart);
    wanted.output_damage = *damage;
  }
  const Result<coordinator::StartDecision> decision = coordinator::DecideStart(wanted, state_);
  if (!decision.ok()) return Refuse(decision.error());
  if (const Status held = HoldOutput(); !held.ok()) {
    if (world_.tracing()) world_.Trace("the output is not to be had: " + held.error().message);
    return CannotStart(coordinator::CoordinatorExit::kCannotStart);
  }
  if (decision->write_settings) {
    settings.emplace();
    settings->generation = decision->generation;
    settings->resource_uid = start_.uid;
    settings->plan_settings = "{}";
    settings->job = "{}";
    settings->may_replace = decision->may_replace;
  }
  const uint32_t generation = settings ? settings->generation : state_.settings()->generation;
  if (decision->overwrite || run == 0) run = epoch();
  if (decision->overwrite) state_ = job::JobState();
  world_.oracle().Begins(epoch(), read_at, run, generation, start_.uid);
  const Status begun = ledger_->Begin(
      settings, decision->overwrite ? std::optional(world_.rng().Next()) : std::nullopt);
  if (!begun.ok()) {
    if (world_.tracing()) world_.Trace("the first group fails: " + begun.error().message);
    return CannotStart(coordinator::CoordinatorExit::kCannotStart);
  }
  if (settings) static_cast<void>(state_.Apply(*settings, {}, {}));
  if (decision->run_again) {
    if (const Status again = RunAgain(); !again.ok())
      return CannotStart(coordinator::CoordinatorExit::kDiskFailed);
  }
  if (world_.tracing()) {
    world_.Trace(fmt::format("epoch {} begins, generation {}, {} planned, {} succeeded, {} failed",
                             epoch(), generation, state_.counts().planned,
                             state_.counts().succeeded, state_.counts().failed));
  }

  coordinator::CoordinatorLimits limits;
  limits.first_epoch = run;
  limits.lease = s.lease;
  limits.look = s.look;
  limits.broken_grace = s.broken_grace;
  limits.spec.run_max_try = static_cast<int32_t>(s.run_max_try);
  limits.max_losses = s.max_losses;
  limits.rules = {s.thresholds, s.append_row, false};
  limits.spec.isolate_failures = s.isolate;
  limits.speculation = s.speculation;
  limits.slow_least = s.slow_least;
  limits.nodes = start_.nodes;
  limits.processes = s.processes;
  limits.spec.shutdown_timeout = s.shutdown_timeout;
  limits.settings_digest = kSettingsDigest;
  plan_ = std::make_unique<plan::PlanStore>(static_cast<ChunkSource&>(*this));
  const bool succeeded = state_.verdict() && state_.verdict()->outcome == job::Outcome::kSucceeded;
  if (succeeded && state_.published()) world_.oracle().FindsPublished(epoch());
  coordinator_ =
      std::make_unique<coordinator::Coordinator>(limits, *ledger_, *plan_, state_, Now());
  end_.emplace(OptionsOfEnd(s), Now());
  if (!state_.plan_ended() && coordinator_->phase() == coordinator::Coordinator::Phase::kRunning) {
    if (!state_.chunks().empty()) {
      const Result<std::string> last = ledger_->Read(state_.chunks().back().place);
      std::string_view bytes = last.ok() ? std::string_view(*last) : std::string_view();
      const Result<job::DecodedRecord> decoded = job::DecodeRecord(bytes);
      if (!decoded.ok()) return CannotStart(coordinator::CoordinatorExit::kDiskFailed);
      cursor_ =
          plan::CursorAfter(std::get<job::PlanChunkRecord>(decoded->record), {plan::PlanInput()});
    }
    Later(world_.Around(s.listing), &SimCoordinator::PlanNext);
  }
  Later(clock_.Takes(s.tick), &SimCoordinator::Tick);
}

Status SimCoordinator::HoldOutput() {
  output::ClaimOptions options;
  options.owner.job = "job";
  options.owner.uid = start_.uid;
  options.owner.run_id = ledger_->run_id();
  options.owner.epoch = epoch();
  options.owner.state_folder = kStateFolder;
  options.owner.in_pod = true;
  options.output_folder = kOutputFolder;
  options.output_file = world_.scenario().append_row ? kOutputFile : "";
  options.at_work = [](const std::string&) { return true; };
  if (Status made = files_.MakeFolders(kOutputFolder); !made.ok()) return made;
  Result<output::HeldOutput> held = output::ClaimOutput(files_, options);
  if (!held.ok()) return held.error();
  held_ = std::move(*held);
  return {};
}

// A person has asked for what ifExists forbids; nobody else has.
void SimCoordinator::Refuse(const Error& why) {
  if (world_.tracing()) world_.Trace("refused: " + why.message);
  if (start_.if_exists == api::IfExists::kOverwrite || why.code != Code::kExists) {
    return world_.oracle().Violated("a job may start", why.message);
  }
  refused_ = true;
  CannotStart(coordinator::CoordinatorExit::kCannotStart);
}

// --- calls

void SimCoordinator::Register(uint32_t node, const std::string& agent, uint64_t pod,
                              uint32_t processes, uint64_t run, const Reply& reply) {
  end_->Heard(Now());
  const bool of_another_run = run != 0 && run != ledger_->run_id();
  if (of_another_run || coordinator_->nodes().Superseded(node, agent, pod)) {
    return reply({World::Answer::Kind::kRefused, {}, {}, 0, 0});
  }
  if (coordinator_->HasToWait(node, agent, pod, Now())) {
    return reply({World::Answer::Kind::kBusy, {}, {}, 0, 0});
  }
  const coordinator::NodeRegistration registration =
      coordinator_->Register(node, agent, processes, Now(), pod);
  World::Answer answer;
  answer.kind = World::Answer::Kind::kRegistered;
  answer.incarnation = registration.incarnation;
  answer.first_process = registration.first_process;
  answer.run = ledger_->run_id();
  reply(std::move(answer));
}

void SimCoordinator::Exchange(uint32_t node, const std::string& bytes, const Reply& reply) {
  end_->Heard(Now());
  const Result<job::ExchangeRequest> request = job::DecodeExchangeRequest(bytes);
  if (!request.ok()) return world_.oracle().Violated("messages", request.error().message);
  if (world_.tracing()) {
    for (const job::Finished& done : request->finished) {
      world_.Trace(fmt::format("node {} ({}.{}) reports {} ({}.{}) to epoch {}: {}", node,
                               request->incarnation.epoch, request->incarnation.number, done.id,
                               done.fence.epoch, done.fence.number, epoch(),
                               done.kind == job::Finished::Kind::kSucceeded ? "succeeded"
                               : done.kind == job::Finished::Kind::kFailed  ? "failed"
                                                                            : "returned"));
    }
  }
  world_.oracle().Asked(*request);
  newest_[node] = coordinator_->Exchange(
      node, *request, Now(), [this, node, reply](const Result<job::ExchangeReply>& said) {
        World::Answer answer;
        if (!said.ok()) {
          answer.kind = said.error().code == Code::kStale ? World::Answer::Kind::kStale
                                                          : World::Answer::Kind::kBusy;
          return reply(std::move(answer));
        }
        if (world_.tracing()) {
          for (const job::LeaseName& name : said->settled) {
            world_.Trace(fmt::format("epoch {} settles {} ({}.{}) for node {}", epoch(), name.id,
                                     name.fence.epoch, name.fence.number, node));
          }
        }
        world_.oracle().Replied(epoch(), *said, state_);
        CheckCompany(node, *said);
        answer.kind = World::Answer::Kind::kReply;
        answer.bytes = job::Encode(*said);
        reply(std::move(answer));
      });
  world_.oracle().Counts(epoch(), state_, coordinator_->running(), coordinator_->pending());
}

// What was leased as a suspect has no more company than it may have.
void SimCoordinator::CheckCompany(uint32_t node, const job::ExchangeReply& reply) {
  if (reply.leased.empty()) return;
  for (const job::Leased& leased : reply.leased) {
    const bool alone = state_.batch(leased.id).losses >= job::Availability::kSuspectLosses;
    const uint32_t most = alone ? 1 : state_.companies().Of(leased.id);
    if (most != job::kAnyCompany) suspects_[{leased.id, leased.fence}] = most;
  }
  if (suspects_.empty()) return;
  const std::vector<job::Held> held = coordinator_->availability().HeldBy(node);
  for (const job::Held& one : held) {
    const auto suspect = suspects_.find({one.id, one.lease.fence});
    if (suspect == suspects_.end() || held.size() <= suspect->second) continue;
    world_.oracle().Violated("13 suspects run alone",
                             fmt::format("mini-batch {} is one of {} on node {}",
                                         job::MiniBatchText(one.id), held.size(), node));
  }
}

Status SimCoordinator::RunAgain() {
  const auto records = coordinator::ResultsToRunAgain(*ledger_, state_);
  if (!records.ok()) return records.error();
  for (const job::AgainRecord& record : *records) {
    for (const job::AgainRecord::Result& one : record.results) world_.oracle().RunsAgain(one.id);
    const ledger::Ledger::Appended appended = ledger_->Append(record);
    if (Status s = state_.Apply(record, appended.record, appended.rows); !s.ok()) return s;
  }
  const Result<uint64_t> flushed = ledger_->Flush();
  return flushed.ok() ? Status() : Status(flushed.error());
}

void SimCoordinator::Leave(uint32_t node, const job::Incarnation& incarnation) {
  coordinator_->Leave(node, incarnation, Now());
}
void SimCoordinator::ConnectionGone(uint32_t node) {
  coordinator_->ConnectionGone(newest_[node], Now());
}
void SimCoordinator::Drain() { coordinator_->Drain(Now()); }
void SimCoordinator::HandOver() { end_->HandOver(); }
void SimCoordinator::Control(const coordinator::ControlRequest& control) {
  end_->Heard(Now());
  coordinator_->Control(control, Now());
}

// --- plan

void SimCoordinator::PlanNext() {
  if (Ending()) return;
  const job::BatchId first = cursor_.next_batch;
  Items files;
  if (const std::optional<std::string> chunk = world_.input().NextChunk(cursor_, files)) {
    world_.oracle().Planned(epoch(), first, files);
    if (const Status added = coordinator_->AddChunk(*chunk, Now()); !added.ok()) {
      return coordinator_->FailPlan(added.error(), Now());
    }
    Later(world_.Around(world_.scenario().listing), &SimCoordinator::PlanNext);
  } else {
    coordinator_->EndPlan(Now());
  }
}

// Asked for the next one while it reads, it reads that afterwards, when it is asked for again.
bool SimCoordinator::Ask(const job::Place& place) {
  if (chunk_ && chunk_->first == place) return true;
  if (!wanted_chunk_) {
    wanted_chunk_ = place;
    Later(world_.Around(world_.scenario().sync), &SimCoordinator::ReadChunk);
  }
  return false;
}

void SimCoordinator::ReadChunk() {
  chunk_.emplace(*wanted_chunk_, ledger_->Read(*wanted_chunk_));
  wanted_chunk_.reset();
  coordinator_->OnPlanRead(Now());
}

Result<std::string> SimCoordinator::Take(const job::Place&) {
  Result<std::string> bytes = std::move(chunk_->second);
  chunk_.reset();
  return bytes;
}

// --- ledger

// What it sees is of a moment after it began, and is heard of later still.
void SimCoordinator::Look() {
  const Instant begun = Now();
  const Duration sync = world_.scenario().sync;
  world_.OnCoordinator(id_, world_.Around(sync), [this, begun, sync](SimCoordinator& c) {
    Status newest = c.ledger_->CheckNewest();
    if (newest.ok() && c.ledger_lost_) newest = Error{Code::kNotFound, "the log is gone"};
    world_.OnCoordinator(id_, world_.Around(sync), [begun, newest](SimCoordinator& later) {
      later.newer_seen_ = !newest.ok() && newest.error().code == Code::kStale;
      later.coordinator_->OnLooked(begun, newest, later.Now());
    });
  });
}

void SimCoordinator::Flush() {
  const Result<uint64_t> flushed = ledger_->Flush();
  world_.OnCoordinator(id_, world_.Around(world_.scenario().sync),
                       [flushed](SimCoordinator& c) { c.OnFlushed(flushed); });
}

void SimCoordinator::OnFlushed(const Result<uint64_t>& flushed) {
  flushing_ = false;
  if (flushed.ok()) {
    coordinator_->Unpause();
    coordinator_->OnDurable(Now());
    if (world_.Chance(100)) CompareWithReplay();
  } else {
    end_->FlushFailed(flushed.error(), Now());
  }
}

void SimCoordinator::CompareWithReplay() {
  if (!ledger_ || !coordinator_ || world_.oracle().Stale(epoch()) ||
      epoch() < world_.oracle().newest_claimed() || ledger_->appended() != ledger_->durable()) {
    return;
  }
  job::JobState replay;
  const Result<ledger::History> history = ledger::ReplayHistory(
      world_.disk(), ledger::EpochsFolder(kStateFolder), epoch() + 1, ledger_->run_id(),
      [&](const job::Record& record, const job::Place& place, const job::Place& rows) {
        return replay.Apply(record, place, rows);
      });
  if (!history.ok()) {
    return world_.oracle().Violated("10 memory is what a replay gives", history.error().message);
  }
  world_.oracle().Replayed(epoch(), state_, replay);
}

std::string SimCoordinator::Describe() const {
  if (!coordinator_) return fmt::format("coordinator {} has not begun", id_);
  const job::JobCounts& counts = state_.counts();
  return fmt::format(
      "epoch {}: phase {}, {} planned{}, {} succeeded, {} failed, {} leased, {} nodes, {}{}{}",
      epoch(), static_cast<int>(coordinator_->phase()), counts.planned,
      state_.plan_ended() ? "" : " so far", counts.succeeded, counts.failed,
      coordinator_->running(), coordinator_->nodes().registered(), coordinator_->paused(),
      flushing_ ? ", flushing" : "", end_->ending() ? ", ending" : "");
}

void SimCoordinator::Tick() {
  if (ended_) return;
  if (!end_->ending()) {
    if (newer_seen_) {
      return world_.oracle().Violated("33 who is superseded leaves",
                                      fmt::format("epoch {} has seen a newer one", epoch()));
    }
    coordinator_->Tick(Now());
    if (const std::string wrong = coordinator_->Check(Now()); !wrong.empty()) {
      return world_.oracle().Violated("21 indexes say what a count of all says", wrong);
    }
  }
  Later(clock_.Takes(world_.scenario().tick), &SimCoordinator::Tick);
}

// --- end

void SimCoordinator::AfterEvent() {
  if (ended_ || !coordinator_) return;
  for (const RunEnd::Do step : end_->Next(coordinator_->FactsOfEnd(Now()), Now())) Do(step);
}

void SimCoordinator::Do(RunEnd::Do step) {
  const Duration takes = world_.Around(world_.scenario().sync);
  switch (step) {
    case RunEnd::Do::kLook:
      coordinator_->LookBegins();
      Look();
      break;
    case RunEnd::Do::kPause: coordinator_->Pause(end_->no_room()); break;
    case RunEnd::Do::kFlush:
      if (!std::exchange(flushing_, true)) Later(takes, &SimCoordinator::Flush);
      break;
    case RunEnd::Do::kPublish: Later(takes, &SimCoordinator::Publish); break;
    case RunEnd::Do::kLookAtOutput: Later(takes, &SimCoordinator::LookAtOutput); break;
    case RunEnd::Do::kNothingToPublish:
      coordinator_->OnNothingToPublish();
      AfterEvent();
      break;
    case RunEnd::Do::kNameLast:
      world_.OnCoordinator(id_, takes, [](SimCoordinator& c) { c.end_->LastNamed(); });
      break;
    case RunEnd::Do::kStop:
      if (world_.tracing())
        world_.Trace(fmt::format("epoch {} ends: {}", epoch(), end_->because()));
      break;
    case RunEnd::Do::kWriteReports:
    case RunEnd::Do::kNameResults:
    case RunEnd::Do::kRemoveToken:
    case RunEnd::Do::kGiveBack:
    case RunEnd::Do::kSendLogs:
      world_.OnCoordinator(id_, takes, [step](SimCoordinator& c) { c.Take(step); });
      break;
    case RunEnd::Do::kLeave: Leave(); break;
  }
}

void SimCoordinator::Publish() {
  const std::unique_ptr<output::Sink> sink =
      output::MakeFolderSink(files_, kOutputPath, ledger_->token_path(), held_);
  Result<output::Publication> published =
      output::PublishOutput(*sink, *ledger_, state_, output::PublishOptions());
  world_.OnCoordinator(id_, world_.Around(world_.scenario().sync),
                       [published](SimCoordinator& c) { c.OnPublished(published); });
}

void SimCoordinator::OnPublished(const Result<output::Publication>& published) {
  if (published.ok()) coordinator_->OnPublished(published->published, Now());
  end_->Published(published.ok() ? Status() : published.error(), Now());
}

void SimCoordinator::LookAtOutput() {
  const Result<bool> there = files_.Exists(kOutputFolder);
  if (!there.ok()) world_.oracle().FolderNotSeen(epoch());
  world_.OnCoordinator(id_, world_.Around(world_.scenario().sync),
                       [there](SimCoordinator& c) { c.end_->OutputFolderSeen(there); });
}

// Reports are not simulated, but that they are written before anything else is, and when.
void SimCoordinator::Take(RunEnd::Do step) {
  switch (step) {
    case RunEnd::Do::kWriteReports: world_.oracle().Reports(epoch()); break;
    case RunEnd::Do::kRemoveToken:
      if (ledger_->token_path().empty()) break;
      static_cast<void>(ledger::RemoveToken(files_, ledger_->token_path()));
      break;
    case RunEnd::Do::kGiveBack:
      world_.oracle().GivesBack(epoch(), end_->over());
      static_cast<void>(output::ReleaseOutput(files_, held_));
      break;
    default: break;
  }
  world_.OnCoordinator(id_, world_.Around(world_.scenario().sync),
                       [step](SimCoordinator& c) { c.end_->Done(step); });
}

void SimCoordinator::Leave() {
  // A coordinator that was frozen takes that for a volume that hangs, and leaves as it is.
  if (end_->hung()) world_.oracle().GivesUp(epoch());
  world_.oracle().Leaves(epoch(), end_->exit(), state_, world_.disk().HasFolder(kOutputFolder));
  const bool newest =
      ledger::CheckNewestEpoch(world_.disk(), ledger::EpochsFolder(kStateFolder), epoch()).ok();
  if (end_->exit() == coordinator::CoordinatorExit::kSuperseded && newest) {
    world_.oracle().Violated("33 who is superseded leaves",
                             fmt::format("epoch {} left, and there is no newer one", epoch()));
  }
  if (end_->over()) CompareWithReplay();
  Exit(end_->exit());
}

// A coordinator that does not start publishes nothing.
void SimCoordinator::CannotStart(coordinator::CoordinatorExit exit) {
  static_cast<void>(output::ReleaseOutput(files_, held_));
  if (ledger_ && !ledger_->token_path().empty()) {
    static_cast<void>(ledger::RemoveToken(files_, ledger_->token_path()));
  }
  Exit(exit);
}

void SimCoordinator::Exit(coordinator::CoordinatorExit exit) {
  ended_ = true;
  if (ledger_) ledger_->GiveBackReserve();
  if (coordinator_) coordinator_->Close({Code::kUnavailable, "the coordinator ends"});
  world_.Exited(id_, exit);
}

}  // namespace parallelrun::simulation
