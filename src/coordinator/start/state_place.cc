#include "coordinator/start/state_place.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "base/random.h"
#include "coordinator/start/output_store.h"
#include "ledger/chain_ledger.h"
#include "ledger/chain_note.h"
#include "ledger/stored_links.h"
#include "ledger/stored_notes.h"
#include "output/store/store_claim.h"

namespace parallelrun::coordinator {
namespace {

class FolderState final : public StatePlace {
 public:
  FolderState(const JobLayout& layout, Files& files)
      : layout_(layout),
        files_(files),
        notes_(ledger::MakeFolderNotes(files, layout.state_folder)) {}

  ledger::StateNotes& notes() override { return *notes_; }

  Result<std::unique_ptr<ledger::Ledger>> Claim(const ledger::Ledger::Visitor& visit) override {
    ledger::LedgerOptions options;
    options.state_folder = layout_.state_folder;
    if (!layout_.published_path.empty() && layout_.output_store.empty()) {
      options.output_folder = layout_.output_folder;
      options.output_file = std::filesystem::path(layout_.published_path).filename();
    }
    options.nonce = RandomU64();
    options.new_run_id = RandomU64();
    return ledger::Ledger::Claim(files_, options, visit);
  }

 private:
  const JobLayout& layout_;
  Files& files_;
  const std::unique_ptr<ledger::StateNotes> notes_;
};

class StoreState final : public StatePlace {
 public:
  StoreState(const CoordinatorConfig& config, const JobLayout& layout, Files& files)
      : config_(config), layout_(layout), files_(files) {}

  Status Open() {
    if (Status placed = FindPlace(); !placed.ok()) return placed;
    const std::string& url = note_.place;
    auto store = OpenStateStore(layout_, url, stop_.get_token());
    if (!store.ok()) return store.error();
    auto listed = OpenStateList(layout_, url, stop_.get_token());
    if (!listed.ok()) return listed.error();
    links_ = ledger::MakeStoredLinks(std::move(*store), std::move(*listed));
    store = OpenStateStore(layout_, url, stop_.get_token());
    if (!store.ok()) return store.error();
    listed = OpenStateList(layout_, url, stop_.get_token());
    if (!listed.ok()) return listed.error();
    notes_ = ledger::MakeStoredNotes(std::move(*store), std::move(*listed));
    return {};
  }

  ledger::StateNotes& notes() override { return *notes_; }

  Result<std::unique_ptr<ledger::Ledger>> Claim(const ledger::Ledger::Visitor& visit) override {
    const api::JobMetadata& metadata = config_.job.metadata;
    ledger::ChainLedgerOptions options;
    options.chain.owner =
        fmt::format("{}{} ({})", metadata.name_space.empty() ? "" : metadata.name_space + "/",
                    metadata.name, note_.place.substr(note_.place.rfind('/') + 1));
    options.chain.nonce = RandomU64();
    options.chain.new_run_id = RandomU64();
    const Result<uint32_t> seen = SeenEpoch();
    if (!seen.ok()) return seen.error();
    options.chain.seen_epoch = *seen;
    options.copy_path = layout_.state_folder + "/chain.copy";
    Result<std::unique_ptr<ledger::Ledger>> claimed =
        ledger::ClaimChain(*links_, files_, options, visit);
    if (!claimed.ok()) return claimed;
    // The claim of the output names both.
    note_.epoch = (*claimed)->epoch();
    note_.run_id = (*claimed)->run_id();
    if (Status noted = Note(); !noted.ok()) return noted.error();
    return claimed;
  }

  void Stop() override { stop_.request_stop(); }

 private:
  // On a cluster it is named after the resource, here after what was drawn for this folder: the
  // names of jobs are used again.
  Status FindPlace() {
    const std::string front = layout_.state_url + "/" + config_.job.metadata.name + "-";
    const Result<std::optional<ledger::ChainNote>> kept =
        ledger::ReadChainNote(files_, layout_.state_folder);
    if (!kept.ok()) return kept.error();
    if (config_.in_pod()) {
      note_.place = front + config_.resource_uid;
    } else if (!*kept || !(*kept)->place.starts_with(front)) {
      note_.place = front + fmt::format("{:016x}", RandomU64());
    } else {
      note_.place = (*kept)->place;
    }
    if (*kept && (*kept)->place == note_.place) note_ = **kept;
    return Note();
  }

  // That this machine has claimed; or, where the coordinator's pod is another one by now, that this
  // job has claimed its output with.
  Result<uint32_t> SeenEpoch() {
    if (!config_.in_pod()) return note_.epoch;
    const Result<std::unique_ptr<store::WriteStore>> store =
        OpenOutputStore(layout_, stop_.get_token());
    if (!store.ok()) return store.error();
    const Result<std::optional<output::OutputOwner>> owner =
        output::OwnerInStore(**store, layout_.output_name);
    if (!owner.ok()) return owner.error();
    const bool own = *owner && (*owner)->uid == config_.resource_uid;
    return std::max(note_.epoch, own ? (*owner)->epoch : 0);
  }

  Status Note() { return ledger::WriteChainNote(files_, layout_.state_folder, note_); }

  const CoordinatorConfig& config_;
  const JobLayout& layout_;
  Files& files_;
  std::stop_source stop_;
  ledger::ChainNote note_;
  std::unique_ptr<ledger::LinkStore> links_;
  std::unique_ptr<ledger::StateNotes> notes_;
};

}  // namespace

Result<std::unique_ptr<StatePlace>> OpenState(const CoordinatorConfig& config,
                                              const JobLayout& layout, Files& files) {
  if (Status made = files.MakeFolders(layout.state_folder); !made.ok()) return made.error();
  if (layout.state_store.empty()) {
    return std::unique_ptr<StatePlace>(std::make_unique<FolderState>(layout, files));
  }
  auto place = std::make_unique<StoreState>(config, layout, files);
  if (Status opened = place->Open(); !opened.ok()) return opened.error();
  return std::unique_ptr<StatePlace>(std::move(place));
}

}  // namespace parallelrun::coordinator
