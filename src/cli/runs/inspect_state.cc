#include "cli/runs/inspect_state.h"

#include <memory>
#include <optional>
#include <utility>

#include "cli/runs/run_record.h"
#include "coordinator/start/layout.h"
#include "coordinator/start/output_store.h"
#include "ledger/chain_ledger.h"
#include "ledger/chain_note.h"
#include "ledger/stored_links.h"

namespace parallelrun::cli {
namespace {

Result<std::unique_ptr<ledger::LinkStore>> OpenLinks(const std::string& state_folder,
                                                     const std::string& place) {
  const Result<RunRecord> record = ReadRunRecord(state_folder);
  if (!record.ok()) return record.error().With("the ledger of this run is in " + place);
  const Result<coordinator::JobLayout> layout = coordinator::LayOut(record->job, record->volumes);
  if (!layout.ok()) return layout.error();
  if (layout->state_store.empty()) {
    return Error{Code::kInvalid,
                 "the ledger of this run is in " + place + ", and its job names no store for it"};
  }
  Result<std::unique_ptr<store::WriteStore>> store =
      coordinator::OpenStateStore(*layout, place, {});
  if (!store.ok()) return store.error();
  Result<std::unique_ptr<store::Store>> listed = coordinator::OpenStateList(*layout, place, {});
  if (!listed.ok()) return listed.error();
  return ledger::MakeStoredLinks(std::move(*store), std::move(*listed));
}

}  // namespace

Result<uint64_t> InspectState(const Files& files, const std::string& state_folder,
                              const ledger::Ledger::Visitor& visit) {
  const Result<std::optional<ledger::ChainNote>> note = ledger::ReadChainNote(files, state_folder);
  if (!note.ok()) return note.error();
  if (!*note) return ledger::Ledger::Inspect(files, state_folder, visit);
  const Result<std::unique_ptr<ledger::LinkStore>> links = OpenLinks(state_folder, (*note)->place);
  if (!links.ok()) return links.error();
  return ledger::InspectChain(**links, visit);
}

}  // namespace parallelrun::cli
