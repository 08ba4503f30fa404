#include "base/event_loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/event_loop_asio.h"

namespace parallelrun {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Executor = asio::io_context::executor_type;
// Its timers stand still where time does (suspension.h).
struct LoopClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = Instant;
  [[maybe_unused]] static constexpr bool is_steady = true;  // of any clock
  static Instant now() { return SystemClock().Now(); }
};
using Timer = asio::basic_waitable_timer<LoopClock, asio::wait_traits<LoopClock>, Executor>;
using Descriptor = asio::posix::basic_stream_descriptor<Executor>;

struct TimerEntry {
  TimerEntry(asio::io_context& io, EventLoop::Callback f) : timer(io), callback(std::move(f)) {}
  Timer timer;
  EventLoop::Callback callback;
};

// One file descriptor with at least one watch: epoll takes each descriptor once.
struct FdEntry {
  explicit FdEntry(asio::io_context& io, int fd) : descriptor(io) {
    ErrorCode ignored;  // a descriptor that epoll refuses never becomes ready
    descriptor.assign(fd, ignored);
  }
  ~FdEntry() { descriptor.release(); }
  Descriptor descriptor;
};

struct Watch {
  std::shared_ptr<FdEntry> fd;
  int number = -1;
  Descriptor::wait_type what{};
  EventLoop::Callback callback;
};

struct SignalEntry {
  SignalEntry(asio::io_context& io, int signo) : set(io, signo) {}
  asio::signal_set set;
  EventLoop::Callback callback;
};

}  // namespace

struct EventLoop::Impl {
  // Declared before `io`, so that they outlive it: a callback destroyed with `io` may still
  // cancel something. ~Impl empties them while `io` is there.
  std::unordered_map<uint64_t, std::unique_ptr<TimerEntry>> timers;
  std::unordered_map<uint64_t, std::shared_ptr<Watch>> watches;
  std::unordered_map<int, std::weak_ptr<FdEntry>> fds;
  std::map<int, std::unique_ptr<SignalEntry>> signals;
  uint64_t next_id = 1;
  asio::io_context io{1};
  asio::executor_work_guard<Executor> work{io.get_executor()};

  ~Impl() {
    // Moved out first: destroying a callback may come back here.
    const auto old_timers = std::exchange(timers, {});
    const auto old_watches = std::exchange(watches, {});
    const auto old_signals = std::exchange(signals, {});
  }

  WatchId AddWatch(int fd, Descriptor::wait_type what, Callback callback) {
    std::weak_ptr<FdEntry>& known = fds[fd];
    std::shared_ptr<FdEntry> entry = known.lock();
    if (!entry) {
      entry = std::make_shared<FdEntry>(io, fd);
      known = entry;
    }
    const uint64_t id = next_id++;
    auto watch = std::make_shared<Watch>();
    watch->fd = std::move(entry);
    watch->number = fd;
    watch->what = what;
    watch->callback = std::move(callback);
    watches.emplace(id, watch);
    Wait(std::move(watch));
    return WatchId{id};
  }

  void Wait(std::shared_ptr<Watch> watch) {
    Descriptor& descriptor = watch->fd->descriptor;
    const auto what = watch->what;
    descriptor.async_wait(what, [this, watch = std::move(watch)](ErrorCode ec) mutable {
      if (ec || !watch->fd) return;  // removed, or the descriptor cannot be watched
      watch->callback();
      if (watch->fd) Wait(std::move(watch));
    });
  }

  void WaitSignal(SignalEntry& entry) {
    entry.set.async_wait([this, &entry](ErrorCode ec, int) {
      if (ec) return;
      const Callback callback = entry.callback;  // it may replace itself
      callback();
      WaitSignal(entry);
    });
  }
};

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {}
EventLoop::~EventLoop() = default;

void EventLoop::Run() {
  impl_->io.run();
  impl_->io.restart();
}

void EventLoop::Stop() { impl_->io.stop(); }

void EventLoop::Post(Callback callback) { asio::post(impl_->io, std::move(callback)); }

EventLoop::TimerId EventLoop::After(Duration delay, Callback callback) {
  const uint64_t id = impl_->next_id++;
  auto entry = std::make_unique<TimerEntry>(impl_->io, std::move(callback));
  entry->timer.expires_after(delay);
  // The entry is found by its id when the timer fires: a cancelled one may have been queued.
  entry->timer.async_wait([impl = impl_.get(), id](ErrorCode ec) {
    if (ec) return;
    auto node = impl->timers.extract(id);
    if (node) node.mapped()->callback();
  });
  impl_->timers.emplace(id, std::move(entry));
  return TimerId{id};
}

void EventLoop::Cancel(TimerId id) { impl_->timers.extract(static_cast<uint64_t>(id)); }

EventLoop::WatchId EventLoop::WatchReadable(int fd, Callback callback) {
  return impl_->AddWatch(fd, Descriptor::wait_read, std::move(callback));
}

EventLoop::WatchId EventLoop::WatchWritable(int fd, Callback callback) {
  return impl_->AddWatch(fd, Descriptor::wait_write, std::move(callback));
}

void EventLoop::Unwatch(WatchId id) {
  const auto node = impl_->watches.extract(static_cast<uint64_t>(id));
  if (!node) return;
  // The callback itself lives on until the pending wait is over: it may be what is running.
  node.mapped()->fd.reset();
  const auto fd = impl_->fds.find(node.mapped()->number);
  if (fd != impl_->fds.end() && fd->second.expired()) impl_->fds.erase(fd);
}

void EventLoop::OnSignal(int signo, Callback callback) {
  std::unique_ptr<SignalEntry>& entry = impl_->signals[signo];
  const bool is_new = !entry;
  if (is_new) entry = std::make_unique<SignalEntry>(impl_->io, signo);
  entry->callback = std::move(callback);
  if (is_new) impl_->WaitSignal(*entry);
}

boost::asio::io_context& IoContextOf(EventLoop& loop) { return loop.impl().io; }

}  // namespace parallelrun
