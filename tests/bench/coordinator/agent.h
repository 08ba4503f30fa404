// Internal to this bench: an agent as its coordinator meets it. It keeps to docs/coordinator-api.md
// and to the pace of the real one (src/agent/core), has two connections, and instead of working
// waits. On the thread of its io_context.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "job/node_messages.h"
#include "tests/bench/coordinator/channel.h"
#include "tests/bench/coordinator/figures.h"

namespace parallelrun::bench {

struct AgentSettings {
  uint32_t node = 0;
  uint32_t processes = 2;
  std::chrono::milliseconds work{1000};  // of a mini-batch, a fifth more or less
  std::string key;                       // of the job
};

class Agent {
 public:
  // `figures` points to where things are counted now; it changes between two measurements.
  Agent(boost::asio::io_context& io, boost::asio::ssl::context& tls,
        const boost::asio::ip::tcp::endpoint& server, AgentSettings settings,
        Figures* const& figures);

  void Start(std::chrono::milliseconds delay);

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  enum class State { kQueued, kRunning, kFinished };
  struct Batch {
    job::LeaseName name;
    uint64_t digest = 0;
    State state = State::kQueued;
    bool offered = false;  // to be adopted under the incarnation in force
    bool told = true;      // its result is under way or need not be told
  };
  // One of the two requests that may be under way.
  struct Flight {
    std::unique_ptr<Channel> channel;
    bool busy = false;
    bool unheard = false;
    uint64_t number = 0;
    job::Incarnation incarnation;
    Time sent;
    std::vector<job::BatchId> finished;
  };

  void Pump();
  void Register();
  void OnRegistered(const Channel::Answer& answer);
  void Send(Flight& flight, bool parks);
  void OnAnswer(Flight& flight, bool parks, const Channel::Answer& answer);
  void TakeReply(const job::ExchangeReply& reply);
  void Adopt(const job::Adopted& adopted);
  void OnFailure(Flight& flight, unsigned status);
  void Work();
  void OnWorked(size_t process, job::BatchId id);
  bool ReportDue(Time now) const;
  uint32_t Want() const;

  const AgentSettings settings_;
  Figures* const& figures_;
  const std::string exchange_path_, register_path_, instance_;
  Flight report_, park_;
  boost::asio::steady_timer wake_;
  std::vector<boost::asio::steady_timer> processes_;
  std::set<size_t> idle_;  // of them
  std::minstd_rand random_;
  std::map<job::BatchId, Batch> batches_;
  std::string run_id_;
  job::Incarnation incarnation_;
  uint64_t settings_digest_ = 0;
  bool must_register_ = true;
  bool tells_ready_ = false;
  uint64_t requests_ = 0;
  uint64_t lost_ = 0;  // the last request that got no answer
  Time renewed_at_{}, park_at_{}, retry_at_{}, repeat_at_{};
  std::chrono::milliseconds backoff_{0};
};

}  // namespace parallelrun::bench
