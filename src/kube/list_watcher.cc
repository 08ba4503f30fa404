// The server's side of a reflector, through a client.
#include <utility>

#include "base/http/target.h"
#include "kube/reflector.h"

namespace parallelrun::kube {
namespace {

// A page of 500 large objects from a busy server takes its time.
constexpr CallOptions kListCall{seconds(60), 0};

class ClientListWatcher final : public ListWatcher {
 public:
  ClientListWatcher(Client& client, Selection selection)
      : client_(client), selection_(std::move(selection)) {}

  ApiResult<ListPage> List(const std::string& continue_token, int limit) override {
    ListOptions options;
    options.label_selector = selection_.label_selector;
    options.field_selector = selection_.field_selector;
    options.metadata_only = selection_.metadata_only;
    options.limit = limit;
    options.continue_token = continue_token;
    return client_.List(selection_.resource, selection_.name_space, options, kListCall);
  }

  ApiResult<std::unique_ptr<EventSource>> Watch(const WatchOptions& options) override {
    std::string query = "watch=true&allowWatchBookmarks=true&timeoutSeconds=" +
                        std::to_string(std::chrono::floor<seconds>(options.timeout).count());
    const auto add = [&query](const char* name, const std::string& value) {
      if (!value.empty()) query += std::string("&") + name + "=" + PercentEncode(value);
    };
    add("labelSelector", selection_.label_selector);
    add("fieldSelector", selection_.field_selector);
    add("resourceVersion", options.resource_version);
    if (options.send_initial_events) {
      query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    }
    return client_.Watch(selection_.resource, selection_.name_space, query, kWatchSilence,
                         selection_.metadata_only);
  }

 private:
  Client& client_;
  const Selection selection_;
};

}  // namespace

std::unique_ptr<ListWatcher> MakeListWatcher(Client& client, Selection selection) {
  return std::make_unique<ClientListWatcher>(client, std::move(selection));
}

}  // namespace parallelrun::kube
