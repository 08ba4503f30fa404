#include "cli/cluster/page_command.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "api/object_names.h"
#include "base/escape.h"
#include "base/event_loop.h"
#include "base/http/tunnel.h"
#include "base/json.h"
#include "base/time.h"
#include "cli/cluster/port_forward.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {
namespace {

constexpr Duration kPause = seconds(2);  // between two tries
constexpr size_t kTokenDigits = 64;
// What a coordinator's certificate is good for at this end of a forwarded port.
constexpr char kServerName[] = "localhost";

void Say(const std::string& line) { fmt::print(stderr, "{}\n", line); }

struct JobSeen {
  std::string uid;
  std::string phase;
  std::string logs;  // where its log folder lies

  bool over() const { return phase == "Succeeded" || phase == "Failed"; }
};

// What the job's Secret holds for those who look.
struct Access {
  std::string token;
  std::string ca_pem;
};

class JobPage {
 public:
  explicit JobPage(PageRequest request) : request_(std::move(request)) {}

  int Run() {
    std::string uid;
    while (true) {
      const Result<std::optional<JobSeen>> looked = Look();
      if (!looked.ok()) return Refuse(looked.error());
      if (!*looked && !tunnel_) return kExitUsage;  // kubectl has said why
      if (*looked) {
        const JobSeen& job = **looked;
        if (uid.empty()) uid = job.uid;
        if (job.uid != uid) {
          Say(fmt::format("job {} was replaced by another of its name: run the command again",
                          Name()));
          return kExitFailed;
        }
        if (job.over()) return SayOver(job);
        if (const Status status = Follow(job); !status.ok()) return Refuse(status.error());
      }
      Pause();
    }
  }

 private:
  // The tunnel's connections end meanwhile.
  void Pause() {
    const EventLoop::TimerId timer = loop_.After(kPause, [this] { loop_.Stop(); });
    loop_.Run();
    loop_.Cancel(timer);
  }

  std::string Name() const { return Printable(request_.job, kShown); }

  static int Refuse(const Error& why) {
    Say(why.message);
    return kExitUsage;
  }

  // Once for each new thing.
  void SayState(const std::string& line) {
    if (line != said_) Say(line);
    said_ = line;
  }

  // Nothing: kubectl could not tell, and has said why.
  Result<std::optional<JobSeen>> Look() const {
    const Result<KubectlAnswer> answer =
        Ask({"get", "parallelrunjobs.parallelrun.dev/" + request_.job, "--output=json"});
    if (!answer.ok()) return answer.error();
    if (answer->status != 0) return std::optional<JobSeen>();
    const nlohmann::json job = ParseJson(answer->output).value_or(nullptr);
    const nlohmann::json& status = lenient::At(job, "status");
    JobSeen seen{lenient::Text(lenient::At(job, "metadata"), "uid"), lenient::Text(status, "phase"),
                 lenient::Text(status, "logs")};
    if (seen.uid.empty()) return Error{Code::kInvalid, "kubectl shows no uid of job " + Name()};
    return std::optional(std::move(seen));
  }

  // Nothing: there is no Secret yet, or it may not be read, which kubectl has said.
  Result<std::optional<Access>> Read(const std::string& uid) const {
    const std::string secret = api::AccessSecretName(request_.job, uid);
    const Result<KubectlAnswer> answer =
        Ask({"get", "secret/" + secret, "--ignore-not-found",
             "--output=go-template={{.data.viewer | base64decode}} "
             "{{index .data \"ca.crt\" | base64decode}}"});
    if (!answer.ok()) return answer.error();
    if (answer->status != 0) {
      return Error{Code::kPermission,
                   fmt::format("the page needs the right to get Secret {} and to create "
                               "pods/portforward; ask who runs the cluster",
                               secret)};
    }
    const size_t end = answer->output.find(' ');
    if (end != kTokenDigits) return std::optional<Access>();
    return std::optional(Access{answer->output.substr(0, end), answer->output.substr(end + 1)});
  }

  // Shows the page for as long as the way to the coordinator holds.
  Status Follow(const JobSeen& job) {
    if (!tunnel_) {
      const Result<std::optional<Access>> access = Read(job.uid);
      if (!access.ok()) return access.error();
      if (!*access) {
        SayState(Waiting(job));
        return {};
      }
      token_ = (*access)->token;
      if (const Status opened = OpenTunnel((*access)->ca_pem); !opened.ok()) return opened;
    }
    forward_.emplace(
        loop_, [this](uint16_t port) { OnForwarded(port); },
        [this](const std::string& why) {
          why_ = why;
          loop_.Stop();
        });
    std::vector<std::string> words = request_.where.Words();
    words.insert(words.end(),
                 {"port-forward", "--address=127.0.0.1",
                  "service/" + api::CoordinatorServiceName(request_.job, job.uid), ":8443"});
    if (Status started = forward_->Start(std::move(words)); !started.ok()) return started;
    loop_.Run();
    forward_.reset();
    tunnel_->LeadTo(0);
    // Of the API server, in kubectl's words; trying again changes nothing.
    if (why_.find(" is forbidden: ") != std::string::npos) return Error{Code::kPermission, why_};
    SayState((shown_ ? "the coordinator is out of reach, trying again: " : Waiting(job) + ": ") +
             why_);
    return {};
  }

  Status OpenTunnel(const std::string& ca_pem) {
    TlsTunnelOptions options;
    options.port = request_.port;
    options.ca_pem = ca_pem;
    options.server_name = kServerName;
    // kubectl may go on although its pod has ended.
    options.on_error = [this](const Error& error) {
      why_ = error.message;
      loop_.Stop();
    };
    Result<std::unique_ptr<TlsTunnel>> tunnel = TlsTunnel::Start(loop_, std::move(options));
    if (!tunnel.ok()) return tunnel.error();
    tunnel_ = std::move(*tunnel);
    return {};
  }

  void OnForwarded(uint16_t port) {
    tunnel_->LeadTo(port);
    if (std::exchange(shown_, true)) return SayState("the coordinator is within reach again");
    fmt::print("page: http://127.0.0.1:{}/#t={}\n", tunnel_->port(), token_);
    std::fflush(stdout);
    SayState("Ctrl-C ends the page, and leaves the job alone");
  }

  std::string Waiting(const JobSeen& job) const {
    return fmt::format("job {} is {}: waiting for its coordinator", Name(),
                       job.phase.empty() ? "new" : Printable(job.phase, kShown));
  }

  int SayOver(const JobSeen& job) const {
    const std::string where =
        job.logs.empty() ? "its log folder" : "its log folder, " + Printable(job.logs, kShown);
    Say(fmt::format("job {} is over: {}. Its report is report.html in {}", Name(), job.phase,
                    where));
    return shown_ ? kExitOk : kExitUsage;
  }

  Result<KubectlAnswer> Ask(const std::vector<std::string>& more) const {
    std::vector<std::string> words = request_.where.Words();
    words.insert(words.end(), more.begin(), more.end());
    words.emplace_back("--request-timeout=20s");
    return AskKubectl(words);
  }

  const PageRequest request_;
  EventLoop loop_;
  std::unique_ptr<TlsTunnel> tunnel_;
  std::optional<PortForward> forward_;
  std::string token_;
  std::string said_;
  std::string why_;     // the way to the coordinator has ended
  bool shown_ = false;  // the address was printed
};

}  // namespace

int ShowPage(const PageRequest& request) { return JobPage(request).Run(); }

}  // namespace parallelrun::cli
