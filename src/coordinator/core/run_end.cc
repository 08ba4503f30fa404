#include "coordinator/core/run_end.h"

#include <spdlog/fmt/fmt.h>

namespace parallelrun::coordinator {
namespace {

constexpr Duration kNoRoomRetry = seconds(1);
// Reports of ten million mini-batches are long; what else is done takes a moment, and who ends this
// process has no more.
constexpr Duration kReportsLimit = std::chrono::hours(1);
constexpr Duration kInOrderLimit = seconds(30);

}  // namespace

bool RunEnd::over() const {
  return exit_ == CoordinatorExit::kSucceeded || exit_ == CoordinatorExit::kFailed;
}

// --- what has happened

void RunEnd::CannotGoOn(CoordinatorExit exit, std::string because) {
  if (!cannot_) cannot_.emplace(exit, std::move(because));
}

void RunEnd::FlushFailed(const Error& why, Instant now) {
  // A store that is away has lost nothing either.
  if (why.code == Code::kNoSpace || why.code == Code::kUnavailable) {
    flush_at_ = now + kNoRoomRetry;
    return Pause(why.message);
  }
  if (why.code == Code::kStale) {
    return CannotGoOn(CoordinatorExit::kSuperseded, "superseded: " + why.message);
  }
  // Linux forgets dirty pages after a failed sync: what is durable is known only by reading it
  // back, which the next epoch does.
  CannotGoOn(CoordinatorExit::kDiskFailed, "the ledger cannot be written: " + why.message);
}

void RunEnd::Published(const Status& published, Instant now) {
  if (published.ok()) return;  // not twice
  const Error& why = published.error();
  switch (why.code) {
    case Code::kNoSpace:
    case Code::kUnavailable:
      publishing_ = false;
      publish_at_ = now + kNoRoomRetry;
      return Pause(why.message);
    case Code::kStale:
      return CannotGoOn(CoordinatorExit::kSuperseded, "superseded: " + why.message);
    case Code::kExists:
    case Code::kInvalid:
      return CannotGoOn(
          CoordinatorExit::kNotPublished,
          fmt::format("the output is not published: {}. Every result is kept in {}: resume the "
                      "job, which publishes them",
                      why.message, options_.state_folder));
    default:
      return CannotGoOn(CoordinatorExit::kDiskFailed,
                        "the output cannot be written: " + why.message);
  }
}

// Where it cannot be looked at, it may well be there.
void RunEnd::OutputFolderSeen(const Result<bool>& there) {
  if (there.ok() && !*there) {
    return CannotGoOn(CoordinatorExit::kCannotStart,
                      fmt::format("the output folder {} is not there any more: it was removed or "
                                  "moved while the job ran. Put it back, and continue the run; "
                                  "if it is gone, start over with --overwrite",
                                  options_.output_folder));
  }
  nothing_to_publish_ = true;
}

void RunEnd::Done(Do step) {
  if (!at_work_ || steps_.front() != step) return;
  steps_.pop_front();
  at_work_ = false;
}

// --- what is to be done

std::vector<RunEnd::Do> RunEnd::Next(const Facts& facts, Instant now) {
  std::vector<Do> todo;
  if (!ending()) GoOn(facts, now, todo);
  if (ending()) TakeStep(now, todo);
  return todo;
}

void RunEnd::GoOn(const Facts& facts, Instant now, std::vector<Do>& todo) {
  if (facts.nodes > 0) Heard(now);
  if (facts.wants_look) todo.push_back(Do::kLook);
  if (std::exchange(pauses_, false)) todo.push_back(Do::kPause);

  if (cannot_) return End(cannot_->first, cannot_->second, facts, now);
  // Whoever ends this process starts the next epoch, which the agents wait for: they are not
  // drained. A verdict that is durable is still brought to its end.
  if (hand_over_ && !facts.decided) {
    return End(CoordinatorExit::kDrained, "ended by a signal: the next epoch goes on", facts, now);
  }
  if (facts.superseded) {
    return End(CoordinatorExit::kSuperseded, "superseded by a newer epoch", facts, now);
  }
  // No next epoch could go on either.
  if (!facts.lost.empty()) {
    return End(CoordinatorExit::kCannotStart, std::string(facts.lost), facts, now);
  }
  if (now - heard_at_ > options_.ownerless_limit) {
    return End(CoordinatorExit::kDrained,
               fmt::format("no node was there and nobody called for {} (ownerlessSeconds)",
                           HumanDuration(options_.ownerless_limit)),
               facts, now);
  }
  if (!facts.durable && now >= flush_at_) todo.push_back(Do::kFlush);
  Follow(facts, now, todo);
}

void RunEnd::Follow(const Facts& facts, Instant now, std::vector<Do>& todo) {
  switch (facts.phase) {
    case Ending::Phase::kFinalizing:
      if (std::exchange(nothing_to_publish_, false)) todo.push_back(Do::kNothingToPublish);
      if (publishing_ || now < publish_at_) break;
      publishing_ = true;
      todo.push_back(options_.publishes ? Do::kPublish : Do::kLookAtOutput);
      break;
    case Ending::Phase::kEnded: {
      if (!ended_at_) {
        ended_at_ = now;
        todo.push_back(Do::kNameLast);
      }
      const bool late = now - *ended_at_ > options_.leave_limit;
      if ((facts.nodes > 0 || !last_named_) && !late) break;
      End(facts.succeeded ? CoordinatorExit::kSucceeded : CoordinatorExit::kFailed, "", facts, now);
      break;
    }
    case Ending::Phase::kDraining:
      if (facts.nodes > 0) break;
      if (facts.durable) {
        End(CoordinatorExit::kDrained, "drained by request", facts, now);
      } else if (!facts.paused.empty()) {
        // Nobody waits for what does not fit; the next epoch finds what is durable.
        End(CoordinatorExit::kDrained,
            fmt::format("drained by request, without what there is no room for: {}", facts.paused),
            facts, now);
      }
      break;
    default: break;
  }
}

void RunEnd::End(CoordinatorExit exit, std::string because, const Facts& facts, Instant now) {
  exit_ = exit;
  because_ = std::move(because);
  leave_by_ = now + (over() ? kReportsLimit : kInOrderLimit);
  steps_ = {Do::kStop};
  if (over()) steps_.push_back(Do::kWriteReports);
  // Nobody of the run writes any more. Who only hands over to the next epoch leaves nodes at work.
  const bool drained = facts.phase == Ending::Phase::kDraining && facts.nodes == 0;
  if (over() || drained) steps_.push_back(Do::kNameResults);
  // A superseded coordinator's token is its successor's business.
  if (exit != CoordinatorExit::kSuperseded) steps_.push_back(Do::kRemoveToken);
  // One that goes on with another epoch keeps its output.
  if (over() || exit == CoordinatorExit::kNotPublished) steps_.push_back(Do::kGiveBack);
  // Those of one that another epoch goes on with at once are that epoch's to send.
  const bool stays = over() || drained || exit == CoordinatorExit::kNotPublished ||
                     exit == CoordinatorExit::kCannotStart;
  if (options_.sends_logs && stays) steps_.push_back(Do::kSendLogs);
  steps_.push_back(Do::kLeave);
}

void RunEnd::TakeStep(Instant now, std::vector<Do>& todo) {
  if (left_) return;
  if (at_work_) {
    if (now <= leave_by_) return;
    hung_ = steps_.front();
    steps_ = {Do::kLeave};
    at_work_ = false;
  }
  while (!at_work_ && !left_) {
    const Do step = steps_.front();
    todo.push_back(step);
    if (step == Do::kStop) {
      steps_.pop_front();
    } else if (step == Do::kLeave) {
      left_ = true;
    } else {
      at_work_ = true;
    }
  }
}

}  // namespace parallelrun::coordinator
