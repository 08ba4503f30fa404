// ObjectUrls adds to the answers of exchanges the URLs by which nodes read the objects of what they
// are leased, where only the coordinator has the keys of a store: with the lease, and anew from
// half of their life on, or when the node asks, until run() has begun. Who asks for those of a
// lease that is not known here, as after the coordinator was replaced, is told that there are none:
// it hands the mini-batch back, and is leased it again with others. So nothing of this needs to
// outlive the process. Of side inputs, which are fetched before there is a lease, nodes ask for
// URLs.
//
// Signing may have to wait for a store, or for whoever gives the keys, so it is done on a thread of
// its own. All else, `send` included, is on the loop's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/errands.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/time.h"
#include "job/node_messages.h"
#include "job/side_inputs.h"
#include "job/work_objects.h"
#include "store/url_signer.h"
#include "store/wished.h"

namespace parallelrun::coordinator {

class ObjectUrls {
 public:
  using Open = std::function<Result<std::unique_ptr<store::UrlSigner>>(const store::Wished& wished,
                                                                       std::stop_token stop)>;
  using Send = std::function<void(std::string bytes)>;
  using SendSide = std::function<void(Result<job::SideUrls> urls)>;

  // `stores`: those whose objects nodes read by URLs, by name; `side_inputs`: all that lie in
  // stores. `loop` and `clock` must outlive it.
  ObjectUrls(std::map<std::string, store::Wished> stores, std::vector<job::SideInput> side_inputs,
             EventLoop& loop, const Clock& clock, Open open);
  // Waits for what is being signed: ask Finish first.
  ~ObjectUrls();
  ObjectUrls(const ObjectUrls&) = delete;
  ObjectUrls& operator=(const ObjectUrls&) = delete;

  // Sends the bytes of the answer to a request with these held leases, once its URLs are there.
  void Answer(const std::vector<job::HeldLease>& held, const job::ExchangeReply& reply, Send send);
  // Sends URLs of objects of a side input. kNotFound: there is no such object that is read so;
  // kUnavailable: there are none now.
  void AnswerSide(const job::SideUrlsWanted& wanted, SendSide send);
  // Signs nothing more. False: what waits for a store needs longer than `limit`.
  bool Finish(Duration limit);

 private:
  struct Task {
    job::LeaseName lease;
    std::vector<job::ObjectName> objects;
    bool asked = true;  // it has none that count: whoever has it is told, too, why there are none
  };
  // What came of a task.
  struct Signed {
    job::LeaseName lease;
    Duration life{0};
    std::string why;
    std::vector<std::string> urls;
    bool later = false;  // the answer has no room for them; the next one may
  };
  // What a lease was given.
  struct Given {
    std::vector<job::ObjectName> objects;
    Instant renew;  // while it has not begun
    Instant ends;
    bool being_signed = false;  // anew
  };
  struct Signers;  // by the errands' thread alone
  // In the order of the tasks; of none, too many wait to be signed.
  using Then = std::function<void(const std::vector<Signed>& all)>;

  // `unknown`: of whose leases URLs are asked for in vain.
  std::vector<Task> TasksOf(const std::vector<job::HeldLease>& held,
                            const job::ExchangeReply& reply, std::vector<job::LeaseName>& unknown);
  void Ask(std::vector<Task> tasks, Then then);
  void End(uint64_t number, const std::vector<Signed>& all);
  void AddTo(std::string& reply, const std::vector<Task>& tasks, const std::vector<Signed>& all,
             const std::vector<job::LeaseName>& unknown);
  void Prune(Instant now);

  const std::map<std::string, store::Wished> stores_;
  const std::vector<job::SideInput> side_inputs_;
  EventLoop& loop_;
  const Clock& clock_;
  std::stop_source stop_;
  const std::shared_ptr<Signers> signers_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // on the loop's thread
  std::map<job::LeaseName, Given> given_;
  size_t prune_at_ = 1024;            // leases: then those whose URLs have ended go
  std::map<uint64_t, Then> waiting_;  // only this thread may let go of an exchange
  uint64_t last_ = 0;
  Errands errands_;  // last: what it uses is there
};

}  // namespace parallelrun::coordinator
