// The coordinator's configuration (docs/coordinator-api.md). Pure but for ReadConfig.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "api/selection.h"
#include "base/error.h"
#include "base/http/server.h"
#include "base/time.h"
#include "coordinator/start/code_files.h"
#include "coordinator/start/layout.h"
#include "job/side_inputs.h"
#include "store/url_signer.h"

namespace parallelrun::coordinator {

struct CoordinatorConfig {
  api::Job job;
  Volumes volumes;
  std::map<std::string, std::string> store_keys;  // folders of key files, by the store's name
  std::string installation;  // tells the clusters apart that one bucket serves; empty: local
  std::string key;
  HttpServerOptions http;
  std::optional<HttpServerOptions> metrics_http;
  std::string resource_uid;
  bool resume = false;
  bool overwrite = false;
  bool retry_failed = false;
  uint64_t code_digest = 0;
  CodeFiles code_files;  // what it is made of; empty: unknown
  api::Selection selection;
  bool script_folder_first = false;  // on sys.path, in front of the code root
  uint32_t nodes = 1;
  uint32_t processes = 1;           // of each node
  std::string termination_message;  // file that gets the last words as JSON; empty: none
  bool page = false;                // the live page is served
  bool presign = false;             // nodes have no keys of stores, but URLs that are signed here
  Duration url_life = store::kUrlLife;  // of these
  Duration ownerless_limit = std::chrono::hours(24);
  std::string ready_file;  // made once it serves; empty: none. Of the command line

  // Its own address instead of a socket from its starter: it is a pod, as its agents are.
  bool in_pod() const { return http.listen_fd < 0; }
  // Two run() at once on the same items are no harm where only rows count.
  bool speculation() const {
    return job.spec.speculation.value_or(job.spec.output.action == api::OutputAction::kAppendRow);
  }
};

// kInvalid names the key that is wrong.
Result<CoordinatorConfig> ParseConfig(const std::string& text);
// Reads and parses a file, or a pipe as /dev/fd/N.
Result<CoordinatorConfig> ReadConfig(const std::string& path);

// Whether nodes fetch objects of that store by URLs that the coordinator signs.
bool NodesReadByUrls(const CoordinatorConfig& config, const api::ObjectStore& store);

// The name of the appended file; "" with SummaryOnly.
std::string OutputFileOf(const CoordinatorConfig& config);

// What an agent is told of the job, as JSON text. `side_inputs`: those in stores, as they were
// listed.
Result<std::string> AgentJob(const CoordinatorConfig& config, const JobLayout& layout,
                             const std::vector<job::SideInput>& side_inputs = {});

}  // namespace parallelrun::coordinator
