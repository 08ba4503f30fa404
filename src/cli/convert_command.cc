#include "cli/convert_command.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "api/document.h"
#include "azure/convert/convert.h"
#include "azure/read_job.h"
#include "cli/run/local_job.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {

namespace fs = std::filesystem;

namespace {

// A file that an Azure ML file names: any path that somebody wrote, so a regular file of the size
// that a document may have.
Result<std::string> ReadNeighbour(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return Error{Code::kNotFound, path.string() + " is not there"};
  }
  const uintmax_t bytes = fs::file_size(path, error);
  if (error || bytes > api::kMaxDocumentBytes) {
    return Error{Code::kInvalid, path.string() + " is larger than 1 MiB"};
  }
  return ReadJobFile(path.string());
}

}  // namespace

std::string SayConvert(const std::string& file) {
  const Result<std::string> text = ReadNeighbour(file);
  return text.ok() ? azure::SayConvert(*text, file) : "";
}

int ConvertFile(const std::string& file, const std::string& target, const std::string& step) {
  const auto say = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  std::error_code error;
  if (!target.empty() && fs::exists(target, error)) {
    say(target + " exists: name another file with -o");
    return kExitUsage;
  }
  const Result<std::string> text = ReadJobFile(file);
  if (!text.ok()) {
    say(text.error().message);
    return kExitUsage;
  }
  azure::ConvertOptions options{
      .file = fs::path(file).filename().string(), .step = step, .code_prefix = {}};
  options.read = [folder = fs::path(file).parent_path()](const std::string& path) {
    return ReadNeighbour(folder / path);
  };
  if (!target.empty()) {
    const fs::path from = fs::absolute(file).parent_path();
    options.code_prefix = from.lexically_relative(fs::absolute(target).parent_path()).string();
  }
  const azure::Conversion conversion = azure::ConvertAzure(*text, options);
  for (const api::Problem& problem : conversion.problems) say(api::FormatProblem(problem, file));
  if (conversion.yaml.empty()) return kExitUsage;
  const std::string label = target.empty() ? "the job" : target;
  const api::ParsedJob parsed = azure::ReadJob(conversion.yaml, {}, api::Target::kLocal);
  for (const api::Problem& problem : parsed.problems) say(api::FormatProblem(problem, label));
  if (target.empty()) {
    std::fputs(conversion.yaml.c_str(), stdout);
    return parsed.ok() ? kExitOk : kExitUsage;
  }
  std::ofstream out(target, std::ios::binary);
  out << conversion.yaml;
  out.close();
  if (!out) {
    say(target + " cannot be written");
    return kExitUsage;
  }
  say(target + " written: replace what is marked FILL IN, then parallelrun validate " + target);
  return parsed.ok() ? kExitOk : kExitUsage;
}

}  // namespace parallelrun::cli
