#include "cli/fetch/job_reader.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "agent/sending/file_stream.h"
#include "api/object_names.h"
#include "api/pod_defaults.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/random.h"
#include "cli/fetch/reader_pod.h"
#include "cli/follow/cluster_events.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr Duration kPause = milliseconds(500);
constexpr int kTries = 3;
constexpr char kRights[] =
    "This needs the rights to get parallelrunjobs, to list and create pods and pods/exec, and to "
    "get and delete pods; ask who runs the cluster";

void Say(const std::string& line) { fmt::print(stderr, "{}\n", line); }

// What no other try changes.
Error Final(Error error) {
  if (error.code == Code::kUnavailable) error.code = Code::kNotFound;
  return error;
}

}  // namespace

JobReader::JobReader(KubectlWhere where, std::string job, int wait)
    : where_(std::move(where)), job_(std::move(job)), wait_(wait), clock_() {}

JobReader::~JobReader() { RemoveReader(); }

Result<json> JobReader::Look() const {
  return Get({"get", "parallelrunjobs.parallelrun.dev/" + job_});
}

Result<JobReader::Came> JobReader::Bring(const Find& find, ArrivingFiles& arriving) {
  for (int tries = 1;; ++tries) {
    Result<Came> came = Try(find, arriving);
    if (came.ok() || came.error().code != Code::kUnavailable || tries == kTries) return came;
    if (interruption_.came()) return came;
    Say(came.error().message + "; trying again");
    if (interruption_.Wait(kPause)) return came;
  }
}

// From the job's own words to its files; kUnavailable: another try may find it otherwise.
Result<JobReader::Came> JobReader::Try(const Find& find, ArrivingFiles& arriving) {
  std::optional<Found> found = std::exchange(found_, std::nullopt);
  if (!found) {
    Result<json> job = Look();
    if (!job.ok()) return job.error();
    found = Found{std::move(*job), {}};
  }
  const Result<WantedFiles> wanted = find(found->job);
  if (!wanted.ok()) return Final(wanted.error());
  if (found->source.pod.empty()) {
    Result<Source> source = SourceOf(found->job, *wanted);
    if (!source.ok()) return source.error();
    found->source = std::move(*source);
  }
  if (Status anew = arriving.Anew(wanted->must); !anew.ok()) return anew.error();
  Result<Came> came = Receive(found->source, *wanted, arriving);
  if (came.ok()) found_ = std::move(found);
  return came;
}

// The coordinator while it runs, for it has the volumes; else a pod of our own. That of a job
// that is over may still write the reports, so it is waited for.
Result<JobReader::Source> JobReader::SourceOf(const json& job, const WantedFiles& wanted) {
  const bool over = EndOf(job, true).has_value();
  const Instant until = clock_.Now() + seconds(wait_);
  const std::string uid = lenient::Text(lenient::At(job, "metadata"), "uid");
  json last;
  for (bool said = false;; said = true) {
    const Result<json> pods =
        Get({"get", "pods",
             "--selector=parallelrun.dev/job-uid=" + uid + ",parallelrun.dev/role=coordinator"});
    if (!pods.ok()) return pods.error();
    std::string running;
    for (const json& pod : lenient::List(*pods, "items")) {
      const json& metadata = lenient::At(pod, "metadata");
      last = pod;
      const bool runs = lenient::Text(lenient::At(pod, "status"), "phase") == "Running" &&
                        !metadata.contains("deletionTimestamp");
      if (runs) running = lenient::Text(metadata, "name");
    }
    if (running.empty()) break;
    if (!over || clock_.Now() >= until) return Source{running, "coordinator"};
    if (!said) Say("the job is over: waiting for its coordinator, which may still write reports");
    if (interruption_.Wait(kPause)) return Error{Code::kTimeout, ""};
  }
  if (reader_.empty()) {
    if (Status made = MakeReader(job, wanted, last); !made.ok()) return made.error();
  }
  if (Status ready = AwaitReader(); !ready.ok()) return ready.error();
  return Source{reader_, kReaderContainer};
}

