#include "coordinator/start/output_store.h"

#include <cassert>
#include <limits>
#include <utility>

#include "output/store/store_claim.h"
#include "output/store/upload_notes.h"
#include "store/s3/open_bucket.h"
#include "store/s3/s3_write_store.h"

namespace parallelrun::coordinator {
namespace {

constexpr Duration kLittlePatience = seconds(10);

}  // namespace

Result<std::unique_ptr<store::WriteStore>> OpenOutputStore(const JobLayout& layout,
                                                           std::stop_token stop,
                                                           Duration patience) {
  const auto found = layout.stores.find(layout.output_store);
  assert(found != layout.stores.end());
  store::RetryLimits limits;
  limits.in_all = patience;
  Result<std::unique_ptr<store::s3::Bucket>> bucket =
      store::s3::OpenBucket(found->second, std::move(stop), limits);
  if (!bucket.ok()) return bucket.error().With("spec.output");
  return store::s3::MakeWriteStore(std::move(*bucket), found->second.encryption);
}

Status RemoveLeftInStore(Files& files, const JobLayout& layout) {
  const Result<std::unique_ptr<store::WriteStore>> store =
      OpenOutputStore(layout, {}, kLittlePatience);
  if (!store.ok()) return store.error();
  Status ended =
      output::EndNotedUploads(files, layout.state_folder, std::numeric_limits<uint32_t>::max(),
                              **store, layout.output_name);
  if (!ended.ok()) return ended;
  return output::RemoveClaimInStore(**store, files, layout.state_folder, layout.output_name);
}

}  // namespace parallelrun::coordinator
