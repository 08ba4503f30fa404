#include "coordinator/page/event_stream.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "coordinator/access.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

// Changes with each document, and is no news by itself.
constexpr char kMadeAt[] = "madeAt";

}  // namespace

void EventStream::Join(const std::shared_ptr<HttpExchange>& exchange, Instant now) {
  std::erase_if(viewers_, [](const Viewer& viewer) { return viewer.exchange->gone(); });
  if (viewers_.size() >= kMostViewers) {
    return exchange->Respond(ErrorResponse(
        503, "Unavailable", fmt::format("{} look at this page already", kMostViewers)));
  }
  if (viewers_.empty()) Renew(now);
  HttpResponse head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = {{"Cache-Control", "no-store"},
                  {"X-Accel-Buffering", "no"},
                  {"X-Content-Type-Options", "nosniff"}};
  head.body = "retry: 2000\n\n";
  Viewer viewer{exchange, true, now};
  viewer.behind = exchange->request().Header("last-event-id") != NewestId();
  exchange->Begin(std::move(head));
  if (viewer.behind) exchange->Send(Snapshot());
  viewer.behind = false;
  viewers_.push_back(std::move(viewer));
}

void EventStream::Tick(Instant now) {
  std::erase_if(viewers_, [](const Viewer& viewer) { return viewer.exchange->gone(); });
  if (viewers_.empty() || now - made_at_ < kInterval) return;
  const bool news = Renew(now);
  for (Viewer& viewer : viewers_) {
    if (viewer.exchange->waiting() > 0) {
      viewer.behind = viewer.behind || news;
    } else if (news || viewer.behind) {
      Tell(viewer, now);
    } else if (now - viewer.told_at >= kHeartbeat) {
      viewer.exchange->Send(":\n\n");
      viewer.told_at = now;
    }
  }
}

void EventStream::End() {
  const bool news = !viewers_.empty() && Renew(made_at_);
  for (Viewer& viewer : viewers_) {
    if (news || viewer.behind) Tell(viewer, made_at_);
    viewer.exchange->Send(Event("end", json::object()));
    viewer.exchange->End();
  }
  viewers_.clear();
}

bool EventStream::Renew(Instant now) {
  made_at_ = now;
  json fresh = make_();
  json changed = json::object();
  for (auto& [key, value] : fresh.items()) {
    if (key != kMadeAt && (!current_.is_object() || current_[key] != value)) changed[key] = value;
  }
  if (changed.empty()) return false;
  changed[kMadeAt] = fresh[kMadeAt];
  current_ = std::move(fresh);
  ++newest_;
  delta_ = Event("delta", changed);
  return true;
}

void EventStream::Tell(Viewer& viewer, Instant now) {
  viewer.exchange->Send(viewer.behind ? Snapshot() : delta_);
  viewer.behind = false;
  viewer.told_at = now;
}

std::string EventStream::Snapshot() const { return Event("snapshot", current_); }

std::string EventStream::Event(const char* name, const json& data) const {
  return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", NewestId(), name,
                     data.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string EventStream::NewestId() const { return fmt::format("{}-{}", epoch_, newest_); }

}  // namespace parallelrun::coordinator
