// The keys behind a prefix, page by page. The next page begins behind the last key of the one
// before, by its name: so a listing goes on where another one ended, in this program or a later
// one, a page that failed is just asked for again, and of a long listing several pages are asked
// for at once (KeyRanges), on threads of the listing's own. Its end waits for the requests that
// are under way; they are not repeated then.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/thread.h"
#include "store/objects/wanted_names.h"
#include "store/s3/answers.h"
#include "store/s3/bucket.h"
#include "store/s3/key_ranges.h"
#include "store/store.h"

namespace parallelrun::store::s3 {

// Whether any key begins with the bucket's prefix, be it a folder's, "in/" itself; without a prefix
// the bucket is there that answers.
Result<bool> HoldsAny(Bucket& bucket);

class Listing final : public store::Listing {
 public:
  // Names behind `after`; "": all. The bucket must outlive it.
  Listing(Bucket& bucket, Wanted wanted, const std::string& after);
  ~Listing() override;
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;

  // Left out, beside what is not wanted: keys that end in '/', which are how consoles make folders;
  // one that holds bytes is told (Wanted::no_file).
  Result<std::optional<Listed>> Next() override;

 private:
  // False: there is none.
  Result<bool> NextPage();
  void PassOverFolder();
  void Begin();
  void Work();
  // Without the lock meanwhile.
  void Carry(const KeyRanges::Ask& ask, std::unique_lock<std::mutex>& lock);

  Bucket& bucket_;
  const KeyRanges::Limits limits_;
  WantedNames wanted_;
  std::vector<ListedKey> page_;  // that is read, up to at_
  size_t at_ = 0;
  std::stop_source ends_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  KeyRanges ranges_;
  std::vector<Thread> threads_;  // begun when there is something for several to do
};

}  // namespace parallelrun::store::s3
