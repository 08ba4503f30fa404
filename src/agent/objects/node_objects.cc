#include "agent/objects/node_objects.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "agent/agent_client.h"
#include "agent/side_files.h"
#include "base/small_file.h"
#include "store/object_stores.h"

namespace parallelrun::agent {
namespace {

constexpr Duration kLookAtFetch = seconds(1);
constexpr Duration kLookAtStores = seconds(1);
constexpr char kBootId[] = "/proc/sys/kernel/random/boot_id";
constexpr size_t kMostBootId = 100;

Result<std::unique_ptr<store::Store>> OpenJobStore(const JobStore& store, std::stop_token stop) {
  if (store.urls) return store::OpenUrlStore(store.wished, store.urls, std::move(stop));
  return store::OpenObjectStore(store.wished, std::move(stop));
}

}  // namespace

NodeObjects::NodeObjects(EventLoop& loop, const AgentConfig& config,
                         const RegisterReply& registered, AgentCore& core, NodeProcesses& processes,
                         std::shared_ptr<Files> files, std::function<void()> changed)
    : loop_(loop),
      config_(config),
      registered_(registered),
      core_(core),
      processes_(processes),
      files_(std::move(files)),
      changed_(std::move(changed)) {}

void NodeObjects::Begin() {
  if (!fetcher_ && !registered_.job.stores.empty()) OpenFetcher();
  if (!side_sender_ && !registered_.job.side_store.empty()) OpenSideSender();
  if (!side_inputs_ && !registered_.job.side_inputs.empty()) FetchSideInputs();
}

void NodeObjects::Fetch() {
  core_.TakeObjects(wanted_, let_go_);
  for (const Key key : let_go_) {
    if (fetcher_) fetcher_->LetGo(key);
  }
  for (const ObjectsWanted& wanted : wanted_) {
    if (fetcher_) {
      fetcher_->Want(wanted.key, std::string(wanted.work));
    } else {
      core_.OnNotFetched(wanted.key, {Code::kInvalid, "the job has no store"}, clock_.Now());
    }
  }
  if (core_.TakeAsked() && fetcher_) core_.OnWaits(fetcher_->WaitsFor());
}

void NodeObjects::TakeUrls(const std::vector<job::ObjectUrls>& urls) {
  for (const job::ObjectUrls& one : urls) {
    const std::optional<Key> key = core_.Fetching({one.id, one.fence});
    if (!key || !fetcher_) continue;
    core_.OnUrlsTold(*key);
    fetcher_->TakeUrls(*key, one);
  }
}

void NodeObjects::Finish() {
  if (fetcher_ && !fetcher_->Finish(ObjectFetcher::kEndLimit)) {
    spdlog::warn("the objects of stores are not removed: their disk or a store hangs");
  }
  if (side_sender_) {
    if (!side_sender_->Finish(SideSender::kSideEndLimit)) {
      spdlog::warn("sending side files does not end: their disk or a store hangs");
    }
    RemoveSideFiles(*files_, config_);
  }
  if (side_inputs_ && !side_inputs_->Finish(ObjectFetcher::kEndLimit)) {
    spdlog::warn("fetching the side inputs does not end: their disk or a store hangs");
  }
}

// Side inputs have their room for as long as the node lives, and objects have the rest.
void NodeObjects::OpenFetcher() {
  uint64_t room = registered_.job.cache_bytes;
  for (const job::SideInput& side : registered_.job.side_inputs) {
    room -= std::min(room, side.bytes());
  }
  fetcher_ = std::make_unique<ObjectFetcher>(
      loop_, files_, ObjectFolder(config_.work_folder, config_.node), registered_.job.stores, room,
      OpenJobStore,
      [this](Key key, Result<std::string> work) {
        if (work.ok()) {
          core_.OnFetched(key, std::move(*work));
        } else {
          core_.OnNotFetched(key, work.error(), clock_.Now());
        }
        changed_();
      },
      [this](Key key) { core_.OnUrlEnded(key); });
  LookAtStores();
}

// What an agent before this one has left goes first: no process writes there yet.
void NodeObjects::OpenSideSender() {
  RemoveSideFiles(*files_, config_);
  side_sender_ = std::make_unique<SideSender>(
      loop_, SideSenderFacts(config_, registered_.job.side_store),
      [this](uint32_t process, SideFilesAnswer answer, const std::string& text) {
        processes_.TellSideFiles(process, answer, text);
      });
  processes_.SendSideFiles(
      [this](uint32_t process, job::BatchId mini_batch, job::SideList list) {
        side_sender_->Send(process, mini_batch, std::move(list));
      },
      [this](uint32_t process) { side_sender_->Forget(process); });
  LookAtStores();
}

// For all that asks stores.
void NodeObjects::LookAtStores() {
  if (!std::exchange(looks_at_stores_, true)) LookAtStoresAgain();
}

void NodeObjects::LookAtStoresAgain() {
  std::string waits = fetcher_ ? fetcher_->StoreWait() : "";
  if (waits.empty() && side_sender_) waits = side_sender_->WaitsFor();
  core_.OnStoreWait(waits);
  changed_();
  loop_.After(kLookAtStores, [this] { LookAtStoresAgain(); });
}

void NodeObjects::FetchSideInputs() {
  SideInputFetcher::Facts facts;
  facts.files = files_;
  facts.folder = SideInputFolder(config_.work_folder, config_.node);
  facts.boot = OrEmpty(ReadSmallFile(kBootId, kMostBootId));
  facts.side_inputs = registered_.job.side_inputs;
  facts.stores = registered_.job.stores;
  facts.open = OpenJobStore;
  // A client of its own: its thread may be left behind with it.
  const Result<HttpClientOptions> options = ClientOptions(config_);
  Result<std::unique_ptr<HttpClient>> made =
      options.ok() ? HttpClient::Make(*options)
                   : Result<std::unique_ptr<HttpClient>>(options.error());
  if (!made.ok()) return OnSideInputs(made.error());
  facts.ask_urls = [client = std::shared_ptr<HttpClient>(std::move(*made)), node = config_.node](
                       const job::SideUrlsWanted& wanted, const std::stop_token& stop) {
    return AskForSideUrls(*client, node, wanted, stop);
  };
  side_inputs_ = std::make_unique<SideInputFetcher>(
      loop_, std::move(facts), [this](const Status& fetched) { OnSideInputs(fetched); });
  fetches_ = true;
  LookAtFetch();
}

void NodeObjects::LookAtFetch() {
  if (!fetches_) return;
  const SideInputFetcher::Progress at = side_inputs_->Now();
  core_.OnFetching(at.text, at.bytes);
  changed_();
  loop_.After(kLookAtFetch, [this] { LookAtFetch(); });
}

void NodeObjects::OnSideInputs(const Status& fetched) {
  fetches_ = false;
  if (fetched.ok()) {
    spdlog::info("the side inputs are there");
    core_.OnFetching("", side_inputs_->Now().bytes);
  } else {
    core_.OnSideInputsLost(fetched.error().message, clock_.Now());
  }
  changed_();
}

}  // namespace parallelrun::agent
