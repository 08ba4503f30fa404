// bench_coordinator [--agents N] [--seconds N] [--processes N] [--threads N]: one coordinator, with
// real HTTP, TLS and disk, and all agents of a large job in this process (../README.md). Measures
// what an exchange takes, and what the coordinator costs; then again after the coordinator was
// killed and started anew with all agents there.
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/coordinator/agent.h"
#include "tests/bench/coordinator/coordinator.h"
#include "tests/bench/coordinator/figures.h"

namespace parallelrun::bench {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr int kSettling = 10;  // seconds that are left out, at the start and after a restart

// Agents of one thread.
class Crowd {
 public:
  Crowd(const asio::ip::tcp::endpoint& server, const std::string& certificate) {
    tls_.load_verify_file(certificate);
    tls_.set_verify_mode(asio::ssl::verify_peer);
    SSL_CTX_set_session_cache_mode(tls_.native_handle(), SSL_SESS_CACHE_OFF);
    server_ = server;
  }
  ~Crowd() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }
  void Add(AgentSettings settings) {
    agents_.push_back(std::make_unique<Agent>(io_, tls_, server_, std::move(settings), current_));
  }
  // Agents begin one after the other within a second, as pods do.
  void Start() {
    std::mt19937 random(static_cast<uint32_t>(agents_.size()));
    for (const auto& agent : agents_) agent->Start(milliseconds(random() % 1000));
    thread_ = std::thread([this] { io_.run(); });
  }
  // What was counted since the last call.
  Figures Take() {
    std::promise<Figures> taken;
    asio::post(io_, [this, &taken] {
      taken.set_value(std::move(figures_));
      figures_ = Figures();
    });
    return taken.get_future().get();
  }

 private:
  asio::io_context io_{1};
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  asio::ip::tcp::endpoint server_;
  Figures figures_;
  Figures* current_ = &figures_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::thread thread_;
};

double OwnProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Figures TakeAll(const std::vector<std::unique_ptr<Crowd>>& crowds) {
  Figures all;
  for (const auto& crowd : crowds) all.Add(crowd->Take());
  return all;
}

void Measure(const char* when, const std::vector<std::unique_ptr<Crowd>>& crowds, pid_t coordinator,
             int seconds) {
  std::this_thread::sleep_for(std::chrono::seconds(kSettling));
  const Figures settling = TakeAll(crowds);
  const double used = ProcessorSeconds(coordinator);
  const double own = OwnProcessorSeconds();
  const auto begun = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  Figures f = TakeAll(crowds);
  const double exchanges = static_cast<double>(f.exchanges.size() + f.parked);
  fmt::print("{}\n", when);
  fmt::print(
      "  in the first {} s      {} mini-batches, {} leases taken away, {} of {} offers adopted\n",
      kSettling, settling.settled, settling.refused, settling.adopted, settling.offered);
  fmt::print("  mini-batches           {:.0f} a second\n", static_cast<double>(f.settled) / took);
  fmt::print("  exchanges              {:.0f} a second, {:.0f} of them parked\n", exchanges / took,
             static_cast<double>(f.parked) / took);
  fmt::print(
      "  an exchange            p50 {:.1f} ms, p99 {:.1f} ms, longest {:.1f} ms (not the parked "
      "ones)\n",
      f.Percentile(0.5), f.Percentile(0.99), f.Percentile(1));
  fmt::print("  leases lost            {} (and {} adopted again), {} calls failed\n", f.refused,
             f.expired, f.failed);
  fmt::print("  coordinator            {:.0f} % of a core, {:.0f} MB at most\n",
             100 * (ProcessorSeconds(coordinator) - used) / took, PeakMegabytes(coordinator));
  fmt::print("  agents                 {:.0f} % of a core\n",
             100 * (OwnProcessorSeconds() - own) / took);
  std::fflush(stdout);
}

void End(pid_t coordinator) {
  kill(coordinator, SIGKILL);
  waitpid(coordinator, nullptr, 0);
}

int Run(std::map<std::string, uint32_t>& options) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);

  std::string folder = (std::filesystem::temp_directory_path() / "parallelrun-bench-XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) {
    fmt::print(stderr, "bench_coordinator: cannot make {}\n", folder);
    return 1;
  }
  const uint32_t agents = options["--agents"];
  const uint32_t seconds = options["--seconds"];
  CoordinatorSettings settings;
  settings.folder = folder;
  settings.key = std::string(64, 'a');
  settings.nodes = agents;
  settings.processes = options["--processes"];
  // More than can be done in this time.
  settings.batches = uint64_t{agents} * settings.processes * (2 * (kSettling + seconds) + 60);
  uint16_t port = 0;
  settings.listen_fd = Listen(port);
  WriteCertificate(folder);
  pid_t coordinator = StartCoordinator(settings);
  {
    std::vector<std::unique_ptr<Crowd>> crowds;
    for (uint32_t i = 0; i < options["--threads"]; ++i) {
      crowds.push_back(std::make_unique<Crowd>(
          asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), port), folder + "/tls.crt"));
    }
    for (uint32_t node = 0; node < agents; ++node) {
      AgentSettings agent;
      agent.node = node;
      agent.processes = settings.processes;
      agent.key = settings.key;
      crowds[node % crowds.size()]->Add(agent);
    }
    fmt::print("{} agents of {} processes, TLS, 1 s a mini-batch, {} s\n", agents,
               settings.processes, seconds);
    for (const auto& crowd : crowds) crowd->Start();
    Measure("started", crowds, coordinator, static_cast<int>(seconds));
    End(coordinator);
    coordinator = StartCoordinator(settings);
    Measure("the coordinator killed and started anew", crowds, coordinator,
            static_cast<int>(seconds));
  }
  End(coordinator);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace parallelrun::bench

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto number = [&words](size_t at) {
    uint64_t value = 0;  // what is no number is refused below
    if (at < words.size()) {
      std::from_chars(words[at].data(), words[at].data() + words[at].size(), value);
    }
    return value;
  };
  if (words.size() == 7 && words[0] == "coordinator") {
    return parallelrun::bench::RunCoordinator({words[1], words[2], static_cast<int>(number(3)),
                                               static_cast<uint32_t>(number(4)),
                                               static_cast<uint32_t>(number(5)), number(6)});
  }
  std::map<std::string, uint32_t> options = {
      {"--agents", 1000}, {"--seconds", 60}, {"--processes", 2}, {"--threads", 2}};
  for (size_t i = 0; i < words.size(); i += 2) {
    const uint64_t value = number(i + 1);
    if (!options.contains(words[i]) || value == 0 || value > 100'000) {
      fmt::print(stderr,
                 "usage: bench_coordinator [--agents N] [--seconds N] [--processes N] "
                 "[--threads N]\n");
      return 2;
    }
    options[words[i]] = static_cast<uint32_t>(value);
  }
  return parallelrun::bench::Run(options);
}
