// The live page over HTTP (docs/page.md): its assets, and the events that it is fed with. What is
// asked here is admitted here. On the loop's thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/http/server.h"
#include "base/time.h"
#include "coordinator/page/event_stream.h"

namespace parallelrun::coordinator {

// Whether a request that names this host came to a loopback address by its own name: no web site
// can make a browser say it.
bool IsLoopbackHost(std::string_view host);

class LivePage {
 public:
  using GiveLog = std::function<void(const std::shared_ptr<HttpExchange>&)>;

  // As EventStream; `give_log` answers what asks for a part of a log.
  LivePage(uint32_t epoch, std::function<nlohmann::json()> make, GiveLog give_log);

  // Of what is the page's: whether it is let in without a token, or the refusal. Nothing: it is
  // judged as everything else is.
  std::optional<std::variant<size_t, HttpResponse>> Admit(const HttpRequest& request) const;
  // False: it is not the page's.
  bool Handle(const std::shared_ptr<HttpExchange>& exchange, Instant now);
  void Tick(Instant now) { events_.Tick(now); }
  void End() { events_.End(); }

 private:
  struct Asset {
    std::string_view path;
    const char* type;
    std::string text;
    std::string gzip;
    std::string etag;
  };

  const Asset* Find(std::string_view path) const;
  static HttpResponse Give(const Asset& asset, const HttpRequest& request);

  const std::array<Asset, 3> assets_;
  const GiveLog give_log_;
  EventStream events_;
};

}  // namespace parallelrun::coordinator
