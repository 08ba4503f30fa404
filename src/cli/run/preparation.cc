#include "cli/run/preparation.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/version.h"
#include "cli/run/preflight.h"
#include "cli/run/programs.h"
#include "cli/run/python_check.h"
#include "coordinator/start/output_store.h"
#include "coordinator/start/state_lock.h"
#include "output/output_claim.h"

namespace parallelrun::cli {

Status Preparation::Check(int stop) {
  const Result<Programs> programs = FindPrograms();
  if (!programs.ok()) return programs.error();
  std::vector<std::string> problems;
  const Result<std::string> script = CheckCode(job_);
  if (!script.ok()) problems.push_back("code: " + script.error().message);
  // Beside it, what takes as long as Python does to start.
  PythonCheck python(job_, request_, script.ok() ? *script : "", programs->python_package);
  rest_client::InitRestThread();
  Status prepared = folder_.Make();
  if (prepared.ok() && script.ok()) {
    launcher_ = std::make_unique<Launcher>(job_, request_, folder_.path());
    prepared = launcher_->Prepare(*programs, *script);
  }
  InputSize size;
  for (std::string& problem : CheckInputs(job_, request_, size)) {
    problems.push_back(std::move(problem));
  }
  for (std::string& problem : CheckOutput(job_, request_)) {
    problems.push_back(std::move(problem));
  }
  if (!prepared.ok()) problems.push_back(prepared.error().message);
  if (problems.empty()) {
    Result<Chosen> chosen = ChooseItems(request_.select, job_);
    if (!chosen.ok()) problems.push_back(chosen.error().message);
    if (chosen.ok()) chosen_ = std::move(*chosen);
  }
  if (launcher_) launcher_->Take(chosen_.selection);
  const PythonReport report = python.Finish(stop);
  for (const PythonProblem& problem : report.problems) {
    problems.push_back(problem.part + ": " + problem.text);
  }
  if (!problems.empty()) return Error{Code::kInvalid, ListOf(problems)};
  facts_ = Facts(job_, report, size);
  return {};
}

Status Preparation::Lock() {
  Result<std::unique_ptr<File>> lock = coordinator::LockState(*files_, job_.layout.state_folder);
  if (!lock.ok() && lock.error().code == Code::kUnavailable) return lock.error();
  if (!lock.ok()) return Unusable(lock.error());
  lock_ = std::move(*lock);
  return {};
}

Status Preparation::CheckLocked() const {
  return coordinator::CheckLocked(*files_, *lock_, job_.layout.state_folder);
}

std::vector<std::string> Preparation::Notes() const {
  std::vector<std::string> notes = job_.notes;
  notes.insert(notes.end(), launcher_->notes().begin(), launcher_->notes().end());
  if (!facts_.empty()) notes.push_back(facts_);
  if (!chosen_.note.empty()) notes.push_back(chosen_.note);
  return notes;
}

Result<std::unique_ptr<rest_client::RestClient>> Preparation::Client() const {
  rest_client::RestClientOptions options;
  options.base_url = launcher_->Url();
  options.token = [token = launcher_->OperatorToken()] { return token; };
  options.user_agent = std::string("parallelrun/") + kVersion;
  return rest_client::RestClient::Make(std::move(options));
}

void Preparation::RemoveLeft(bool published) const {
  const coordinator::JobLayout& layout = job_.layout;
  // What cannot be removed now the next run takes over.
  if (!layout.output_store.empty()) {
    // One that has published has left nothing.
    if (!published) static_cast<void>(coordinator::RemoveLeftInStore(*files_, layout));
    return;
  }
  static_cast<void>(
      output::RemoveLeftBeside(*files_, layout.state_folder, layout.output_folder,
                               layout.output_path.empty() ? "" : job_.job.spec.output.file_name,
                               layout.published_path.substr(layout.published_path.rfind('/') + 1)));
}

// The folder that is to hold output, logs and state is of no use: what to do.
Error Preparation::Unusable(const Error& why) const {
  std::string flag = "--volume " + job_.job.spec.state.in.volume + "=FOLDER";
  if (request_.quick) flag = request_.quick->output.url.empty() ? "--output" : "--state";
  return {why.code,
          fmt::format("the job's state folder cannot be used: {}; make room or correct the "
                      "permissions there, or choose another one with {}",
                      why.message, flag)};
}

}  // namespace parallelrun::cli