Status JobReader::MakeReader(const json& job, const WantedFiles& wanted, const json& coordinator) {
  const json& metadata = lenient::At(job, "metadata");
  const std::string name =
      api::ObjectBase(lenient::Text(metadata, "name"), lenient::Text(metadata, "uid")) +
      "-reader-" + RandomHex(4);
  const Result<json> pod =
      ReaderPod(job, coordinator, {name, wanted.volume, ReaderSeconds(wanted)});
  if (!pod.ok()) return Final(pod.error());
  reader_ = name;  // also if kubectl was ended before it could say that it is made
  const Result<KubectlAnswer> made =
      AskKubectl(Words({"create", "--filename=-", "--output=name"}), pod->dump());
  if (!made.ok()) return made.error();
  if (made->status != 0) return Error{Code::kPermission, kRights};
  Say("the job's coordinator is gone: pod " + name + " reads its volume " +
      Printable(wanted.volume, kShownLongest));
  return {};
}

Status JobReader::AwaitReader() const {
  const Instant begun = clock_.Now();
  std::string said;
  while (true) {
    const Result<json> pod = Get({"get", "pod/" + reader_});
    if (!pod.ok()) return pod.error();
    const std::string why = WhyNotRunning(*pod);
    if (why.empty()) return {};
    const std::string phase = lenient::Text(lenient::At(*pod, "status"), "phase");
    if (phase == "Failed" || phase == "Succeeded" || clock_.Now() - begun > seconds(wait_)) {
      return Error{Code::kTimeout, fmt::format("pod {} does not run: {}", reader_, why)};
    }
    if (why != said) Say("waiting for pod " + reader_ + ": " + why);
    said = why;
    if (interruption_.Wait(kPause)) return Error{Code::kTimeout, ""};
  }
}

Result<JobReader::Came> JobReader::Receive(const Source& source, const WantedFiles& wanted,
                                           ArrivingFiles& arriving) const {
  std::vector<std::string> send = {"send"};
  for (const std::string& name : wanted.only) send.push_back("--only=" + name);
  for (const std::string& name : wanted.except) send.push_back("--except=" + name);
  send.insert(send.end(), {"--", MountOf(wanted.volume), wanted.folder});
  std::vector<std::string> words = where_.Words();
  words.insert(words.end(), {"exec", source.pod, "--container=" + source.container, "--"});
  const std::vector<std::string> command = api::InBundle("parallelrun-agent", send);
  words.insert(words.end(), command.begin(), command.end());
  agent::FileStreamReader reader({[&](const std::string& name) { return arriving.Begin(name); },
                                  [&](std::string_view bytes) { return arriving.Add(bytes); }});
  bool came = false;
  const Result<int> status = StreamKubectl(words, interruption_, [&](std::string_view bytes) {
    came = true;
    return reader.Take(bytes);
  });
  if (!status.ok()) return status.error();
  if (*status != 0 && !came) {
    return Error{Code::kUnavailable,
                 fmt::format("nothing comes from pod {} (kubectl has said why). {}",
                             Printable(source.pod, kShownLongest), kRights)};
  }
  if (const Status ended = reader.End(); !ended.ok()) return ended.error();
  return Came{reader.files(), reader.bytes()};
}

std::vector<std::string> JobReader::Words(const std::vector<std::string>& more) const {
  std::vector<std::string> words = where_.Words();
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("--request-timeout=20s");
  return words;
}

// kNotFound without words: kubectl could not tell, and has said why.
Result<json> JobReader::Get(std::vector<std::string> more) const {
  more.emplace_back("--output=json");
  const Result<KubectlAnswer> answer = AskKubectl(Words(more));
  if (!answer.ok()) return answer.error();
  if (answer->status != 0) return Error{Code::kNotFound, ""};
  std::optional<json> object = ParseObject(answer->output);
  if (!object)
    return Error{Code::kInvalid, "kubectl has answered something that is not a JSON object"};
  return std::move(*object);
}

// Also after Ctrl-C. Where that fails, Kubernetes ends it by its deadline, or with the job.
void JobReader::RemoveReader() const {
  if (reader_.empty()) return;
  const Result<KubectlAnswer> removed = AskKubectl(
      Words({"delete", "pod/" + reader_, "--ignore-not-found", "--wait=false", "--output=name"}));
  if (removed.ok() && removed->status == 0) return;
  Say(fmt::format("pod {} could not be removed; it ends by itself, after an hour or more",
                  reader_));
}

int TellReadError(const Error& why) {
  if (!why.message.empty()) Say(why.message);
  const bool broken = why.code == Code::kCorrupt || why.code == Code::kUnavailable;
  return broken ? kExitFailed : kExitUsage;
}

}  // namespace parallelrun::cli
