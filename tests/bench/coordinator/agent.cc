#include "tests/bench/coordinator/agent.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "coordinator/access.h"

namespace parallelrun::bench {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// The pace of src/agent/core.
constexpr milliseconds kHeartbeat{1000};
constexpr milliseconds kIdlePark{20'000};
constexpr milliseconds kRenewAfter{900};
constexpr milliseconds kRenewOverdue{2000};
constexpr milliseconds kQuiet{20};
constexpr milliseconds kRepeat{50};
constexpr milliseconds kFirstBackOff{50};
constexpr milliseconds kLastBackOff{1000};

std::string PathOf(uint32_t node, const char* call) {
  return "/v1/nodes/" + std::to_string(node) + "/" + call;
}

}  // namespace

Agent::Agent(boost::asio::io_context& io, boost::asio::ssl::context& tls,
             const boost::asio::ip::tcp::endpoint& server, AgentSettings settings,
             Figures* const& figures)
    : settings_(std::move(settings)),
      figures_(figures),
      exchange_path_(PathOf(settings_.node, "exchange")),
      register_path_(PathOf(settings_.node, "register")),
      instance_("bench" + std::to_string(settings_.node)),
      wake_(io),
      random_(settings_.node + 1) {
  const std::string token =
      coordinator::RoleToken(settings_.key, "node:" + std::to_string(settings_.node));
  report_.channel = std::make_unique<Channel>(io, tls, server, token);
  park_.channel = std::make_unique<Channel>(io, tls, server, token);
  for (size_t i = 0; i < settings_.processes; ++i) {
    processes_.emplace_back(io);
    idle_.insert(i);
  }
}

void Agent::Start(milliseconds delay) {
  wake_.expires_after(delay);
  wake_.async_wait([this](boost::system::error_code ended) {
    if (!ended) Pump();
  });
}

void Agent::Pump() {
  const Time now = Clock::now();
  Time next = now + kLastBackOff;
  if (now < retry_at_) {
    next = retry_at_;
  } else if (must_register_) {
    if (!report_.busy && !park_.busy) return Register();
  } else {
    const bool overdue = !batches_.empty() && now - renewed_at_ >= kRenewOverdue;
    if (!report_.busy && ReportDue(now)) {
      Send(report_, false);
    } else if (!park_.busy && (report_.busy ? overdue : now >= park_at_)) {
      Send(park_, true);
    }
    if (!park_.busy) next = std::min(next, std::max(park_at_, now + milliseconds(1)));
    if (repeat_at_ > now) next = std::min(next, repeat_at_);
  }
  wake_.expires_at(next);
  wake_.async_wait([this](boost::system::error_code ended) {
    if (!ended) Pump();
  });
}

bool Agent::ReportDue(Time now) const {
  if (tells_ready_ || (!batches_.empty() && now - renewed_at_ >= kRenewOverdue)) return true;
  if (now < repeat_at_) return false;
  return std::any_of(batches_.begin(), batches_.end(), [](const auto& one) {
    return one.second.offered || (one.second.state == State::kFinished && !one.second.told);
  });
}

uint32_t Agent::Want() const {
  const auto unfinished = std::count_if(batches_.begin(), batches_.end(), [](const auto& one) {
    return one.second.state != State::kFinished;
  });
  const int64_t target = int64_t{2} * settings_.processes;
  return static_cast<uint32_t>(std::max<int64_t>(0, target - unfinished));
}

void Agent::Register() {
  json body = {{"protocol", job::kNodeProtocol},
               {"processes", settings_.processes},
               {"host", "bench"},
               {"pid", 1},
               {"instance", instance_}};
  if (!run_id_.empty()) body["runId"] = run_id_;
  report_.busy = true;
  report_.channel->Post(register_path_, body.dump(), [this](const Channel::Answer& answer) {
    report_.busy = false;
    if (answer.status == 200) {
      OnRegistered(answer);
    } else {
      OnFailure(report_, answer.status);
    }
    Pump();
  });
}

void Agent::OnRegistered(const Channel::Answer& answer) {
  const json told = json::parse(answer.body);
  run_id_ = told["runId"];
  incarnation_ = {told["epoch"].get<uint32_t>(), told["incarnation"].get<uint32_t>()};
  const std::string digest = told["settingsDigest"];
  std::from_chars(digest.data(), digest.data() + digest.size(), settings_digest_, 16);
  must_register_ = false;
  tells_ready_ = true;
  backoff_ = milliseconds(0);
  renewed_at_ = repeat_at_ = {};
  requests_ = lost_ = 0;
  for (auto& [id, batch] : batches_) batch.offered = true;
  figures_->offered += batches_.size();
}

void Agent::Send(Flight& flight, bool parks) {
  const Time now = Clock::now();
  const Flight& other = parks ? report_ : park_;
  flight.busy = true;
  flight.sent = now;
  flight.number = ++requests_;
  flight.incarnation = incarnation_;
  flight.unheard = false;
  flight.finished.clear();
  job::ExchangeRequest request;
  request.incarnation = incarnation_;
  request.settings_digest = settings_digest_;
  request.number = flight.number;
  if (other.busy && other.incarnation == incarnation_) request.open = other.number;
  request.want = Want();
  if (now - renewed_at_ >= kRenewAfter) {
    renewed_at_ = now;
    request.unheard = flight.unheard = lost_ > 0;
    for (const auto& [id, batch] : batches_) {
      if (batch.offered) continue;
      request.held.push_back({id, batch.name.fence, batch.state != State::kQueued});
    }
  }
  if (parks) {
    const milliseconds longest = batches_.empty() ? kIdlePark : kHeartbeat;
    request.park_ms = static_cast<uint32_t>(longest.count());
  } else {
    if (std::exchange(tells_ready_, false)) {
      for (uint32_t i = 0; i < settings_.processes; ++i) {
        request.events.push_back({i, job::ProcessEvent::Kind::kReady, "", ""});
      }
    }
    for (auto& [id, batch] : batches_) {
      if (batch.offered) {
        request.offered.push_back({id, batch.name.fence, batch.digest});
      } else if (batch.state == State::kFinished && !batch.told) {
        job::Finished done;
        done.id = id;
        done.fence = batch.name.fence;
        done.run_ns = done.elapsed_ns =
            static_cast<uint64_t>(std::chrono::nanoseconds(settings_.work).count());
        done.items_succeeded = done.row_count = 1;
        done.rows = "what run() returned for one item, about as long as a line of a small table\n";
        request.finished.push_back(done);
        flight.finished.push_back(id);
        batch.told = true;
      }
    }
  }
  flight.channel->Post(exchange_path_, job::Encode(request),
                       [this, &flight, parks](const Channel::Answer& answer) {
                         OnAnswer(flight, parks, answer);
                         Pump();
                       });
}

void Agent::OnAnswer(Flight& flight, bool parks, const Channel::Answer& answer) {
  const Time now = Clock::now();
  flight.busy = false;
  if (answer.status != 200) return OnFailure(flight, answer.status);
  const Result<job::ExchangeReply> reply = job::DecodeExchangeReply(answer.body);
  if (!reply.ok()) return OnFailure(flight, 0);
  if (parks) {
    ++figures_->parked;
  } else {
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(now - flight.sent);
    figures_->exchanges.push_back(static_cast<uint32_t>(took.count()));
  }
  backoff_ = milliseconds(0);
  if (flight.incarnation != incarnation_ || must_register_) return;
  if (flight.unheard && lost_ < flight.number) lost_ = 0;
  TakeReply(*reply);
  bool open = false;
  for (const job::BatchId id : flight.finished) {
    const auto found = batches_.find(id);
    if (found == batches_.end()) continue;
    found->second.told = false;
    open = true;
  }
  if (open) repeat_at_ = now + kRepeat;
  park_at_ = parks && !reply->leased.empty() ? now : now + kQuiet;
  Work();
}

void Agent::TakeReply(const job::ExchangeReply& reply) {
  const auto forget = [this](const job::LeaseName& name) {
    const auto found = batches_.find(name.id);
    if (found == batches_.end() || found->second.name != name) return false;
    // What a process is at ends by itself; the mini-batch is not told of then.
    batches_.erase(found);
    return true;
  };
  for (const job::LeaseName& name : reply.settled) figures_->settled += forget(name) ? 1 : 0;
  for (const job::LeaseName& name : reply.refused) figures_->refused += forget(name) ? 1 : 0;
  for (const job::Adopted& adopted : reply.adopted) Adopt(adopted);
  for (const job::Leased& leased : reply.leased) {
    Batch batch;
    batch.name = {leased.id, leased.fence};
    batch.digest = leased.digest;
    batches_[leased.id] = batch;
  }
}

void Agent::Adopt(const job::Adopted& adopted) {
  const auto found = batches_.find(adopted.id);
  if (found == batches_.end() || found->second.name.fence != adopted.old_fence) return;
  Batch& batch = found->second;
  ++(batch.offered ? figures_->adopted : figures_->expired);
  batch.name.fence = adopted.fence;
  batch.offered = false;
  if (batch.state == State::kFinished) batch.told = false;
}

void Agent::OnFailure(Flight& flight, unsigned status) {
  ++figures_->failed;
  for (const job::BatchId id : flight.finished) {
    if (const auto found = batches_.find(id); found != batches_.end()) found->second.told = false;
  }
  if (status == 409) must_register_ = true;
  if (flight.incarnation == incarnation_) lost_ = requests_;
  renewed_at_ = {};
  backoff_ = std::clamp(backoff_ * 2, kFirstBackOff, kLastBackOff);
  retry_at_ = Clock::now() + backoff_;
}

void Agent::Work() {
  for (auto& [id, batch] : batches_) {
    if (idle_.empty()) return;
    if (batch.state != State::kQueued || batch.offered) continue;
    batch.state = State::kRunning;
    const size_t process = *idle_.begin();
    idle_.erase(idle_.begin());
    // Never the same, or all processes of a node would go on in step, and report at once.
    processes_[process].expires_after(settings_.work * (800 + random_() % 401) / 1000);
    processes_[process].async_wait([this, process, id = id](boost::system::error_code ended) {
      if (!ended) OnWorked(process, id);
    });
  }
}

void Agent::OnWorked(size_t process, job::BatchId id) {
  idle_.insert(process);
  if (const auto found = batches_.find(id); found != batches_.end()) {
    found->second.state = State::kFinished;
    found->second.told = false;
  }
  Work();
  Pump();
}

}  // namespace parallelrun::bench
