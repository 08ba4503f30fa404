#include "cli/run/run_teller.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <utility>

namespace parallelrun::cli {

using nlohmann::json;

RunTeller::RunTeller(const LocalJob& job, const RunRequest& request, const NextCommands& next,
                     const Clock& clock)
    : job_(job),
      request_(request),
      next_(next),
      clock_(clock),
      started_(clock.Now()),
      display_(stderr, request.events ? stderr : stdout,
               StyleFor(stderr, request.progress, request.quiet), started_),
      stream_(request.events ? std::make_unique<EventStream>(STDOUT_FILENO) : nullptr),
      events_(stream_.get(), started_) {}

void RunTeller::Begin() { events_.Start(job_, clock_.Now()); }

void RunTeller::Say(const std::string& text) {
  display_.Say(text);
  events_.Say("note", text, clock_.Now());
}

void RunTeller::Alert(const std::string& why) {
  display_.Alert(why);
  events_.Say("note", why, clock_.Now());
  why_ = why;
}

void RunTeller::Result(const std::string& text) { display_.Result(text); }

void RunTeller::CoordinatorLost() {
  const std::string lost = "the coordinator ended unexpectedly, starting the next one";
  display_.Say(lost);
  events_.Coordinator("lost", lost, clock_.Now());
}

void RunTeller::NodeLost(size_t index) {
  const std::string lost = fmt::format("node {} ended unexpectedly, replacing it", index);
  display_.Say(lost);
  events_.Node(index, "lost", lost, clock_.Now());
}

void RunTeller::NodeWaits(size_t index, const std::string& why) {
  display_.Say(fmt::format("paused: node {}: {}", index, why));
  events_.Node(index, "waits", why, clock_.Now());
}

void RunTeller::NodeOver(size_t index, const std::string& why) {
  events_.Node(index, "over", why, clock_.Now());
}

void RunTeller::Stopping(bool at_once) {
  display_.Say(at_once ? "stopping at once"
                       : "finishing the mini-batches that run; Ctrl-C again stops at once");
  events_.Stopping(at_once, clock_.Now());
}

void RunTeller::Progress(json progress) {
  events_.Progress(progress, clock_.Now());
  teller_.Show(std::move(progress), clock_.Now());
}

void RunTeller::Waiting(const std::string& why) {
  events_.Waiting(why, clock_.Now());
  display_.Waiting(why, clock_.Now());
}

void RunTeller::Failure(const FailedLine& failed) {
  events_.Failure(failed, clock_.Now());
  teller_.ShowFailure(failed);
}

void RunTeller::Tick() { display_.Tick(clock_.Now()); }

void RunTeller::Summarize(const std::optional<json>& last) {
  teller_.Summarize(last, LeadsOf(), Elapsed());
}

std::string RunTeller::SummaryText(const std::optional<json>& last) const {
  const std::optional<json>& progress = last ? last : shown();
  if (!progress || !progress->contains("miniBatches")) {
    return "it ended before anything was planned";
  }
  const std::string text = Summary(*progress, LeadsOf(), Elapsed(), teller_.before());
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

void RunTeller::End(int exit, const std::optional<json>& last) {
  events_.End(exit, last ? last : shown(), why_, job_.layout.log_folder, next_, clock_.Now());
}

Leads RunTeller::LeadsOf() const {
  const std::string& logs = job_.layout.log_folder;
  const char* const lost =
      job_.job.spec.isolate_failures ? "/dead-letter.jsonl" : "/failures.jsonl";
  return {logs,
          logs + lost,
          next_.resume,
          next_.retry_failed,
          request_.allow_failures,
          [](const std::string& path) { return access(path.c_str(), F_OK) == 0; }};
}

}  // namespace parallelrun::cli
