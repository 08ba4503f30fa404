#include "coordinator/start/state_place.h"

#include <filesystem>

#include "base/random.h"

namespace parallelrun::coordinator {
namespace {

class FolderState final : public StatePlace {
 public:
  FolderState(const CoordinatorConfig& config, const JobLayout& layout, Files& files)
      : config_(config),
        layout_(layout),
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
  const CoordinatorConfig& config_;
  const JobLayout& layout_;
  Files& files_;
  const std::unique_ptr<ledger::StateNotes> notes_;
};

}  // namespace

Result<std::unique_ptr<StatePlace>> OpenState(const CoordinatorConfig& config,
                                              const JobLayout& layout, Files& files) {
  if (Status made = files.MakeFolders(layout.state_folder); !made.ok()) return made.error();
  return std::unique_ptr<StatePlace>(std::make_unique<FolderState>(config, layout, files));
}

}  // namespace parallelrun::coordinator
