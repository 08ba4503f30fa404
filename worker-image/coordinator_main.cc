// parallelrun-coordinator: owns one job. See docs/coordinator-api.md.
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/suspension.h"
#include "base/version.h"
#include "coordinator/last_words.h"
#include "coordinator/start/start.h"

namespace parallelrun {
namespace {

// Where Kubernetes looks, for the one end at which the configuration cannot say it.
constexpr char kTerminationLog[] = "/dev/termination-log";

// Until the server listens there is nothing to hand over. As process 1 of a container the program
// would otherwise not hear the signal.
volatile sig_atomic_t drained_exit = static_cast<int>(coordinator::CoordinatorExit::kDrained);
void EndEarly(int) { _exit(static_cast<int>(drained_exit)); }

// Each node keeps connections, and what a container may open at first is often a thousand files.
void AllowManyConnections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int CannotStart(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return static_cast<int>(coordinator::CoordinatorExit::kCannotStart);
}

int Main(int argc, char** argv) {
  CLI::App app("Plans, leases and commits the mini-batches of one ParallelRun job.");
  std::string config_path;
  app.add_option("--config", config_path, "JSON file, or /dev/fd/N")->required();
  bool json = false;
  app.add_flag("--json-log", json, "Log as JSON lines");
  std::string ready_file;
  app.add_option("--ready-file", ready_file, "Made once the coordinator serves");
  int drained = static_cast<int>(coordinator::CoordinatorExit::kDrained);
  app.add_option("--drained-exit", drained, "Exit code of one that was told to go")
      ->check(CLI::Range(0, 255))
      ->capture_default_str();
  app.set_version_flag("-V,--version", parallelrun::VersionText("parallelrun-coordinator"));
  CLI11_PARSE(app, argc, argv);

  drained_exit = drained;
  // An earlier container of this pod may have made it.
  if (!ready_file.empty()) unlink(ready_file.c_str());
  // Worker processes of the same user cannot look into this one, where the job's key is.
  prctl(PR_SET_DUMPABLE, 0);
  signal(SIGTERM, EndEarly);
  suspension::HoldContinue();
  AllowManyConnections();
  // The bundle brings its own OpenSSL: the configuration of the image's is for another one.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  SetUpLogging(json ? LogFormat::kJson : LogFormat::kTree, LogLevel::kInfo);
  const std::unique_ptr<Files> files = MakeSystemFiles();
  Result<coordinator::CoordinatorConfig> config = coordinator::ReadConfig(config_path);
  if (!config.ok()) {
    if (access(kTerminationLog, W_OK) == 0) {
      coordinator::LeaveLastWords(*files, kTerminationLog,
                                  coordinator::LastErrorJson(config.error().message));
    }
    return CannotStart(config.error());
  }
  config->ready_file = ready_file;
  const Result<coordinator::CoordinatorExit> exit = coordinator::RunCoordinator(*config, *files);
  if (!exit.ok()) return CannotStart(exit.error());
  return *exit == coordinator::CoordinatorExit::kDrained ? drained : static_cast<int>(*exit);
}

}  // namespace
}  // namespace parallelrun

int main(int argc, char** argv) { return parallelrun::Main(argc, argv); }
