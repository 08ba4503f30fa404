#include "coordinator/start/output_store.h"

#include <cassert>
#include <limits>
#include <utility>

#include "ledger/chain_note.h"
#include "ledger/state_notes.h"
#include "ledger/stored_notes.h"
#include "output/store/store_claim.h"
#include "output/store/upload_notes.h"
#include "store/object_stores.h"
#include "store/s3/open_bucket.h"
#include "store/s3/s3_write_store.h"

namespace parallelrun::coordinator {
namespace {

constexpr Duration kLittlePatience = seconds(10);

const store::Wished& WishedOf(const JobLayout& layout, const std::string& name) {
  const auto found = layout.stores.find(name);
  assert(found != layout.stores.end());
  return found->second;
}

Result<std::unique_ptr<store::WriteStore>> OpenForWrites(const store::Wished& wished,
                                                         std::stop_token stop,
                                                         const store::RetryLimits& limits,
                                                         const char* field) {
  Result<std::unique_ptr<store::s3::Bucket>> bucket =
      store::s3::OpenBucket(wished, std::move(stop), limits);
  if (!bucket.ok()) return bucket.error().With(field);
  return store::s3::MakeWriteStore(std::move(*bucket), wished.encryption);
}

}  // namespace

Result<std::unique_ptr<store::WriteStore>> OpenOutputStore(const JobLayout& layout,
                                                           std::stop_token stop,
                                                           Duration patience) {
  store::RetryLimits limits;
  limits.in_all = patience;
  return OpenForWrites(WishedOf(layout, layout.output_store), std::move(stop), limits,
                       "spec.output");
}

Result<std::unique_ptr<store::WriteStore>> OpenLogStore(const JobLayout& layout,
                                                        std::stop_token stop) {
  store::Wished wished = WishedOf(layout, layout.log_store);
  wished.url = layout.log_url;
  return OpenForWrites(wished, std::move(stop), {}, "spec.logs");
}

Result<std::unique_ptr<store::WriteStore>> OpenStateStore(const JobLayout& layout,
                                                          const std::string& url,
                                                          std::stop_token stop, Duration patience) {
  store::Wished wished = WishedOf(layout, layout.state_store);
  wished.url = url;
  store::RetryLimits limits;
  limits.in_all = patience;
  return OpenForWrites(wished, std::move(stop), limits, "spec.state");
}

Result<std::unique_ptr<store::Store>> OpenStateList(const JobLayout& layout, const std::string& url,
                                                    std::stop_token stop) {
  store::Wished wished = WishedOf(layout, layout.state_store);
  wished.url = url;
  return store::OpenObjectStore(wished, std::move(stop));
}

Result<std::unique_ptr<store::Store>> OpenLogList(const JobLayout& layout, std::stop_token stop) {
  store::Wished wished = WishedOf(layout, layout.log_store);
  wished.url = layout.log_url;
  return store::OpenObjectStore(wished, std::move(stop));
}

namespace {

// What coordinators of this machine have noted; none where they have begun no state.
Result<std::unique_ptr<ledger::StateNotes>> OpenLeftNotes(Files& files, const JobLayout& layout,
                                                          Duration patience) {
  if (layout.state_store.empty()) return ledger::MakeFolderNotes(files, layout.state_folder);
  const Result<std::optional<ledger::ChainNote>> note =
      ledger::ReadChainNote(files, layout.state_folder);
  if (!note.ok()) return note.error();
  if (!*note) return std::unique_ptr<ledger::StateNotes>();
  Result<std::unique_ptr<store::WriteStore>> store =
      OpenStateStore(layout, (*note)->place, {}, patience);
  if (!store.ok()) return store.error();
  Result<std::unique_ptr<store::Store>> listed = OpenStateList(layout, (*note)->place, {});
  if (!listed.ok()) return listed.error();
  return ledger::MakeStoredNotes(std::move(*store), std::move(*listed));
}

}  // namespace

Status RemoveLeftInStore(Files& files, const JobLayout& layout) {
  const Result<std::unique_ptr<store::WriteStore>> store =
      OpenOutputStore(layout, {}, kLittlePatience);
  if (!store.ok()) return store.error();
  // A listing would be repeated for minutes where the store is away.
  if (!layout.state_store.empty()) {
    const Result<std::optional<store::Stored>> there = (*store)->Look(layout.output_name);
    if (!there.ok()) return there.error();
  }
  const Result<std::unique_ptr<ledger::StateNotes>> notes =
      OpenLeftNotes(files, layout, kLittlePatience);
  if (!notes.ok()) return notes.error();
  if (!*notes) return {};
  Status ended = output::EndNotedUploads(**notes, std::numeric_limits<uint32_t>::max(), **store,
                                         layout.output_name);
  if (!ended.ok()) return ended;
  return output::RemoveClaimInStore(**store, files, layout.state_folder, layout.output_name);
}

}  // namespace parallelrun::coordinator
