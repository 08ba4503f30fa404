#include "cli/fetch/wanted_files.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <utility>

#include "base/escape.h"
#include "base/json.h"
#include "cli/run/continue_command.h"
#include "output/output_index.h"
#include "output/own_places.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kMounts[] = "/mnt/";
constexpr std::string_view kScheme = "s3://";

std::string NameOf(const json& job) { return lenient::Text(lenient::At(job, "metadata"), "name"); }

// A path of a volume without ways out of it; "" where it has one.
std::string Below(const std::string& path) {
  const std::string normal = fs::path(path).lexically_normal();
  const bool out =
      normal.empty() || normal.front() == '/' || normal == ".." || normal.starts_with("../");
  if (out) return "";
  return normal.size() > 1 && normal.ends_with('/') ? normal.substr(0, normal.size() - 1) : normal;
}

// "VOLUME/PATH", as the status has it.
Result<WantedFiles> Place(const std::string& place, const char* what) {
  const size_t slash = place.find('/');
  WantedFiles wanted;
  wanted.volume = place.substr(0, slash);
  wanted.folder = slash == std::string::npos ? "." : Below(place.substr(slash + 1));
  if (wanted.volume.empty() || wanted.folder.empty()) {
    return Error{Code::kCorrupt, fmt::format("the job's status does not say where its {} is: {}",
                                             what, Printable(place, kShown))};
  }
  return wanted;
}

// With the volume of the output and a path that is not there, those of the job's name.
Result<WantedFiles> SpecPlace(const json& job, const char* section, const char* fallback) {
  const json& spec = lenient::At(job, "spec");
  const json& place = lenient::At(spec, section);
  std::string volume = lenient::Text(place, "volume");
  if (volume.empty()) volume = lenient::Text(lenient::At(spec, "output"), "volume");
  std::string path = lenient::Text(place, "path");
  if (path.empty()) path = NameOf(job) + "/" + fallback;
  return Place(volume + "/" + path, section);
}

bool SummaryOnly(const json& job) {
  return lenient::Text(lenient::AtPath(job, "/spec/output"), "action") == "SummaryOnly";
}

// That of spec.stores in which a section of the spec is; null where it is in none. Logs go where
// the state goes, and that where the output is, if the job says nothing.
const json& StoreOf(const json& job, const char* section) {
  static const json kNone;
  const json& spec = lenient::At(job, "spec");
  std::string store = lenient::Text(lenient::At(spec, section), "store");
  for (const char* other : {"state", "output"}) {
    if (store.empty()) store = lenient::Text(lenient::At(spec, other), "store");
  }
  for (const json& one : lenient::List(spec, "stores")) {
    if (lenient::Text(one, "name") == store) return one;
  }
  return kNone;
}

// `what` is the field of the spec, too; `copy` is what the tool of the store's maker is to do.
Error InStore(const json& job, const char* what, const char* copy, const std::string& url) {
  const std::string endpoint = lenient::Text(StoreOf(job, what), "endpoint");
  return {Code::kInvalid,
          fmt::format(
              "job {} has its {} in a store, {}: copy from there with\n    aws s3 {} {}{} .",
              Printable(NameOf(job), kShown), what, Printable(url, kShown), copy,
              endpoint.empty() ? "" : "--endpoint-url " + ForShell(endpoint) + " ", ForShell(url))};
}

Result<WantedFiles> Output(const json& job) {
  const std::string name = Printable(NameOf(job), kShown);
  if (SummaryOnly(job)) {
    return Error{
        Code::kInvalid,
        fmt::format("job {} has output.action SummaryOnly: fetch its side-files, which its "
                    "script has written",
                    name)};
  }
  const json& output = lenient::AtPath(job, "/status/output");
  const std::string path = lenient::Text(output, "path");
  if (path.empty()) {
    return Error{Code::kUnavailable,
                 fmt::format("job {} has no output yet: there is one once it has succeeded", name)};
  }
  if (path.starts_with(kScheme)) return InStore(job, "output", "cp", path);
  const size_t slash = path.rfind('/');
  if (!path.starts_with(kMounts) || slash + 1 == path.size()) {
    return Error{Code::kCorrupt,
                 "the job's status does not say where its output is: " + Printable(path, kShown)};
  }
  constexpr size_t kBegin = sizeof(kMounts) - 1;
  Result<WantedFiles> wanted =
      Place(slash < kBegin ? "" : path.substr(kBegin, slash - kBegin), "output");
  if (!wanted.ok()) return wanted;
  const std::string file = path.substr(slash + 1);
  wanted->only = {file, output::IndexNameOf(file)};
  wanted->must =
      ExpectedFile{file, lenient::Unsigned(output, "bytes"), lenient::Text(output, "sha256")};
  return wanted;
}

