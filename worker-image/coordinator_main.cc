// parallelrun-coordinator: owns one job. See docs/coordinator-api.md.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "coordinator/start.h"

int main(int argc, char** argv) {
  using namespace parallelrun;
  CLI::App app("Plans, leases and commits the mini-batches of one ParallelRun job.");
  std::string config_path;
  app.add_option("--config", config_path, "JSON file, or /dev/fd/N")->required();
  bool json = false;
  app.add_flag("--json-log", json, "Log as JSON lines");
  app.set_version_flag("--version", PARALLELRUN_VERSION);
  CLI11_PARSE(app, argc, argv);

  SetUpLogging(json, LogLevel::kInfo);
  const auto cannot_start = [](const Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return static_cast<int>(CoordinatorExit::kCannotStart);
  };
  const Result<CoordinatorConfig> config = ReadConfig(config_path);
  if (!config.ok()) return cannot_start(config.error());
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const Result<CoordinatorExit> exit = RunCoordinator(*config, *files);
  if (!exit.ok()) {
    const nlohmann::json message = {{"error", exit.error().message}};
    WriteTerminationMessage(*config, *files,
                            message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return cannot_start(exit.error());
  }
  return static_cast<int>(*exit);
}
