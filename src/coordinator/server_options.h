// What a CoordinatorServer is started with. Plain data.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/http/server.h"
#include "base/time.h"
#include "coordinator/limits.h"
#include "coordinator/log_tree/log_folder.h"
#include "coordinator/log_tree/log_sender.h"
#include "job/side_inputs.h"
#include "output/publisher.h"
#include "output/result_manifest.h"
#include "plan/planner.h"
#include "store/url_signer.h"
#include "store/wished.h"

namespace parallelrun::coordinator {

struct ServerOptions {
  CoordinatorLimits coordinator;
  HttpServerOptions http;
  std::optional<HttpServerOptions> metrics_http;  // /metrics and probes, for everybody
  std::string key;                                // of the job; tokens are derived from it
  std::string agent_job;                          // JSON text: `job` of the answer to register
  std::string output_folder;
  std::shared_ptr<output::Sink> sink;               // of the output; none with SummaryOnly
  std::shared_ptr<output::ResultManifest> results;  // of what a script writes itself; or none
  output::PublishOptions publish;
  uint32_t generation = 0;                                      // of the run
  std::function<Status()> give_back = [] { return Status(); };  // the output, at the end
  std::shared_ptr<LogSender> log_sender;  // of logs that go to a store; or none
  // Beside an output in a store, once they are written.
  std::function<Status(const LogFolder&)> put_reports = [](const LogFolder&) { return Status(); };
  bool dead_letters = false;  // told of in a file of their own
  std::string warning;        // of what an earlier run is continued with; shown
  std::string state_folder;
  std::string ready_file;  // made once it serves (base/ready_mark.h)
  std::vector<plan::PlanInput> inputs;
  std::map<std::string, store::Wished> stores;  // how each is asked, by name
  // Those of them whose objects nodes read by URLs that are signed here.
  std::map<std::string, store::Wished> signed_stores;
  Duration url_life = store::kUrlLife;      // of these
  std::vector<job::SideInput> side_inputs;  // those in stores
  std::vector<std::string> forbidden;       // folders that the listing must not meet
  bool page = false;                        // the live page is served
  Duration leave_limit = seconds(30);  // how long nodes may take to upload their logs at the end
  Duration ownerless_limit = std::chrono::hours(24);  // without a node and a call: it ends drained
};

}  // namespace parallelrun::coordinator
