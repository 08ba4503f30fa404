#include "cli/fetch/fetch_command.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <memory>

#include "base/escape.h"
#include "cli/fetch/arriving_files.h"
#include "cli/fetch/job_reader.h"
#include "cli/run/local_place.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {

int Fetch(const FetchRequest& request) {
  const Status here = MustBePath("the folder", request.folder, "files come to this machine");
  if (!here.ok()) return TellReadError(here.error());
  const std::unique_ptr<Files> files = MakeSystemFiles();
  JobReader reader(request.where, request.job, request.wait);
  const Result<std::unique_ptr<ArrivingFiles>> arriving =
      ArrivingFiles::Begin(*files, request.folder);
  if (!arriving.ok()) return TellReadError(arriving.error());
  const Result<JobReader::Came> came = reader.Bring(
      [&request](const nlohmann::json& job) { return FindWanted(job, request.what); }, **arriving);
  if (!came.ok() && reader.interrupted()) return kExitFailed;  // and the signal ends the command
  if (!came.ok()) return TellReadError(came.error());
  if (came->files == 0) {
    return TellReadError(
        {Code::kNotFound, "there is nothing to fetch: the folder is not there, or has no files"});
  }
  if (const Status finished = (*arriving)->Finish(); !finished.ok()) {
    return TellReadError(finished.error());
  }
  fmt::print("{} file{}, {} bytes: {}\n", came->files, came->files == 1 ? "" : "s", came->bytes,
             Printable((*arriving)->target(), kShownLongest));
  return kExitOk;
}

}  // namespace parallelrun::cli
