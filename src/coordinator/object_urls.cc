#include "coordinator/object_urls.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/escape.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kMostAnswers = 10'000;      // that wait to be signed
constexpr Duration kAskAgain = seconds(10);  // a store that gave none
constexpr char kReplaced[] = "the coordinator knows nothing of its objects: it was replaced";

std::string TooMany(size_t objects) {
  return fmt::format("the URLs of its {} objects are more than {} MiB: lower miniBatchSize",
                     objects, job::kMaxUrlBytes >> 20);
}

uint32_t SecondsOf(Duration life) {
  return static_cast<uint32_t>(std::chrono::floor<seconds>(life).count());
}

}  // namespace

struct ObjectUrls::Signers {
  struct Failure {
    std::string why;
    Instant until;
  };

  std::map<std::string, store::Wished> stores;
  Open open;
  std::stop_token stop;
  std::map<std::string, std::unique_ptr<store::UrlSigner>> opened;
  std::map<std::string, Failure> failed;  // by store

  Result<store::UrlSigner*> Of(const std::string& store) {
    std::unique_ptr<store::UrlSigner>& known = opened[store];
    if (known) return known.get();
    const auto wished = stores.find(store);
    if (wished == stores.end()) return Error{Code::kInvalid, "its store has no keys here"};
    Result<std::unique_ptr<store::UrlSigner>> made = open(wished->second, stop);
    if (!made.ok()) return made.error();
    known = std::move(*made);
    return known.get();
  }

  // URLs of at most `most` bytes.
  Signed Sign(const Task& task, Instant now, size_t most) {
    Signed done{task.lease, store::kUrlLife, "", {}};
    size_t bytes = 0;
    for (const job::ObjectName& object : task.objects) {
      const Result<store::SignedUrl> url = SignOne(object, now);
      if (!url.ok()) return {task.lease, Duration(0), url.error().message, {}};
      done.life = std::min(done.life, url->life);
      done.urls.push_back(url->url);
      bytes += url->url.size() + sizeof(uint32_t);
      if (bytes > most) return {task.lease, store::kUrlLife, "", {}, true};
    }
    return done;
  }

  std::vector<Signed> SignAll(const std::vector<Task>& tasks, Instant now) {
    std::vector<Signed> all;
    size_t left = job::kMaxUrlBytes;
    for (const Task& task : tasks) {
      Signed& one = all.emplace_back(Sign(task, now, left));
      if (one.later && left == job::kMaxUrlBytes) {
        one = {task.lease, Duration(0), TooMany(task.objects.size()), {}};
      }
      for (const std::string& url : one.urls) left -= url.size() + sizeof(uint32_t);
    }
    return all;
  }

  // Whoever waits for a store that gives none holds up all that wait behind it, so such a one is
  // asked once in a while.
  Result<store::SignedUrl> SignOne(const job::ObjectName& object, Instant now) {
    if (const auto known = failed.find(object.store); known != failed.end()) {
      if (now < known->second.until) return Error{Code::kUnavailable, known->second.why};
      failed.erase(known);
    }
    const Result<store::UrlSigner*> signer = Of(object.store);
    Result<store::SignedUrl> url =
        signer.ok() ? (*signer)->Sign(object.location, store::Version(object.version))
                    : Result<store::SignedUrl>(signer.error());
    if (url.ok()) return url;
    std::string why = Printable(url.error().message, kShownLong);
    spdlog::warn("no URLs for the objects of store {}: {}", Printable(object.store, kShown), why);
    failed[object.store] = {why, now + kAskAgain};
    return Error{Code::kUnavailable, std::move(why)};
  }
};

ObjectUrls::ObjectUrls(std::map<std::string, store::Wished> stores,
                       std::vector<job::SideInput> side_inputs, EventLoop& loop, const Clock& clock,
                       Open open)
    : stores_(std::move(stores)),
      side_inputs_(std::move(side_inputs)),
      loop_(loop),
      clock_(clock),
      signers_(
          std::make_shared<Signers>(Signers{stores_, std::move(open), stop_.get_token(), {}, {}})),
      errands_("urls", kMostAnswers, Errands::AtEnd::kForgets) {}

ObjectUrls::~ObjectUrls() {
  stop_.request_stop();
  *alive_ = false;
}

bool ObjectUrls::Finish(Duration limit) {
  stop_.request_stop();
  return errands_.Finish(limit);
}

void ObjectUrls::Prune(Instant now) {
  if (given_.size() < prune_at_) return;
  std::erase_if(given_, [now](const auto& one) { return one.second.ends <= now; });
  prune_at_ = std::max(prune_at_, 2 * given_.size());
}

