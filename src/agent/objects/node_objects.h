// NodeObjects carries out what AgentCore decides about the objects of stores on this node, those of
// mini-batches and of side inputs, and tells it what has come of them, and which store keeps the
// node waiting. It has side files sent that processes leave for a store.
//
// Thread-safety: none; made, used and destroyed on the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "agent/agent_config.h"
#include "agent/core/agent_core.h"
#include "agent/objects/fetcher.h"
#include "agent/objects/side_inputs.h"
#include "agent/objects/side_sender.h"
#include "agent/processes/node_processes.h"
#include "base/event_loop.h"
#include "base/files.h"
#include "base/time.h"

namespace parallelrun::agent {

class NodeObjects {
 public:
  // As those of NodeProcesses.
  NodeObjects(EventLoop& loop, const AgentConfig& config, const RegisterReply& registered,
              AgentCore& core, NodeProcesses& processes, std::shared_ptr<Files> files,
              std::function<void()> changed);

  // After a registration: the first that names stores, side inputs or a store of side files opens
  // them.
  void Begin();
  // Fetches what the core wants by now, and lets go of the rest.
  void Fetch();
  // That came with an answer.
  void TakeUrls(const std::vector<job::ObjectUrls>& urls);
  // Ends what goes on.
  void Finish();

 private:
  void OpenFetcher();
  void OpenSideSender();
  void FetchSideInputs();
  void LookAtFetch();
  void LookAtStores();
  void LookAtStoresAgain();
  void OnSideInputs(const Status& fetched);

  EventLoop& loop_;
  const AgentConfig& config_;
  const RegisterReply& registered_;
  AgentCore& core_;
  NodeProcesses& processes_;
  const std::shared_ptr<Files> files_;
  const std::function<void()> changed_;
  const SystemClock clock_;
  std::unique_ptr<ObjectFetcher> fetcher_;         // of a job whose inputs lie in stores
  std::unique_ptr<SideInputFetcher> side_inputs_;  // likewise
  std::unique_ptr<SideSender> side_sender_;        // of one whose side files go to a store
  bool fetches_ = false;                           // some side inputs
  bool looks_at_stores_ = false;
  std::vector<ObjectsWanted> wanted_;
  std::vector<Key> let_go_;
};

}  // namespace parallelrun::agent
