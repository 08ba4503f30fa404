// SideUploads begins uploads for side files that nodes send to the store of the output, and signs
// the URLs by which they send the parts: one key, one upload, one part each. Nodes have no keys of
// that store, and can complete, list and read nothing by these. What is begun is noted beside the
// ledger before anybody hears of it, so that whoever publishes ends what comes to nothing
// (output/store/side_upload_notes.h).
//
// All that waits for a store or a disk is done on threads of its own, many calls together. All
// else, `send` included, is on the loop's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/errands.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/time.h"
#include "job/side_uploads.h"
#include "output/store/store_sink.h"
#include "output/store/stored_side_files.h"
#include "store/url_signer.h"

namespace parallelrun::coordinator {

class SideUploads {
 public:
  using Send = std::function<void(const Result<job::SideUploads>& uploads)>;
  struct Options {
    output::StoredSidePlaces places;
    output::OutputMark mark;
    uint32_t epoch = 0;
    Duration url_life = store::kUrlLife;
  };

  // `loop`, and what the places name, must outlive it.
  SideUploads(Options options, EventLoop& loop);
  // Waits for what is being done: ask Finish first.
  ~SideUploads() { *alive_ = false; }
  SideUploads(const SideUploads&) = delete;
  SideUploads& operator=(const SideUploads&) = delete;

  // Of a node that holds the mini-batch. kNotFound: an upload is not known here, as after the
  // coordinator was replaced: it is to be begun anew; kUnavailable: a later call may succeed; else
  // what the store says. `held`: whether anybody holds a mini-batch now.
  void Answer(job::SideUploadsWanted wanted, const std::function<bool(job::BatchId)>& held,
              Send send);
  // Begins nothing more. False: what waits for the store needs longer than `limit`.
  bool Finish(Duration limit) { return errands_.Finish(limit); }

 private:
  struct Begins;  // by the errands' thread
  struct Waiting {
    job::BatchId mini_batch = 0;
    std::vector<std::string> names;
    Send send;
  };

  void End(uint64_t number, const Result<job::SideUploads>& uploads);

  EventLoop& loop_;
  const std::shared_ptr<Begins> begins_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // on the loop's thread
  std::map<job::BatchId, std::map<std::string, std::string>> known_;  // names, by upload
  size_t prune_at_ = 1024;                                            // mini-batches
  std::map<uint64_t, Waiting> waiting_;  // only this thread may let go of an exchange
  uint64_t last_ = 0;
  Errands errands_;  // last: what it uses is there
};

}  // namespace parallelrun::coordinator
