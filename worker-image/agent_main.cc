// parallelrun-agent: the agent of one node, and its guardian (docs/coordinator-api.md).
#include <openssl/ssl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/bundle.h"
#include "agent/farewell.h"
#include "agent/processes/guardian.h"
#include "agent/sending/send_files.h"
#include "base/files.h"
#include "base/log.h"
#include "base/ready_mark.h"
#include "base/suspension.h"
#include "base/thread.h"
#include "base/version.h"

namespace {

using parallelrun::Result;
using parallelrun::agent::AgentConfig;
using parallelrun::agent::AgentOptions;

int Fail(const parallelrun::Error& error) {
  std::fprintf(stderr, "parallelrun-agent: %s\n", error.message.c_str());
  return parallelrun::agent::kAgentCannotStart;
}

int FailInPod(const parallelrun::Error& error, const AgentOptions& options) {
  parallelrun::agent::LeaveFarewell(*parallelrun::MakeSystemFiles(), options.farewell,
                                    error.message);
  return Fail(error);
}

// A thread that hangs on a disk may come back while this process ends: then nothing that it uses
// may be destroyed.
int End(int code) {
  if (!parallelrun::Thread::AnyLeft()) return code;
  spdlog::default_logger()->flush();
  std::_Exit(code);
}

// Until the agent listens there is nothing to drain. As process 1 of a container it would otherwise
// not hear the signal.
volatile sig_atomic_t drained_exit = parallelrun::agent::kAgentDrained;
void EndEarly(int) { _exit(static_cast<int>(drained_exit)); }

int RunNode(const std::string& config_file, const AgentOptions& options) {
  drained_exit = options.drained_exit;
  // Worker processes of the same user cannot look into this one, where the token is.
  prctl(PR_SET_DUMPABLE, 0);
  signal(SIGTERM, EndEarly);
  parallelrun::suspension::HoldContinue();
  // The bundle brings its own OpenSSL: the configuration of the image's is for another one.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  const Result<AgentConfig> config = parallelrun::agent::ReadAgentConfig(config_file);
  if (!config) return FailInPod(config.error(), options);
  signal(SIGPIPE, SIG_IGN);  // a reader of our log that goes away must not end the job
  AgentOptions all = options;
  all.node = config->node;
  return parallelrun::agent::RunAgent(*config, all);
}

int Install(const std::string& from, const std::string& folder) {
  const Result<std::string> bundle =
      from.empty() ? parallelrun::agent::OwnBundle() : Result<std::string>(from);
  if (!bundle) return Fail(bundle.error());
  const parallelrun::Status installed = parallelrun::agent::InstallBundle(*bundle, folder);
  return installed.ok() ? 0 : Fail(installed.error());
}

int Send(const parallelrun::agent::SendRequest& request) {
  const parallelrun::Status sent =
      parallelrun::agent::SendFilesOut(*parallelrun::MakeSystemFiles(), request);
  return sent.ok() ? 0 : Fail(sent.error());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The ParallelRun agent: runs the worker processes of one node.");
  app.set_version_flag("-V,--version", parallelrun::VersionText("parallelrun-agent"));
  std::string config_file;
  app.add_option("--config", config_file, "JSON file, or a pipe as /dev/fd/N");
  AgentOptions options;
  int64_t drain_seconds = options.drain_grace / parallelrun::seconds(1);
  app.add_option("--drain-grace", drain_seconds,
                 "Seconds that running mini-batches have after SIGTERM")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  int64_t away_seconds = options.away_limit / parallelrun::seconds(1);
  app.add_option("--away-limit", away_seconds, "Seconds without a coordinator before giving up")
      ->check(CLI::Range(1, 7 * 86400))
      ->capture_default_str();
  bool json_log = false;
  app.add_flag("--log-json", json_log,
               "Log one JSON object a line, and lines to _main.txt in the log tree");
  app.add_option("--termination-message", options.farewell,
                 "Gets the last error, if it exists already")
      ->capture_default_str();
  app.add_option("--ready-file", options.ready_file,
                 "Made when the first process has finished init(), or the node is told to go");
  app.add_option("--drained-exit", options.drained_exit,
                 "Exit code of a node that was told to go and holds nothing more")
      ->check(CLI::Range(0, 255))
      ->capture_default_str();
  bool debug = false;
  app.add_flag("--debug", debug, "Log more");

  CLI::App* guard = app.add_subcommand(
      "guard", "Start COMMAND; when it ends, or the other end of pipe FD closes, kill all of it");
  int watch_fd = -1;
  guard->add_option("--watch", watch_fd, "The pipe, as a descriptor number")->required();
  std::vector<std::string> command;
  guard->add_option("command", command, "COMMAND and its arguments, after --")->required();
  guard->positionals_at_end();

  CLI::App* install = app.add_subcommand("install", "Copy the bundle of this program into DIR");
  std::string install_folder;
  install->add_option("DIR", install_folder, "Folder, made if missing")->required();
  std::string install_from;
  install->add_option("--from", install_from, "The bundle, if not this program's own");
  CLI::App* await = app.add_subcommand("await", "End when FILE is there");
  std::string awaited;
  await->add_option("FILE", awaited, "The --ready-file of an agent")->required();
  CLI::App* send = app.add_subcommand("send", "Write the files below a folder to stdout, framed");
  parallelrun::agent::SendRequest sending;
  send->add_option("ROOT", sending.root, "A mount; nothing outside of it is read")->required();
  send->add_option("FOLDER", sending.folder, "Of the root; . is all of it")->required();
  send->add_option("--only", sending.only, "This file of the folder")->allow_extra_args(false);
  send->add_option("--except", sending.except, "Not this name, or the names that NAME* means")
      ->allow_extra_args(false);
  CLI11_PARSE(app, argc, argv);

  if (*await) return parallelrun::AwaitReadyMark(awaited), 0;
  if (*send) return Send(sending);
  if (*install) return Install(install_from, install_folder);
  if (*guard) return parallelrun::agent::Guard(watch_fd, command);
  if (config_file.empty()) {
    return Fail({parallelrun::Code::kInvalid, "--config FILE is required"});
  }
  using parallelrun::LogFormat;
  parallelrun::SetUpLogging(json_log ? LogFormat::kJson : LogFormat::kTree,
                            debug ? parallelrun::LogLevel::kDebug : parallelrun::LogLevel::kInfo);
  options.drain_grace = parallelrun::seconds(drain_seconds);
  options.log_to_file = json_log;
  options.away_limit = parallelrun::seconds(away_seconds);
  return End(RunNode(config_file, options));
}
