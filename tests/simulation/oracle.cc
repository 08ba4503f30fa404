#include "tests/simulation/oracle.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>

#include "base/mac.h"

namespace parallelrun::simulation {
namespace {

using State = job::MiniBatch::State;

}  // namespace

void Oracle::Violated(const std::string& invariant, const std::string& what) {
  if (violation_.empty()) violation_ = invariant + ": " + what;
}

job::Fence& Oracle::Newest(uint32_t epoch, job::BatchId id) { return newest_fence_[{epoch, id}]; }

// --- epochs

void Oracle::Claimed(uint32_t epoch, uint64_t read_at, uint32_t run, const job::JobState& state) {
  newest_claimed_ = std::max(newest_claimed_, epoch);
  const auto binds = [&](const Said& said) { return said.epoch < epoch && said.at < read_at; };
  const uint32_t generation = state.settings() ? state.settings()->generation : 0;
  ForEach([&](job::BatchId id, const Batch& batch) {
    const bool planned = state.known(id);
    // A piece that was leased before its split was durable is forgotten with it.
    if (batch.meaning && binds(batch.meaning->first) && !planned && !job::IsPiece(id)) {
      Violated("8 same items", fmt::format("epoch {} does not know mini-batch {}, which epoch {} "
                                           "leased",
                                           epoch, id, batch.meaning->first.epoch));
    }
    if (batch.success && binds(batch.success->first) &&
        (!planned || state.batch(id).state != State::kSucceeded ||
         state.batch(id).fence != batch.success->second)) {
      Violated("2 acknowledged is never lost",
               fmt::format("epoch {} lost the result of mini-batch {} that epoch {} acknowledged",
                           epoch, job::MiniBatchText(id), batch.success->first.epoch));
    }
    uint32_t failed = 0;
    for (const FailedTry& f : batch.failed) {
      if (binds(f.said) && f.generation == generation) ++failed;
    }
    if (failed > 0 && (!planned || state.batch(id).failed_attempts < failed)) {
      Violated("2 acknowledged is never lost",
               fmt::format("epoch {} lost a failed attempt of mini-batch {}", epoch,
                           job::MiniBatchText(id)));
    }
  });
  for (const Told& told : told_) {
    if (told.epoch >= epoch || told.run != run || told.generation != generation) continue;
    if (!state.verdict() ||
        (state.verdict()->outcome == job::Outcome::kSucceeded) != told.succeeded) {
      Violated(
          "9 one verdict, durable before it is told",
          fmt::format("epoch {} does not know the verdict that epoch {} told", epoch, told.epoch));
    }
  }
}

void Oracle::Begins(uint32_t epoch, uint64_t read_at, uint32_t run, uint32_t generation,
                    const std::string& uid) {
  run_[epoch] = run;
  uid_[epoch] = uid;
  generation_[epoch] = generation;
  if (epoch < newest_begun_) return;
  newest_begun_ = epoch;
  if (run == epoch) {
    ForEach([&](job::BatchId id, const Batch& batch) {
      if (!batch.meaning || uid_[batch.meaning->first.epoch] != uid) return;
      if (batch.meaning->first.epoch >= epoch || batch.meaning->first.at >= read_at) return;
      Violated("18 nothing is given up unasked",
               fmt::format("epoch {} starts over, though epoch {} of the same job leased "
                           "mini-batch {}",
                           epoch, batch.meaning->first.epoch, job::MiniBatchText(id)));
    });
  }
  // Nothing that was said of an earlier run binds.
  const auto is_void = [&](const Said& said) {
    return said.epoch < epoch && (said.at >= read_at || said.epoch < run);
  };
  ForEach([&](job::BatchId, Batch& batch) {
    if (batch.meaning && is_void(batch.meaning->first)) batch.meaning.reset();
    if (batch.success && is_void(batch.success->first)) batch.success.reset();
    std::erase_if(batch.failed, [&](const FailedTry& f) { return is_void(f.said); });
  });
}

void Oracle::Planned(uint32_t epoch, job::BatchId first, const Items& files) {
  for (size_t at = 0; at < files.size(); at += scenario_.files_per_batch) {
    Items& items = planned_[{epoch, first++}];
    for (size_t i = at; i < std::min(files.size(), at + scenario_.files_per_batch); ++i) {
      items.push_back(files[i]);
    }
  }
}

// --- coordinators

void Oracle::Asked(const job::ExchangeRequest& request) {
  for (const job::Finished& done : request.finished) reported_[{done.id, done.fence}] = done.kind;
}

void Oracle::Replied(uint32_t epoch, const job::ExchangeReply& reply, const job::JobState& state) {
  const Said said{epoch, Now()};
  const uint32_t generation = generation_[epoch];
  if (!reply.leased.empty()) leased_at_[epoch] = said.at;
  for (const job::Leased& leased : reply.leased) {
    const DecodedWork work = DecodeWork(leased.work);
    leased_[{leased.id, leased.fence}] = work.items;
    if (work.id != leased.id) Violated("8 same items", "Work of another mini-batch");
    Newest(epoch, leased.id) = std::max(Newest(epoch, leased.id), leased.fence);
    const auto accepted = accepted_.find({epoch, leased.id});
    if (accepted != accepted_.end()) {
      Violated("1 exactly once",
               fmt::format("epoch {} leases mini-batch {}, which it accepted", epoch, leased.id));
    }
    const auto [known, first] = meanings_.emplace(std::pair(epoch, leased.id), work.items);
    if (!first && known->second != work.items) {
      Violated("8 same items",
               fmt::format("epoch {} leases other items as mini-batch {}", epoch, leased.id));
    }
    if (Stale(epoch)) continue;
    Batch& batch = At(leased.id);
    if (!batch.meaning) {
      batch.meaning = {said, work.items};
    } else if (batch.meaning->second != work.items) {
      Violated("8 same items",
               fmt::format("epoch {} leases other items as mini-batch {} than epoch {}", epoch,
                           leased.id, batch.meaning->first.epoch));
    }
  }
  for (const job::Adopted& adopted : reply.adopted) {
    const Items& items = leased_[{adopted.id, adopted.old_fence}];
    const auto planned = planned_.find({epoch, adopted.id});
    if (planned != planned_.end() && planned->second != items) {
      Violated("8 same items",
               fmt::format("epoch {} adopted mini-batch {} with other items", epoch, adopted.id));
    }
    leased_[{adopted.id, adopted.fence}] = items;
    Newest(epoch, adopted.id) = std::max(Newest(epoch, adopted.id), adopted.fence);
  }
  for (const job::LeaseName& name : reply.settled) {
    const auto reported = reported_.find({name.id, name.fence});
    if (reported == reported_.end()) {
      Violated("3 only live fences count",
               fmt::format("{}.{} of mini-batch {} was never reported", name.fence.epoch,
                           name.fence.number, name.id));
      continue;
    }
    if (reported->second == job::Finished::Kind::kReturned) continue;
    // A fence of this epoch was accepted here; one of an earlier epoch is a repeat.
    if (name.fence.epoch == epoch && reported->second == job::Finished::Kind::kSucceeded) {
      const auto [accepted, first] = accepted_.emplace(std::pair(epoch, name.id), name.fence);
      if (!first && accepted->second != name.fence) {
        Violated("1 exactly once",
                 fmt::format("epoch {} accepted two results of mini-batch {}", epoch, name.id));
      }
      // The first of two leases may win over the second.
      if (first && name.fence < Newest(epoch, name.id) && !scenario_.speculation) {
        Violated("3 only live fences count",
                 fmt::format("mini-batch {}: fence {} was accepted after {} had been leased",
                             name.id, name.fence.number, Newest(epoch, name.id).number));
      }
    }
    if (Stale(epoch)) continue;
    Batch& batch = At(name.id);
    if (reported->second == job::Finished::Kind::kSucceeded) {
      if (batch.success && batch.success->second != name.fence) {
        Violated("1 exactly once",
                 fmt::format("two results of mini-batch {} were acknowledged", name.id));
      }
      if (!batch.success) batch.success = {said, name.fence};
    } else {
      const auto same = [&](const FailedTry& f) { return f.fence == name.fence; };
      if (std::none_of(batch.failed.begin(), batch.failed.end(), same)) {
        batch.failed.push_back({said, name.fence, generation});
      }
      const auto count =
          std::count_if(batch.failed.begin(), batch.failed.end(),
                        [&](const FailedTry& f) { return f.generation == generation; });
      if (count > scenario_.run_max_try) {
        Violated("5 at most runMaxTry failed attempts",
                 fmt::format("mini-batch {} has {} of {}", name.id, count, scenario_.run_max_try));
      }
    }
  }
  for (job::BatchId id = 0; id < state.batches().size() && id < batches_.size(); ++id) {
    const Batch& batch = batches_[id];
    if (state.batches()[id].failed_attempts >
        batch.given - batch.ran_well + state.batches()[id].losses + containers_killed_) {
      Violated(
          "5 at most runMaxTry failed attempts",
          fmt::format("mini-batch {} has {} failed attempts, but was run {} times, {} of them well",
                      id, state.batches()[id].failed_attempts, batch.given, batch.ran_well));
    }
  }
  if (reply.directive == job::Directive::kFinish) TellVerdict(epoch, state);
}

void Oracle::TellVerdict(uint32_t epoch, const job::JobState& state) {
  if (!state.verdict()) return Violated("9 one verdict", "the job is over without one");
  const bool succeeded = state.verdict()->outcome == job::Outcome::kSucceeded;
  const uint32_t generation = generation_[epoch];
  for (const Told& told : told_) {
    if (told.run != run_[epoch] || told.generation != generation) continue;
    if (told.succeeded != succeeded) {
      Violated("9 one verdict",
               fmt::format("epoch {} told another one than epoch {}", epoch, told.epoch));
    }
    if (told.epoch == epoch) return;
  }
  told_.push_back({epoch, run_[epoch], generation, succeeded});
}

// It is alone after one death that is nobody's fault yet, and so many as it takes to halve what a
// node holds, on each node at most.
void Oracle::EndsItsNode(job::BatchId id) {
  const uint64_t halvings = std::bit_width(scenario_.files) * uint64_t{scenario_.nodes};
  const uint64_t most = halvings + scenario_.nodes + scenario_.max_losses;
  if (++At(id).deaths > most && scenario_.only_killers) {
    Violated("19 what ends its node is found", fmt::format("mini-batch {} ended its node {} times",
                                                           job::MiniBatchText(id), most + 1));
  }
}

void Oracle::CheckKillers(const job::JobState& state) {
  if (!scenario_.only_killers) return;
  ForEach([&](job::BatchId id, const Batch& batch) {
    if (!batch.meaning || !state.known(id)) return;
    const bool failed = state.batch(id).state == State::kFailed;
    if (failed != input_.Killer(batch.meaning->second)) {
      Violated("19 what ends its node is found",
               fmt::format("mini-batch {} has {}", job::MiniBatchText(id),
                           failed ? "failed, and did nothing" : "not failed"));
    }
  });
}

// Whoever gets the output next may take the logs for its own.
void Oracle::GivesBack(uint32_t epoch, bool over) {
  gives_back_.insert(epoch);
  if (!over || reports_.contains(epoch)) return;
  Violated("30 all is in order when a coordinator leaves",
           fmt::format("epoch {} gave the output back before its reports were written", epoch));
}

void Oracle::Leaves(uint32_t epoch, coordinator::CoordinatorExit exit, const job::JobState& state,
                    bool folder_there) {
  using coordinator::CoordinatorExit;
  const bool over = exit == CoordinatorExit::kSucceeded || exit == CoordinatorExit::kFailed;
  const bool gives_back = over || exit == CoordinatorExit::kNotPublished;
  if (gives_back && !gives_back_.contains(epoch) && !gives_up_.contains(epoch)) {
    Violated("30 all is in order when a coordinator leaves",
             fmt::format("epoch {} left with the output", epoch));
  }
  if (!over) return;
  Ended(epoch, exit == CoordinatorExit::kSucceeded, state);
  // What the script writes then is nowhere. A lease is given before the verdict, and the look at
  // the folder comes after it.
  const bool gone = !folder_there && folder_gone_at_ < leased_at_[epoch];
  const bool summary = exit == CoordinatorExit::kSucceeded && !scenario_.append_row;
  if (summary && gone && !folder_not_seen_.contains(epoch)) {
    Violated("31 no success without the folder of the results",
             fmt::format("epoch {} succeeded, and its output folder is gone", epoch));
  }
}

void Oracle::Ended(uint32_t epoch, bool succeeded, const job::JobState& state) {
  TellVerdict(epoch, state);
  if (!state.verdict()) return;
  CheckKillers(state);
  CheckShutdowns(state);
  if (succeeded != (state.verdict()->outcome == job::Outcome::kSucceeded)) {
    Violated("9 one verdict", fmt::format("epoch {} left with another one", epoch));
  }
  if (!succeeded || !scenario_.append_row) return;
  if (!published_ || published_by_ < run_[epoch]) {
    Violated("7 complete outputs", "the job succeeded without an output of its own");
  }
}

// Who is told of a success without more is right to believe that what shutdown() was to write is
// there.
void Oracle::CheckShutdowns(const job::JobState& state) {
  if (!scenario_.shutdown) return;
  const job::Verdict& verdict = *state.verdict();
  const bool told = verdict.message.find("shutdown() did not end well") != std::string::npos;
  if (verdict.outcome != job::Outcome::kSucceeded || told) return;
  ForEach([&](job::BatchId id, const Batch& batch) {
    const auto closed = [this](uint64_t worker) { return shut_down_.contains(worker); };
    if (!state.known(id) || state.StateOf(id) != State::kSucceeded) return;
    if (state.pieces().contains(job::FirstPiece(id))) return;
    if (std::any_of(batch.by.begin(), batch.by.end(), closed)) return;
    Violated("28 no success before shutdown()",
             fmt::format("nobody who ran mini-batch {} has shut down", job::MiniBatchText(id)));
  });
}

void Oracle::Renamed(uint32_t epoch, const std::string& bytes, const std::string& index,
                     const job::JobState& state) {
  if (index.find(Sha256Hex(bytes)) == std::string::npos) {
    Violated("29 an output has its index", "an output was shown beside no index of it");
  }
  if (epoch < published_by_ || epoch < newest_claimed_) {
    Violated("7 never back to an older epoch",
             fmt::format("epoch {} published, though epoch {} had taken over and {} had published",
                         epoch, newest_claimed_, published_by_));
  }
  if (finds_published_.contains(epoch)) {
    Violated("32 an output is published once",
             fmt::format("epoch {} published what an earlier one had", epoch));
  }
  // An output says that the job has succeeded.
  TellVerdict(epoch, state);
  if (foreign_file_ && !state.settings()->may_replace) {
    Violated("19 what is not the run's stays", "a file that appeared was overwritten");
  }
  foreign_file_ = false;
  published_by_ = epoch;
  published_ = bytes;
  CheckOutput(bytes, state);
}

void Oracle::CheckOutput(const std::string& bytes, const job::JobState& state) {
  std::set<uint32_t> there;
  uint32_t last = 0;
  for (size_t at = 0; at < bytes.size(); at += 7) {
    if (bytes.size() < at + 7 || bytes[at + 6] != '\n') {
      return Violated("7 complete outputs", "a row is torn");
    }
    const auto file = static_cast<uint32_t>(std::stoul(bytes.substr(at, 6)));
    if (file <= last) {
      return Violated("1 exactly once", fmt::format("file {:06} follows file {:06}", file, last));
    }
    if (!input_.files().contains(file) || input_.Bad(file)) {
      return Violated("1 exactly once", fmt::format("file {:06} has no row", file));
    }
    there.insert(file);
    last = file;
  }
  // Each mini-batch, or each piece of it, whole or not at all; acknowledged ones must be there.
  uint64_t rows = 0;
  for (job::BatchId id = 0; id < batches_.size(); ++id) {
    if (!batches_[id].meaning) continue;
    for (const uint32_t file : batches_[id].meaning->second) rows += there.contains(file) ? 1 : 0;
    if (!state.known(job::FirstPiece(id))) CheckBatch(id, there);
  }
  for (const auto& [id, piece] : state.pieces()) {
    if (piece.batch.state != State::kSplit) CheckBatch(id, there);
  }
  CheckLosses(state);
  if (rows > there.size()) Violated("1 exactly once", "a file belongs to two mini-batches");
  // A file that was there from the start may be missing only if its mini-batch failed.
  uint64_t missing = 0;
  for (const uint32_t file : input_.first_files()) missing += there.contains(file) ? 0 : 1;
  const uint64_t lost = state.counts().items_failed + state.counts().items_missing;
  if (missing > lost) {
    Violated("1 exactly once",
             fmt::format("{} files are missing, {} items are lost", missing, lost));
  }
}

void Oracle::CheckBatch(job::BatchId id, const std::set<uint32_t>& there) {
  const Batch& batch = At(id);
  if (!batch.meaning) return;
  size_t found = 0;
  size_t wanted = 0;
  for (const uint32_t file : batch.meaning->second) {
    found += there.contains(file) ? 1 : 0;
    wanted += input_.Bad(file) ? 0 : 1;
  }
  if (found != 0 && found != wanted) {
    Violated("1 exactly once",
             fmt::format("mini-batch {} is there in part", job::MiniBatchText(id)));
  }
  if (batch.success && found != wanted) {
    Violated("2 acknowledged is never lost",
             fmt::format("mini-batch {} is not in the output", job::MiniBatchText(id)));
  }
}

// Nothing in this scenario makes an attempt fail but the items themselves.
bool Oracle::InnocentsSurvive() const {
  const auto off = [this](Fault fault) {
    return scenario_.weights[static_cast<size_t>(fault)] == 0;
  };
  const bool good = scenario_.bad_node == BadNode::kNone || scenario_.bad_node == BadNode::kCutOff;
  return good && scenario_.flaky == 0 && scenario_.init_fails == 0 && off(Fault::kFreezeAgent) &&
         scenario_.max_losses >= 10 && containers_killed_ == 0;
}

void Oracle::RunBegins(job::BatchId id, uint64_t worker) {
  if (!one_at_a_time_) return;
  const auto other = in_run_.lower_bound({id, 0});
  if (other != in_run_.end() && other->first == id) {
    Violated("16 no two at once without speculation",
             fmt::format("worker {:x} begins with mini-batch {}, which worker {:x} is at", worker,
                         job::MiniBatchText(id), other->second));
  }
  in_run_.emplace(id, worker);
}

void Oracle::RunEnds(job::BatchId id, uint64_t worker) { in_run_.erase({id, worker}); }

// Those that end their node, or share it once with one that does, are not the others' end.
void Oracle::CheckLosses(const job::JobState& state) {
  if (!InnocentsSurvive()) return;
  const auto off = [this](Fault fault) {
    return scenario_.weights[static_cast<size_t>(fault)] == 0;
  };
  const bool only_killers = off(Fault::kKillAgent) && off(Fault::kSecondAgent) &&
                            off(Fault::kDrainAgent) && off(Fault::kCutOff);
  ForEach([&](job::BatchId id, const Batch& batch) {
    if (!batch.meaning || !state.known(id) || state.batch(id).state != State::kFailed) return;
    if (!state.pieces().empty() && job::HasPieces(id) && state.known(job::FirstPiece(id)))
      return;  // its pieces
    const Items& items = batch.meaning->second;
    const bool lost = state.batch(id).losses >= scenario_.max_losses;
    if (lost && only_killers && !input_.Killer(items)) {
      Violated("13 suspects run alone",
               fmt::format("mini-batch {} went down with another one", job::MiniBatchText(id)));
    }
    const bool alone = !scenario_.isolate || items.size() == 1;
    // A killer may run into its time-out before its node dies.
    const bool bad = input_.Poison(items) || input_.Killer(items);
    if (!lost && (!alone || !bad)) {
      Violated("14 only bad items fail", fmt::format("mini-batch {} failed, with {} items",
                                                     job::MiniBatchText(id), items.size()));
    }
  });
}

void Oracle::Replayed(uint32_t epoch, const job::JobState& memory, const job::JobState& replay) {
  const auto differs = [&](const char* what) {
    Violated("10 memory is what a replay gives", fmt::format("epoch {}: {} differ", epoch, what));
  };
  const job::JobCounts& a = memory.counts();
  const job::JobCounts& b = replay.counts();
  if (a.planned != b.planned || a.succeeded != b.succeeded || a.failed != b.failed ||
      a.rows != b.rows || a.items_planned != b.items_planned ||
      a.items_succeeded != b.items_succeeded || a.items_failed != b.items_failed ||
      a.items_missing != b.items_missing) {
    differs("counts");
  }
  if (memory.batches().size() != replay.batches().size()) return differs("plans");
  if (a.split != b.split || a.pieces_open != b.pieces_open ||
      a.items_isolated != b.items_isolated || memory.pieces().size() != replay.pieces().size()) {
    return differs("pieces");
  }
  const auto compare = [&](job::BatchId id) {
    job::MiniBatch x = memory.batch(id);
    job::MiniBatch y = replay.batch(id);
    // Rows that were copied lie elsewhere.
    x.rows.epoch = y.rows.epoch = 0;
    x.rows.offset = y.rows.offset = 0;
    if (x != y) differs("mini-batches");
  };
  for (job::BatchId id = 0; id < memory.batches().size(); ++id) compare(id);
  for (const auto& [id, piece] : memory.pieces()) {
    if (!replay.known(id)) return differs("pieces");
    compare(id);
  }
  if (memory.verdict().has_value() != replay.verdict().has_value()) differs("verdicts");
  if (memory.published().has_value() != replay.published().has_value()) differs("outputs");
  if (memory.plan_ended() != replay.plan_ended()) differs("ends of the plan");
}

void Oracle::Counts(uint32_t epoch, const job::JobState& state, uint64_t running,
                    uint64_t pending) {
  const job::JobCounts& counts = state.counts();
  job::JobCounts own;
  // A made-up run() skips nothing, and returns no more elements than items.
  const auto add_items = [&own](const job::MiniBatch& batch) {
    if (batch.state == State::kSucceeded) {
      own.items_succeeded += batch.items - batch.items_missing;
      own.items_missing += batch.items_missing;
    } else if (batch.state == State::kFailed) {
      own.items_failed += batch.items;
    }
  };
  for (job::BatchId id = 0; id < state.batches().size(); ++id) {
    const job::MiniBatch& batch = state.batches()[id];
    ++own.planned;
    own.items_planned += batch.items;
    if (batch.state == State::kSucceeded) ++own.succeeded;
    if (batch.state == State::kFailed) ++own.failed;
    if (batch.state == State::kSplit) ++own.split;
    if (!state.known(job::FirstPiece(id))) add_items(batch);
  }
  for (const auto& [id, piece] : state.pieces()) {
    add_items(piece.batch);
    if (piece.batch.state == State::kPending) ++own.pieces_open;
  }
  if (own.planned != counts.planned || own.succeeded != counts.succeeded ||
      own.failed != counts.failed || own.split != counts.split ||
      own.pieces_open != counts.pieces_open || own.items_planned != counts.items_planned ||
      own.items_succeeded != counts.items_succeeded || own.items_failed != counts.items_failed ||
      own.items_missing != counts.items_missing ||
      counts.succeeded + counts.failed + running + pending > counts.planned) {
    Violated("4 counts add up",
             fmt::format("epoch {}: {} planned, {} succeeded, {} failed, {} running, {} pending",
                         epoch, counts.planned, counts.succeeded, counts.failed, running, pending));
  }
}

}  // namespace parallelrun::simulation
