#include "coordinator/end_work.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "coordinator/last_reports.h"
#include "ledger/claim.h"

namespace parallelrun::coordinator {
namespace {

constexpr Duration kSettleLimit = seconds(10);

}  // namespace

void EndWork::Join() {
  for (Thread* const thread : {&publisher_, &last_}) {
    if (thread->joinable()) thread->join();
  }
}

bool EndWork::Finish(Duration limit) {
  bool ended = true;
  for (Thread* const thread : {&publisher_, &last_}) {
    ended = (!thread->joinable() || thread->JoinFor(ended ? limit : Duration())) && ended;
  }
  return ended;
}

void EndWork::Publish(std::function<void(const Result<output::Publication>&)> published) {
  if (publisher_.joinable()) publisher_.join();  // it has told
  publisher_ = Thread("publish", [this, published = std::move(published)] {
    Result<output::Publication> publication =
        output::PublishOutput(*of_.options.sink, of_.ledger, of_.state, of_.options.publish);
    of_.loop.Post([published, publication = std::move(publication)] { published(publication); });
  });
}

void EndWork::LookAtOutput(std::function<void(const Result<bool>&)> seen) {
  if (publisher_.joinable()) publisher_.join();
  publisher_ = Thread("look at output", [this, seen = std::move(seen)] {
    const Result<bool> there = of_.files.Exists(of_.options.output_folder);
    of_.loop.Post([seen, there] { seen(there); });
  });
}

void EndWork::Take(RunEnd::Do step, const std::optional<Waits::Times>& waits,
                   std::function<void(const std::string& wrong)> done) {
  if (last_.joinable()) last_.join();
  last_ = Thread("reports", [this, step, waits, done = std::move(done)] {
    const std::string wrong = Work(step, waits);
    of_.loop.Post([done, wrong] { done(wrong); });
  });
}

std::string EndWork::NotSent(const std::string& why) const {
  return fmt::format("the logs are not whole in {}: {}. What was gathered of them is in {}",
                     of_.options.log_sender->Location(), why, log_folder());
}

std::string EndWork::Work(RunEnd::Do step, const std::optional<Waits::Times>& waits) const {
  const auto tell = [](const Status& status) {
    if (!status.ok()) spdlog::warn("{}", status.error().message);
  };
  switch (step) {
    case RunEnd::Do::kWriteReports: {
      std::string wrong =
          WriteLastReports({of_.state, of_.rules, of_.ledger, waits, of_.options.dead_letters},
                           of_.folder, of_.clock.WallNow());
      const Status put = of_.options.put_reports(of_.folder);
      if (!put.ok()) wrong += (wrong.empty() ? "" : "; ") + put.error().message;
      return wrong;
    }
    case RunEnd::Do::kNameResults: {
      const Status named = of_.options.results ? of_.options.results->End() : Status();
      if (named.ok()) break;
      spdlog::warn("what this run has left in {} cannot be named: {}", of_.options.output_folder,
                   named.error().message);
      break;
    }
    case RunEnd::Do::kRemoveToken:
      if (of_.ledger.token_path().empty()) break;
      tell(ledger::RemoveToken(of_.files, of_.ledger.token_path()));
      // What counts is in its place; the rest is of attempts that do not.
      if (of_.options.publish.staged && of_.state.published()) {
        tell(output::RemoveStaged(of_.files, of_.options.output_folder, of_.ledger.run_id()));
      }
      break;
    case RunEnd::Do::kGiveBack: tell(of_.options.give_back()); break;
    case RunEnd::Do::kSendLogs: {
      // Where its volume hangs, what is there is sent.
      (void)of_.logs.Settle(kSettleLimit);
      const Status sent = of_.options.log_sender->SendAll(of_.folder);
      if (!sent.ok()) return NotSent(sent.error().message);
      spdlog::info("the logs are in {}", of_.options.log_sender->Location());
      break;
    }
    default: break;
  }
  return "";
}

}  // namespace parallelrun::coordinator
