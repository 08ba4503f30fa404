#include "cli/render/submit.h"

#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "cli/cluster/kubectl.h"
#include "cli/follow/follow.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {
namespace {

int Refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return kExitUsage;
}

// Nothing in the way any more: an exit status where there is.
std::optional<int> TakeAway(const KubectlWhere& where, const std::string& name) {
  const Result<nlohmann::json> job = LookAtJob(where, name);
  if (!job.ok()) return Refuse(job.error().message);
  if (job->is_null()) return std::nullopt;
  if (!EndOf(*job, true)) {
    return Refuse(fmt::format("job {} goes on: end it first, with parallelrun stop", name));
  }
  std::vector<std::string> words = where.Words();
  words.insert(words.end(), {"delete", "parallelrunjobs.parallelrun.dev/" + name, "--wait=true",
                             "--timeout=120s", "--ignore-not-found", "--output=name"});
  const Result<KubectlAnswer> deleted = AskKubectl(words);
  if (!deleted.ok()) return Refuse(deleted.error().message);
  if (deleted->status != 0) return deleted->status;  // kubectl has said why
  return std::nullopt;
}

// The job among what was applied.
nlohmann::json AppliedJob(const std::string& output) {
  const nlohmann::json applied = ParseJson(output).value_or(nullptr);
  if (lenient::Text(applied, "kind") == "ParallelRunJob") return applied;
  for (const nlohmann::json& object : lenient::List(applied, "items")) {
    if (lenient::Text(object, "kind") == "ParallelRunJob") return object;
  }
  return nullptr;
}

int Follow(const RenderedJob& rendered, const KubectlWhere& where, std::vector<std::string> apply,
           Instant started) {
  signal(SIGPIPE, SIG_IGN);  // who listens may go away
  const Interruption interruption;
  apply.emplace_back("--output=json");
  const Result<KubectlAnswer> answer = AskKubectl(apply, rendered.text);
  if (!answer.ok()) return Refuse(answer.error().message);
  if (answer->status != 0) return answer->status;
  const nlohmann::json job = AppliedJob(answer->output);
  const nlohmann::json& metadata = lenient::At(job, "metadata");
  FollowedJob followed{rendered.name, lenient::Text(metadata, "uid"), where,
                       rendered.losses_allowed};
  if (followed.uid.empty()) return Refuse("kubectl does not say which job it has applied");
  followed.where.name_space = lenient::Text(metadata, "namespace");
  EventStream stream(STDOUT_FILENO);
  ClusterEvents events(stream, started);
  const SystemClock clock;
  events.Start(job, where.context, clock.Now());
  for (const std::string& note : rendered.notes) events.Note(note, clock.Now());
  return FollowToEnd(followed, interruption, events);
}

}  // namespace

int Submit(const SubmitRequest& request) {
  const Instant started = SystemClock().Now();
  const Result<RenderedJob> rendered = RenderJob(request.render);
  if (!rendered.ok()) return Refuse(rendered.error().message);
  for (const std::string& note : rendered->notes) std::fprintf(stderr, "%s\n", note.c_str());
  const KubectlWhere where{request.context,
                           request.name_space.empty() ? rendered->name_space : request.name_space};
  if (request.replace) {
    if (const std::optional<int> refused = TakeAway(where, rendered->name)) return *refused;
  }
  std::vector<std::string> words = where.Words();
  const std::string kubectl = fmt::format("{}", fmt::join(words, " "));
  words.insert(words.end(), {"apply", "--server-side", "--filename=-"});
  if (request.force_conflicts) words.emplace_back("--force-conflicts");
  if (request.events) return Follow(*rendered, where, std::move(words), started);
  const Result<int> status = RunKubectl(words, rendered->text);
  if (!status.ok() && status.error().code == Code::kNotFound) {
    return Refuse(status.error().message +
                  ", or take the output of `parallelrun render` to where it is");
  }
  if (!status.ok()) return Refuse(status.error().message);
  if (*status != 0) return *status;
  const std::string& name = rendered->name;
  std::printf("watch it:     %s get prj %s --watch\n", kubectl.c_str(), name.c_str());
  std::printf("its page:     parallelrun page%s %s\n", kubectl.c_str() + sizeof("kubectl") - 1,
              name.c_str());
  std::printf("its events:   %s describe prj %s\n", kubectl.c_str(), name.c_str());
  std::printf("cancel it:    %s patch prj %s --type=merge -p '{\"spec\":{\"cancel\":true}}'\n",
              kubectl.c_str(), name.c_str());
  return kExitOk;
}

}  // namespace parallelrun::cli
