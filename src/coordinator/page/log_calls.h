// Answers `GET /v1/log` (docs/coordinator-api.md): a part of a log, for the live page. On the
// loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/event_loop.h"
#include "base/http/server.h"
#include "base/time.h"
#include "coordinator/log_tree/log_part_reader.h"

namespace parallelrun::coordinator {

class LogCalls {
 public:
  // `loop` outlives it.
  LogCalls(EventLoop& loop, LogFolder folder) : loop_(loop), reader_(std::move(folder)) {}

  void Handle(const std::shared_ptr<HttpExchange>& exchange);
  // False: a read goes on for longer than `limit`.
  bool Finish(Duration limit) { return reader_.Finish(limit); }

 private:
  EventLoop& loop_;
  std::map<uint64_t, std::shared_ptr<HttpExchange>>
      asked_;  // by number: the thread has these alone
  uint64_t last_ = 0;
  LogPartReader reader_;
};

}  // namespace parallelrun::coordinator
