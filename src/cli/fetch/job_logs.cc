#include "cli/fetch/job_logs.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/escape.h"
#include "cli/fetch/arriving_files.h"
#include "cli/fetch/wanted_files.h"
#include "cli/run/continue_command.h"

namespace parallelrun::cli {

std::string NamedJob::Words() const {
  std::string words = ForShell(name);
  if (!where.name_space.empty()) words += " --namespace " + ForShell(where.name_space);
  if (!where.context.empty()) words += " --context " + ForShell(where.context);
  return Printable(words, kShownLong);
}

Result<std::unique_ptr<JobLogs>> JobLogs::Make(const NamedJob& job) {
  std::error_code error;
  std::string path = std::filesystem::temp_directory_path(error) / "parallelrun-logs-XXXXXX";
  if (error || mkdtemp(path.data()) == nullptr) {
    return ErrnoError(error ? error.value() : errno, "make a folder like " + path);
  }
  return std::unique_ptr<JobLogs>(new JobLogs(job, std::move(path)));
}

JobLogs::JobLogs(const NamedJob& job, std::string folder)
    : files_(MakeSystemFiles()),
      reader_(std::make_unique<JobReader>(job.where, job.name, job.wait)),
      folder_(std::move(folder)) {}

JobLogs::~JobLogs() {
  // While signals still wait.
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Status JobLogs::Bring(const std::string& below, const std::vector<std::string>& only) {
  Result<std::unique_ptr<ArrivingFiles>> arriving =
      ArrivingFiles::Begin(*files_, folder_ + "/logs/" + below);
  if (!arriving.ok()) return arriving.error();
  const Result<JobReader::Came> came = reader_->Bring(
      [&](const nlohmann::json& job) { return FindInLogs(job, below, only); }, **arriving);
  if (!came.ok()) return came.error();
  return (*arriving)->Finish();
}

void JobLogs::Finish() {
  reader_.reset();
  // What was brought is removed, also when nobody reads to the end.
  signal(SIGPIPE, SIG_IGN);
}

Result<coordinator::LogFolder> JobLogs::Open() const {
  return coordinator::LogFolder::Open(*files_, folder_ + "/logs");
}

}  // namespace parallelrun::cli
