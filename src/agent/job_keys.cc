#include "agent/job_keys.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "store/file_path.h"

namespace parallelrun::agent {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLeastLogLimit = uint64_t{64} << 10;
constexpr uint64_t kLongestOfJob = 366 * 86400;

// A text that processes hear of as it is.
JobKey PassedOn(const char* name, std::string JobSettings::*member) {
  return {name,
          [member](Members& in, const char* key, JobSettings& job, Registration&) {
            job.*member = in.Text(key);
          },
          [member](const JobSettings& job) { return Json(job.*member); }};
}

JobKey Limit(const char* name, Duration Registration::*member) {
  return {name, [member](Members& in, const char* key, JobSettings&, Registration& registration) {
            registration.*member = seconds(static_cast<int64_t>(in.Unsigned(key, kLongestOfJob)));
          }};
}

void ReadArguments(Members& in, const char* key, JobSettings& job, Registration&) {
  for (const Json& argument : in.Value(key, Json::value_t::array)) {
    if (argument.is_string()) {
      job.arguments.push_back(argument.get<std::string>());
    } else {
      in.Fail("an argument is no string");
    }
  }
}

void ReadEnvironment(Members& in, const char* key, JobSettings& job, Registration&) {
  const Json environment = in.Value(key, Json::value_t::object);
  for (const auto& [name, value] : environment.items()) {
    if (value.is_string()) {
      job.environment.emplace_back(name, value.get<std::string>());
    } else {
      in.Fail("an environment variable is no string");
    }
  }
}

void ReadPython(Members& in, const char* key, JobSettings& job, Registration&) {
  job.python = in.TextOr(key, "python3");
  if (job.python.empty()) job.python = "python3";
}

void ReadProcessCount(Members& in, const char* key, JobSettings&, Registration& registration) {
  registration.processes = in.U32(key);
  if (registration.processes == 0) in.Fail("\"processes\" is 0");
}

void ReadStores(Members& in, const char* key, JobSettings& job, Registration&) {
  for (const Json& store : in.ValueOr(key, Json::array())) {
    Members of(store, "a store");
    JobStore& known = job.stores.emplace_back();
    known.name = of.Text("name");
    known.wished = {of.Text("url"), of.Text("region"), of.Text("endpoint"), {}, {}};
    if (of.Has("pathStyle")) known.wished.path_style = of.Boolean("pathStyle");
    const Json keys = of.ValueOr("keys", Json::object());
    known.wished.keys = {lenient::Text(keys, "folder"), lenient::Text(keys, "of")};
    if (of.BooleanOr("byUrls", false)) known.urls = std::make_shared<store::UrlTable>();
    if (!of.status().ok()) in.Fail(of.status().error().message);
  }
}

void ReadSideInputs(Members& in, const char* key, JobSettings& job, Registration&) {
  Result<std::vector<job::SideInput>> read = job::ParseSideInputs(in.ValueOr(key, Json::array()));
  if (!read.ok()) return in.Fail(read.error().message);
  for (const job::SideInput& side : *read) {
    const bool paths =
        std::all_of(side.objects.begin(), side.objects.end(),
                    [](const job::SideObject& object) { return store::IsFilePath(object.name); });
    if (!paths || !store::IsFilePath(side.name)) in.Fail("a side input leaves its folder");
  }
  job.side_inputs = std::move(*read);
}

// Passed on unread, but for what the core decides by. Behind outputAction.
void ReadWorker(Members& in, const char* key, JobSettings& job, Registration& registration) {
  const Json worker = in.ValueOr(key, Json::object());
  job.worker = worker.dump();
  if (job.output_action != "AppendRow") {
    registration.rows = Rows::kNone;
  } else if (lenient::Text(worker, "outputFormat") == "parquet") {
    registration.rows = Rows::kRowGroup;
  }
  registration.async = lenient::Boolean(worker, "asyncMode");
}

}  // namespace

const std::vector<JobKey>& JobKeys() {
  static const std::vector<JobKey> keys = {
      PassedOn("entryScript", &JobSettings::entry_script),
      {"arguments", ReadArguments, [](const JobSettings& job) { return Json(job.arguments); }},
      PassedOn("outputFolder", &JobSettings::output_folder),
      PassedOn("outputAction", &JobSettings::output_action),
      {"staging",
       [](Members& in, const char* key, JobSettings& job, Registration& registration) {
         job.staging = in.TextOr(key, "");
         registration.staged = !job.staging.empty();
       }},
      {"sideStore",  // behind staging
       [](Members& in, const char* key, JobSettings& job, Registration& registration) {
         job.side_store = in.TextOr(key, "");
         registration.staged = registration.staged || !job.side_store.empty();
       }},
      PassedOn("loggingLevel", &JobSettings::logging_level),
      {"environment", ReadEnvironment},
      {"python", ReadPython},
      {"image",
       [](Members& in, const char* key, JobSettings& job, Registration&) {
         job.image = in.TextOr(key, "");
       },
       [](const JobSettings& job) { return Json(job.image); }},
      {"processes", ReadProcessCount},
      Limit("runTimeoutSeconds", &Registration::run_timeout),
      Limit("overheadTimeoutSeconds", &Registration::overhead_timeout),
      {"shutdownTimeoutSeconds",
       [](Members& in, const char* key, JobSettings&, Registration& registration) {
         if (!in.Has(key)) return;
         registration.shutdown_timeout =
             seconds(static_cast<int64_t>(in.Unsigned(key, kLongestOfJob)));
       }},
      {"speculation",
       [](Members& in, const char* key, JobSettings&, Registration& registration) {
         registration.speculation = in.BooleanOr(key, true);
       }},
      {"sideInputs", ReadSideInputs},
      {"stores", ReadStores},
      {"cacheBytes", [](Members& in, const char* key, JobSettings& job,
                        Registration&) { job.cache_bytes = in.UnsignedOr(key, UINT64_MAX, 0); }},
      {"worker", ReadWorker},
      {"processesPerGpu",
       [](Members& in, const char* key, JobSettings& job, Registration&) {
         const uint64_t most = std::numeric_limits<int32_t>::max();
         job.processes_per_gpu =
             std::max<uint32_t>(1, static_cast<uint32_t>(in.UnsignedOr(key, most, 1)));
       }},
      {"resourceMonitorIntervalSeconds",
       [](Members& in, const char* key, JobSettings& job, Registration&) {
         job.resource_monitor_interval =
             seconds(static_cast<int64_t>(in.UnsignedOr(key, kLongestOfJob, 0)));
       }},
      {"logLimitBytes",
       [](Members& in, const char* key, JobSettings& job, Registration&) {
         job.log_limit = std::max(in.UnsignedOr(key, UINT64_MAX, job.log_limit), kLeastLogLimit);
       }},
  };
  return keys;
}

Result<JobSettings> ReadJobKeys(const Json& object, Registration& registration) {
  Members in(object, "the job in the coordinator's answer");
  JobSettings job;
  for (const JobKey& key : JobKeys()) key.read(in, key.name.c_str(), job, registration);
  if (!in.status().ok()) return in.status().error();
  return job;
}

}  // namespace parallelrun::agent