std::vector<ObjectUrls::Task> ObjectUrls::TasksOf(const std::vector<job::HeldLease>& held,
                                                  const job::ExchangeReply& reply,
                                                  std::vector<job::LeaseName>& unknown) {
  std::vector<Task> tasks;
  for (const job::Leased& leased : reply.leased) {
    if (!job::NamesObjects(leased.work)) continue;
    Result<std::vector<job::ObjectName>> objects = job::ObjectsOf(leased.work);
    if (!objects.ok()) continue;  // its node says so
    const bool ours = std::any_of(objects->begin(), objects->end(), [this](const auto& object) {
      return stores_.contains(object.store);
    });
    if (ours) tasks.push_back({{leased.id, leased.fence}, std::move(*objects)});
  }
  const Instant now = clock_.Now();
  Prune(now);
  for (const job::Adopted& adopted : reply.adopted) {
    auto known = given_.extract({adopted.id, adopted.old_fence});
    if (!known) continue;
    known.key() = {adopted.id, adopted.fence};
    given_.insert(std::move(known));
  }
  for (const job::LeaseName& name : reply.settled) given_.erase(name);
  // One that is another node's is refused, and stays what it is.
  const std::set<job::LeaseName> refused(reply.refused.begin(), reply.refused.end());
  for (const job::HeldLease& lease : held) {
    const job::LeaseName name{lease.id, lease.fence};
    if (refused.contains(name)) continue;
    const auto known = given_.find(name);
    if (known == given_.end()) {
      if (lease.wants_urls) unknown.push_back(name);
    } else if (lease.started) {
      given_.erase(known);  // its objects are files by now
    } else if ((lease.wants_urls || now >= known->second.renew) && !known->second.being_signed) {
      known->second.being_signed = true;
      tasks.push_back({name, known->second.objects, lease.wants_urls});
    }
  }
  return tasks;
}

void ObjectUrls::Answer(const std::vector<job::HeldLease>& held, const job::ExchangeReply& reply,
                        Send send) {
  std::vector<job::LeaseName> unknown;
  std::vector<Task> tasks = TasksOf(held, reply, unknown);
  std::string bytes = job::Encode(reply);
  if (tasks.empty()) {
    AddTo(bytes, {}, {}, unknown);
    return send(std::move(bytes));
  }
  Ask(tasks, [this, bytes = std::move(bytes), tasks, unknown,
              send = std::move(send)](const std::vector<Signed>& all) mutable {
    AddTo(bytes, tasks, all, unknown);
    send(std::move(bytes));
  });
}

void ObjectUrls::AnswerSide(const job::SideUrlsWanted& wanted, SendSide send) {
  const auto side =
      std::find_if(side_inputs_.begin(), side_inputs_.end(), [&](const job::SideInput& one) {
        return one.name == wanted.side_input && stores_.contains(one.store);
      });
  if (side == side_inputs_.end() || wanted.first >= side->objects.size()) {
    return send(
        Error{Code::kNotFound, "there is no such object of a side input that is read by a URL"});
  }
  Task task;
  const size_t end = std::min(side->objects.size(), wanted.first + job::kMostSideUrls);
  for (size_t i = wanted.first; i < end; ++i) {
    const job::SideObject& object = side->objects[i];
    task.objects.push_back({side->store, side->root + "/" + object.name, object.version});
  }
  Ask({std::move(task)}, [send = std::move(send)](const std::vector<Signed>& all) {
    if (all.empty()) return send(Error{Code::kUnavailable, "too many calls wait for URLs"});
    const Signed& one = all.front();
    if (one.urls.empty()) return send(Error{Code::kUnavailable, one.why});
    send(job::SideUrls{SecondsOf(one.life), one.urls});
  });
}

void ObjectUrls::Ask(std::vector<Task> tasks, Then then) {
  const uint64_t number = ++last_;
  waiting_[number] = std::move(then);
  const bool taken = errands_.Ask([this, alive = alive_, loop = &loop_, signers = signers_, number,
                                   tasks = std::move(tasks), now = clock_.Now()] {
    auto all = std::make_shared<std::vector<Signed>>(signers->SignAll(tasks, now));
    if (signers->stop.stop_requested()) return;
    loop->Post([this, alive, number, all] {
      if (*alive) End(number, *all);
    });
  });
  if (!taken) End(number, {});
}

void ObjectUrls::End(uint64_t number, const std::vector<Signed>& all) {
  const auto waiting = waiting_.extract(number);
  if (waiting) waiting.mapped()(all);
}

void ObjectUrls::AddTo(std::string& reply, const std::vector<Task>& tasks,
                       const std::vector<Signed>& all, const std::vector<job::LeaseName>& unknown) {
  const Instant now = clock_.Now();
  std::vector<job::ObjectUrls> urls;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const job::LeaseName& lease = tasks[i].lease;
    const auto known = given_.find(lease);
    if (known != given_.end()) {
      known->second.being_signed = false;
      known->second.renew = now + kAskAgain;
    }
    if (all.empty()) continue;
    const Signed& one = all[i];
    if (one.later) {
      const Instant ends = known == given_.end() ? now + one.life : known->second.ends;
      given_[lease] = {tasks[i].objects, now, ends};
    } else if (!one.urls.empty()) {
      given_[lease] = {tasks[i].objects, now + one.life / 2, now + one.life};
    }
    if (one.later || (one.urls.empty() && !tasks[i].asked)) continue;
    urls.push_back({lease.id, lease.fence, SecondsOf(one.life), one.why, {}});
    for (const std::string& url : one.urls) urls.back().urls.emplace_back(url);
  }
  for (const job::LeaseName& lease : unknown) {
    urls.push_back({lease.id, lease.fence, 0, kReplaced, {}});
  }
  job::AddUrls(reply, urls);
}

}  // namespace parallelrun::coordinator
