// LeaseUrls hands on to the tables of stores (store/url_table.h) the URLs that came with leases,
// once it is known which objects these name: URLs and Work arrive in either order. Not thread-safe.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/agent_config.h"
#include "agent/core/agent_types.h"
#include "base/time.h"
#include "job/node_messages.h"
#include "job/work_objects.h"

namespace parallelrun::agent {

class LeaseUrls {
 public:
  // `stores` must outlive it.
  explicit LeaseUrls(const std::vector<JobStore>& stores) : stores_(stores) {}

  // Of a mini-batch that is held; ones that come later are used in place of these.
  void Take(Key key, const job::ObjectUrls& urls, Instant now);
  // The objects of a mini-batch, in the order of its URLs.
  void Want(Key key, std::vector<job::ObjectName> objects, Instant now);
  void LetGo(Key key);

  // It is read by a URL, and has none that counts.
  bool Ended(const job::ObjectName& object, Instant now) const;
  // What came last for it is that there are none.
  bool None(Key key) const { return none_.contains(key); }
  // Why; "" if those that came last of all were some.
  const std::string& why() const { return why_; }

 private:
  struct Lease {
    std::vector<job::ObjectName> objects;
    std::vector<std::string> urls;  // in their order
    Instant ends{};
  };

  void Put(const Lease& lease, Instant now);

  const std::vector<JobStore>& stores_;  // that few: a walk finds one
  std::map<Key, Lease> leases_;
  std::set<Key> none_;
  std::string why_;
};

}  // namespace parallelrun::agent
