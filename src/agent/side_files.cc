#include "agent/side_files.h"

#include <spdlog/spdlog.h>

#include <cstddef>
#include <memory>
#include <stop_token>
#include <utility>

#include "agent/agent_client.h"
#include "agent/folder_tree.h"
#include "base/http/client.h"
#include "store/object_stores.h"

namespace parallelrun::agent {

namespace {

constexpr size_t kAskConnections = 2;  // to the coordinator, which counts those of all nodes

}  // namespace

SideSender::Facts SideSenderFacts(const AgentConfig& config, const std::string& side_store) {
  SideSender::Facts facts;
  facts.folder = SideFileFolder(config.work_folder, config.node);
  facts.open = [side_store](std::stop_token stop) {
    store::Wished wished;
    wished.url = side_store;
    return store::OpenPartPutter(wished, std::move(stop));
  };
  Result<HttpClientOptions> options = ClientOptions(config);
  if (options.ok()) options->max_connections = kAskConnections;
  Result<std::unique_ptr<HttpClient>> made =
      options.ok() ? HttpClient::Make(*options)
                   : Result<std::unique_ptr<HttpClient>>(options.error());
  if (made.ok()) {
    facts.ask = [client = std::shared_ptr<HttpClient>(std::move(*made)), node = config.node](
                    const job::SideUploadsWanted& wanted, const std::stop_token& stop) {
      return AskForSideUploads(*client, node, wanted, stop);
    };
  } else {  // each call says why
    facts.ask = [why = made.error()](const job::SideUploadsWanted&, const std::stop_token&) {
      return Result<job::SideUploads>(why);
    };
  }
  return facts;
}

void RemoveSideFiles(const Files& files, const AgentConfig& config) {
  const std::string path = SideFileFolder(config.work_folder, config.node);
  const size_t slash = path.rfind('/');
  const auto beside = files.OpenFolder(path.substr(0, slash), Links::kFollow);
  const Status removed =
      beside.ok() ? RemoveTree(**beside, path.substr(slash + 1)) : Status(beside.error());
  if (!removed.ok()) spdlog::warn("side files are left on this node: {}", removed.error().message);
}

}  // namespace parallelrun::agent