Result<WantedFiles> Logs(const json& job) {
  const std::string logs = LogsOf(job);
  if (logs.starts_with(kScheme)) return InStore(job, "logs", "cp --recursive", logs);
  if (!logs.empty()) return Place(logs, "log folder");
  return Error{Code::kUnavailable,
               fmt::format("job {} has no logs yet", Printable(NameOf(job), kShown))};
}

// What lies in the output folder beside what the job itself has there.
Result<WantedFiles> SideFiles(const json& job) {
  const json& output = lenient::AtPath(job, "/spec/output");
  if (!lenient::Text(output, "store").empty()) {
    const std::string name = Printable(NameOf(job), kShown);
    if (lenient::Text(output, "sideFiles") != "Staged") {
      return Error{Code::kInvalid,
                   fmt::format("job {} writes into a store: it has no side-files", name)};
    }
    const std::string path = lenient::Text(lenient::AtPath(job, "/status/output"), "path");
    if (path.empty()) {
      return Error{
          Code::kUnavailable,
          fmt::format("job {} has no side-files yet: there are some once it has succeeded", name)};
    }
    return InStore(job, "output", "cp --recursive", path.substr(0, path.rfind('/') + 1));
  }
  Result<WantedFiles> wanted = SpecPlace(job, "output", "output");
  if (!wanted.ok()) return wanted;
  std::string file = lenient::Text(lenient::AtPath(job, "/spec/output"), "fileName");
  if (file.empty()) file = "parallel_run_step.txt";
  const bool summary = SummaryOnly(job);
  if (summary) file = output::kSideListName;
  const std::string index = output::IndexNameOf(file);
  wanted->except = {index, "." + file + ".*", file + ".set-aside-*", index + ".set-aside-*",
                    ".parallelrun-staged-*"};
  // With SummaryOnly the list of side files comes with them, and the claim is of the folder.
  wanted->except.push_back(summary ? ".parallelrun-claim*" : file);
  for (const char* section : {"logs", "state"}) {
    const json& place = lenient::At(lenient::At(job, "spec"), section);
    if (!lenient::Text(place, "store").empty()) continue;
    const Result<WantedFiles> own = SpecPlace(job, section, section);
    if (!own.ok() || own->volume != wanted->volume) continue;
    const std::string inside = fs::path(own->folder).lexically_relative(wanted->folder);
    if (!Below(inside).empty() && inside != ".") wanted->except.push_back(inside);
  }
  return wanted;
}

}  // namespace

std::optional<FetchWhat> FetchWhatOf(const std::string& word) {
  if (word == "output") return FetchWhat::kOutput;
  if (word == "logs") return FetchWhat::kLogs;
  if (word == "report") return FetchWhat::kReport;
  if (word == "side-files") return FetchWhat::kSideFiles;
  return std::nullopt;
}

Result<WantedFiles> FindWanted(const json& job, FetchWhat what) {
  switch (what) {
    case FetchWhat::kOutput: return Output(job);
    case FetchWhat::kLogs: return Logs(job);
    case FetchWhat::kSideFiles: return SideFiles(job);
    case FetchWhat::kReport: break;
  }
  Result<WantedFiles> wanted = Logs(job);
  if (!wanted.ok()) return wanted;
  wanted->only = {"report.html", "job_result.txt", "failures.jsonl"};
  wanted->must = ExpectedFile{"report.html", 0, ""};
  return wanted;
}

Result<WantedFiles> FindInLogs(const json& job, const std::string& below,
                               std::vector<std::string> only) {
  Result<WantedFiles> wanted = Logs(job);
  if (!wanted.ok()) return wanted;
  wanted->folder = Below(wanted->folder + "/" + below);
  wanted->only = std::move(only);
  return wanted;
}

std::string LogsOf(const json& job) { return lenient::Text(lenient::At(job, "status"), "logs"); }

std::optional<store::Wished> LogStoreOf(const json& job) {
  const std::string logs = LogsOf(job);
  if (!logs.starts_with(kScheme)) return std::nullopt;
  const json& named = StoreOf(job, "logs");
  store::Wished wished;
  wished.url = logs;
  wished.region = lenient::Text(named, "region");
  wished.endpoint = lenient::Text(named, "endpoint");
  if (named.is_object() && named.contains("pathStyle")) {
    wished.path_style = lenient::Boolean(named, "pathStyle");
  }
  return wished;
}

std::string MountOf(const std::string& volume) { return kMounts + volume; }

}  // namespace parallelrun::cli
