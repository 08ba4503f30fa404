#include "coordinator/start/output_place.h"

#include <spdlog/fmt/fmt.h>

#include <set>
#include <stop_token>
#include <utility>

#include "coordinator/start/output_folder.h"
#include "coordinator/start/output_store.h"
#include "coordinator/start/stored_reports.h"
#include "ledger/claim.h"
#include "output/folder_sink.h"
#include "output/output_file.h"
#include "output/side_files.h"
#include "output/store/side_upload_notes.h"
#include "output/store/store_claim.h"
#include "output/store/store_sink.h"
#include "output/store/upload_notes.h"

namespace parallelrun::coordinator {
namespace {

class FolderPlace final : public OutputPlace {
 public:
  FolderPlace(const CoordinatorConfig& config, const JobLayout& layout, Files& files)
      : config_(config), layout_(layout), files_(files) {}

  // Their tokens are removed when the epoch is claimed.
  Status EndOlder(uint32_t) override { return {}; }
  Status Look(NewRun& run) override { return LookAtOutput(config_, layout_, files_, run); }
  Result<std::string> Damage(const job::Published& published, uint64_t, uint32_t,
                             const std::function<void()>& step) override {
    return output::DamageOf(files_, layout_.published_path, published, step);
  }
  HaveSideFiles SideFiles(uint64_t run_id) override {
    return HaveStagedFiles(files_, layout_.output_folder, output::StagingNameOf(run_id));
  }
  // A coordinator of theirs that still believes in itself finds it no more.
  Status EndOtherSideFiles(const ledger::Ledger& ledger) override {
    std::set<uint64_t> runs;
    for (uint32_t epoch = 1; epoch <= ledger.epoch(); ++epoch) {
      const auto run = ledger::RunOfEpoch(files_, layout_.state_folder, epoch);
      if (run.ok() && *run) runs.insert(**run);
    }
    runs.erase(ledger.run_id());
    Status first;
    for (const uint64_t run : runs) {
      Status removed = output::RemoveStaged(files_, layout_.output_folder, run);
      if (first.ok()) first = std::move(removed);
    }
    return first;
  }
  Status Hold(const output::ClaimOptions& options) override {
    Result<output::HeldOutput> held = output::ClaimOutput(files_, options);
    if (!held.ok()) return held.error();
    held_ = std::move(*held);
    return {};
  }
  Status GiveBack() override { return output::ReleaseOutput(files_, held_); }
  std::shared_ptr<output::Sink> MakeSink(const ledger::Ledger& ledger, uint32_t) override {
    if (layout_.published_path.empty()) return nullptr;
    return output::MakeFolderSink(files_, layout_.published_path, ledger.token_path(), held_);
  }

 private:
  const CoordinatorConfig& config_;
  const JobLayout& layout_;
  Files& files_;
  output::HeldOutput held_;
};

class StorePlace final : public OutputPlace {
 public:
  StorePlace(const JobLayout& layout, Files& files, ledger::StateNotes& notes)
      : layout_(layout), files_(files), notes_(notes) {}

  Status Open() {
    Result<std::unique_ptr<store::WriteStore>> store = OpenOutputStore(layout_, stop_.get_token());
    if (!store.ok()) return store.error();
    store_ = std::move(*store);
    return {};
  }

  Status EndOlder(uint32_t epoch) override {
    return output::EndNotedUploads(notes_, epoch - 1, *store_, layout_.output_name);
  }
  Status Look(NewRun& run) override {
    const Result<std::optional<store::Stored>> there = store_->Look(layout_.output_name);
    if (!there.ok()) return there.error();
    run.output_there = there->has_value();
    if (!*there) return {};
    at_start_ = (*there)->found.version;
    run.output_bytes = (*there)->found.size;
    return {};
  }
  Result<std::string> Damage(const job::Published& published, uint64_t run_id, uint32_t generation,
                             const std::function<void()>& step) override {
    return output::DamageInStore(*store_, layout_.output_name, published, {run_id, generation},
                                 step);
  }
  HaveSideFiles SideFiles(uint64_t run_id) override {
    return [this, run_id](const std::vector<job::SideList>& lists) {
      return output::HaveSideFiles(PlacesOf(run_id), lists);
    };
  }
  Status EndOtherSideFiles(const ledger::Ledger& ledger) override {
    return output::EndSideUploads(
        notes_, *store_, [&ledger](uint64_t run) { return run != ledger.run_id(); },
        [](const std::string&) { return false; });
  }
  std::optional<output::StoredSidePlaces> StoredSide(const ledger::Ledger& ledger) override {
    return PlacesOf(ledger.run_id());
  }
  Status Hold(const output::ClaimOptions& options) override {
    Result<output::HeldOutput> held =
        output::ClaimInStore(*store_, files_, layout_.output_name, options);
    if (!held.ok()) return held.error();
    held_ = std::move(*held);
    return {};
  }
  Status GiveBack() override { return output::ReleaseInStore(*store_, held_); }
  std::shared_ptr<output::Sink> MakeSink(const ledger::Ledger& ledger,
                                         uint32_t generation) override {
    output::StoreSinkOptions options;
    options.name = layout_.output_name;
    options.epoch = ledger.epoch();
    options.mark = {ledger.run_id(), generation};
    options.at_start = at_start_;
    options.held = held_;
    options.newest = [&ledger] { return ledger.CheckNewest(); };
    return output::MakeStoreSink(notes_, *store_, std::move(options));
  }
  Status PutReports(const LogFolder& logs, const ledger::Ledger& ledger,
                    uint32_t generation) override {
    return PutStoredReports(*store_, logs,
                            {layout_.output_name, {ledger.run_id(), generation}, [&ledger] {
                               return ledger.CheckNewest();
                             }});
  }
  void Stop() override { stop_.request_stop(); }

 private:
  output::StoredSidePlaces PlacesOf(uint64_t run_id) const {
    output::StoredSidePlaces places;
    places.store = store_.get();
    places.notes = &notes_;
    places.folder = SideFolderOf(layout_);
    places.run_id = run_id;
    places.reserved = output::ReservedNames(layout_.output_name.substr(places.folder.size()), true);
    places.held = [this] { return output::KeepInStore(*store_, held_); };
    return places;
  }

  const JobLayout& layout_;
  Files& files_;
  ledger::StateNotes& notes_;
  std::stop_source stop_;
  std::unique_ptr<store::WriteStore> store_;
  store::Expected at_start_;
  output::HeldOutput held_;
};

}  // namespace

Result<std::unique_ptr<OutputPlace>> OpenOutput(const CoordinatorConfig& config,
                                                const JobLayout& layout, Files& files,
                                                ledger::StateNotes& notes) {
  if (layout.output_store.empty()) {
    return std::unique_ptr<OutputPlace>(std::make_unique<FolderPlace>(config, layout, files));
  }
  auto place = std::make_unique<StorePlace>(layout, files, notes);
  if (Status opened = place->Open(); !opened.ok()) return opened.error();
  return std::unique_ptr<OutputPlace>(std::move(place));
}

}  // namespace parallelrun::coordinator
