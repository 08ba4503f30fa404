#include "agent/core/lives.h"

#include <utility>

#include "agent/core/outcome.h"
#include "job/failure_text.h"

namespace parallelrun::agent {

using Kind = job::ProcessEvent::Kind;

std::optional<std::string> Lives::WhyNoMore(uint32_t wanted) const {
  return starts_.Enough(wanted) ? std::optional(starts_.WhyEnough()) : std::nullopt;
}

std::vector<Event> Lives::Ready(uint32_t process, bool shutdown) {
  starts_.Ready();
  std::vector<Event> events{{process, Kind::kReady}};
  for (Event& event : shutdown ? Owes(process) : std::vector<Event>()) {
    events.push_back(std::move(event));
  }
  return events;
}

std::vector<Event> Lives::Owes(uint32_t process) {
  if (shutdowns_.owes(process)) return {};
  shutdowns_.Owes(process);
  return {{process, Kind::kOwes}};
}

Lives::StartEnd Lives::StartFailed(uint32_t process, const std::string& message, bool fatal,
                                   bool logged, bool node_ends) {
  starts_.Failed(message);
  StartEnd end;
  const std::string log = logged ? ErrorLog(node_, process) : "";
  if (!fatal) end.events.push_back({process, Kind::kInitFailed, message, log});
  // An import that finds nothing finds nothing the next time. But it may be this node alone that
  // lacks it, so the job goes on elsewhere; and where a process was ready, it is something else.
  const bool hopeless = fatal || (!starts_.any_ready() && job::OfProgram("InitFailed", message));
  if (node_ends || !hopeless) return end;
  end.events.push_back({process, fatal ? Kind::kScriptUnusable : Kind::kGaveUp, message, log});
  end.gives_up = true;
  return end;
}

void Lives::Stopped(uint32_t process, std::string failure) {
  shutdowns_.Stopped(process, std::move(failure), ErrorLog(node_, process));
}

std::vector<Event> Lives::Exited(uint32_t process, const Ended& ended, const std::string& words,
                                 bool no_room, Duration timeout) {
  std::vector<Event> events;
  const std::string log = StderrLog(node_, process);
  if (ended.state == ProcessState::kStarting && !no_room) {
    const std::string why = "while it was starting, it " + words;
    starts_.Failed(why);
    events.push_back({process, Kind::kInitFailed, why, log});
  } else if (ended.state == ProcessState::kReady) {
    if (ended.idle && !no_room) starts_.EndedIdle("it " + words);
    events.push_back({process, Kind::kExited, words, log});
  }
  if (auto end = shutdowns_.Exited(process, words, ended.cut_off, timeout)) {
    events.push_back({process, end->kind, std::move(end->message), std::move(end->log)});
  }
  return events;
}

Event Lives::Where(uint32_t process, std::string where) const {
  if (where.empty()) where = "Python does not answer: it is stopped, or waits for a disk";
  return {process, Kind::kWhere, std::move(where), StderrLog(node_, process)};
}

std::vector<Event> Lives::Owes() const {
  std::vector<Event> events;
  for (const auto& [process, end] : shutdowns_.owing()) events.push_back({process, Kind::kOwes});
  return events;
}

Event Lives::Owing() const { return {0, Kind::kOwing, shutdowns_.OwingText()}; }

}  // namespace parallelrun::agent
