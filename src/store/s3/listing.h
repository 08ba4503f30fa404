// The keys behind a prefix, page by page. The next page begins behind the last key of the one
// before, by its name: so a listing goes on where another one ended, in this program or a later
// one, and a page that failed is just asked for again.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "store/objects/wanted_names.h"
#include "store/s3/answers.h"
#include "store/s3/bucket.h"
#include "store/store.h"

namespace parallelrun::store::s3 {

// Whether any key begins with the bucket's prefix, be it a folder's, "in/" itself; without a prefix
// the bucket is there that answers.
Result<bool> HoldsAny(Bucket& bucket);

class Listing final : public store::Listing {
 public:
  // Names behind `after`; "": all. The bucket must outlive it.
  Listing(Bucket& bucket, Wanted wanted, const std::string& after);

  // Left out, beside what is not wanted: keys that end in '/', which are how consoles make folders;
  // one that holds bytes is told (Wanted::no_file).
  Result<std::optional<Listed>> Next() override;

 private:
  Status NextPage();

  Bucket& bucket_;
  WantedNames wanted_;
  std::string after_;  // a key: the next page begins behind it; "" at the begin
  std::string last_;   // the key that came last: the server must keep to the order
  ListPage page_{{}, true};
  size_t at_ = 0;
};

}  // namespace parallelrun::store::s3
