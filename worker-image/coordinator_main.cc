// parallelrun-coordinator: owns one job. See docs/coordinator-api.md.
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/log.h"
#include "base/version.h"
#include "coordinator/last_words.h"
#include "coordinator/start/start.h"

namespace parallelrun {
namespace {

// Where Kubernetes looks, for the one end at which the configuration cannot say it.
constexpr char kTerminationLog[] = "/dev/termination-log";

// Until the server listens there is nothing to hand over. As process 1 of a container the program
// would otherwise not hear the signal.
void EndEarly(int) { _exit(static_cast<int>(CoordinatorExit::kDrained)); }

// Each node keeps connections, and what a container may open at first is often a thousand files.
void AllowManyConnections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int CannotStart(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return static_cast<int>(CoordinatorExit::kCannotStart);
}

int Main(int argc, char** argv) {
  CLI::App app("Plans, leases and commits the mini-batches of one ParallelRun job.");
  std::string config_path;
  app.add_option("--config", config_path, "JSON file, or /dev/fd/N")->required();
  bool json = false;
  app.add_flag("--json-log", json, "Log as JSON lines");
  app.set_version_flag("-V,--version", parallelrun::VersionText("parallelrun-coordinator"));
  CLI11_PARSE(app, argc, argv);

  signal(SIGTERM, EndEarly);
  AllowManyConnections();
  // The bundle brings its own OpenSSL: the configuration of the image's is for another one.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  SetUpLogging(json ? LogFormat::kJson : LogFormat::kTree, LogLevel::kInfo);
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const Result<CoordinatorConfig> config = ReadConfig(config_path);
  if (!config.ok()) {
    if (access(kTerminationLog, W_OK) == 0) {
      LeaveLastWords(*files, kTerminationLog, LastErrorJson(config.error().message));
    }
    return CannotStart(config.error());
  }
  const Result<CoordinatorExit> exit = RunCoordinator(*config, *files);
  return exit.ok() ? static_cast<int>(*exit) : CannotStart(exit.error());
}

}  // namespace
}  // namespace parallelrun

int main(int argc, char** argv) { return parallelrun::Main(argc, argv); }
