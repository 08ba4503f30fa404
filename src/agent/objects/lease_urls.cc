#include "agent/objects/lease_urls.h"

#include <algorithm>
#include <utility>

namespace parallelrun::agent {

void LeaseUrls::Take(Key key, const job::ObjectUrls& urls, Instant now) {
  why_ = std::string(urls.why);
  if (urls.urls.empty()) {
    none_.insert(key);
    return;
  }
  none_.erase(key);
  Lease& lease = leases_[key];
  lease.urls = {urls.urls.begin(), urls.urls.end()};
  lease.ends = now + seconds(urls.seconds);
  Put(lease, now);
}

void LeaseUrls::Want(Key key, std::vector<job::ObjectName> objects, Instant now) {
  const bool by_urls =
      std::any_of(stores_.begin(), stores_.end(), [](const JobStore& store) { return store.urls; });
  if (!by_urls) return;
  Lease& lease = leases_[key];
  lease.objects = std::move(objects);
  Put(lease, now);
}

void LeaseUrls::LetGo(Key key) {
  leases_.erase(key);
  none_.erase(key);
}

bool LeaseUrls::Ended(const job::ObjectName& object, Instant now) const {
  return std::any_of(stores_.begin(), stores_.end(), [&](const JobStore& store) {
    return store.name == object.store && store.urls && !store.urls->Get(object.location, now);
  });
}

void LeaseUrls::Put(const Lease& lease, Instant now) {
  for (size_t i = 0; i < std::min(lease.objects.size(), lease.urls.size()); ++i) {
    const job::ObjectName& object = lease.objects[i];
    for (const JobStore& store : stores_) {
      if (store.name != object.store || !store.urls) continue;
      store.urls->Put(object.location, {lease.urls[i], store::Version(object.version), lease.ends},
                      now);
    }
  }
}

}  // namespace parallelrun::agent
