#include "coordinator/core/process_events.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>

#include "job/verdict.h"

namespace parallelrun::coordinator {

void ProcessEvents::Take(uint32_t index, const job::ExchangeRequest& request,
                         Intake::Taken& taken) const {
  const job::JobState& state = journal.state();
  Nodes::Node& node = *nodes.Find(index);
  for (const job::ProcessEvent& event : request.events) {
    const std::string message(Bounded(event.message));
    const std::string where = event.log.empty() ? "" : fmt::format(" (log {})", Bounded(event.log));
    switch (event.kind) {
      case job::ProcessEvent::Kind::kReady:
        nodes.Ready(node);
        program_errors.ProcessReady(index, event.process);
        break;
      case job::ProcessEvent::Kind::kInitFailed:
        nodes.InitFailed(node);
        standstill.InitFailed();
        program_errors.InitFailed(message + where);
        break;
      case job::ProcessEvent::Kind::kScriptUnusable:
        // One that starts too late is not needed any more.
        if (ending.phase() != Ending::Phase::kClosing) {
          ending.Conclude(job::FailedFor("ScriptUnusable", message + where));
        }
        break;
      case job::ProcessEvent::Kind::kExited:
        program_errors.ProcessGone(index, event.process);
        break;
      case job::ProcessEvent::Kind::kMetric: told.AddMetric(index, event); break;
      case job::ProcessEvent::Kind::kHeader:
        // The process holds its rows back until it knows in which order their columns stand.
        if (!journal.decided() && state.header().empty()) {
          journal.Add(job::HeaderRecord{event.message});
        }
        taken.reply.header = state.header();
        taken.position = std::max(taken.position, journal.appended());
        break;
      case job::ProcessEvent::Kind::kNoRoom: nodes.NoRoom(node, message); break;
      case job::ProcessEvent::Kind::kRanOut: nodes.RanOut(node, message); break;
      case job::ProcessEvent::Kind::kFetching:
        taken.moved = nodes.Fetches(node, message, event.log) || taken.moved;
        break;
      case job::ProcessEvent::Kind::kStoreWait: node.store_wait = message; break;
      case job::ProcessEvent::Kind::kFetchFailed:
        // The same everywhere: the first node that says so says it for all.
        ending.Conclude(job::FailedFor("InputUnusable", message));
        break;
      case job::ProcessEvent::Kind::kWhere:
        standstill.Where(index, event.process, message);
        init_watch.Where(index, event.process, message);
        break;
      case job::ProcessEvent::Kind::kGaveUp:
        nodes.GiveUp(node);
        program_errors.GaveUp(message + where);
        break;
      case job::ProcessEvent::Kind::kOwing:
        ending.LoseShutdowns(NotNamed(state.shutdowns().OpenOf(index), event.message),
                             "the process was gone");
        break;
      case job::ProcessEvent::Kind::kOwes:
      case job::ProcessEvent::Kind::kClosed:
      case job::ProcessEvent::Kind::kCloseFailed:
      case job::ProcessEvent::Kind::kCutOff:
      case job::ProcessEvent::Kind::kCloseLost:
        if (journal.decided()) break;
        ending.TakeShutdown(index, event);
        taken.position = std::max(taken.position, journal.appended());
        break;
    }
  }
}

}  // namespace parallelrun::coordinator
