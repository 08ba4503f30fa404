#include "cli/run/launcher.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/processes/spawn.h"
#include "api/to_json.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/memory_file.h"
#include "base/open_below.h"
#include "base/random.h"
#include "base/small_file.h"
#include "base/version.h"
#include "cli/run/code_snapshot.h"
#include "coordinator/access.h"
#include "coordinator/last_words.h"
#include "coordinator/log_tree/log_folder.h"
#include "output/output_index.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

// Of what a child reads from the start as /dev/fd/N, and of what it leaves.
constexpr char kFileName[] = "parallelrun-config";

Result<Fd> ListenOnLoopback(uint16_t& port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!fd.ok() || bind(fd.get(), generic, size) != 0 || listen(fd.get(), 1024) != 0 ||
      getsockname(fd.get(), generic, &size) != 0) {
    return ErrnoError(errno, "listen on 127.0.0.1");
  }
  port = ntohs(address.sin_port);
  return fd;
}

json SelectionJson(const api::Selection& selection) {
  json object = json::object();
  if (selection.limit) object["limit"] = *selection.limit;
  if (selection.files) object["files"] = *selection.files;
  return object;
}

// `path` is below the folder of the logs.
Result<Fd> AppendTo(const std::string& log_folder, const std::string& path) {
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const Result<coordinator::LogFolder> folder = coordinator::LogFolder::Open(*files, log_folder);
  if (!folder.ok()) return folder.error();
  const std::string name = path.substr(log_folder.size() + 1);
  if (const Status made = folder->Append(name, ""); !made.ok()) return made.error();
  // The handle of the folder gives no descriptor, which a child needs.
  const Fd root(open(log_folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  Fd file(root.ok() ? OpenBelow(root.get(), name, O_WRONLY | O_APPEND, 0) : -1);
  if (!file.ok()) return ErrorBelow(errno, "open " + Printable(path, 1000));
  return file;
}

}  // namespace

Launcher::Launcher(const LocalJob& job, const RunRequest& request, std::string folder)
    : job_(job),
      request_(request),
      folder_(std::move(folder)),
      key_(RandomHex(32)),
      uid_(RandomHex(16)) {}

Status Launcher::Prepare(const Programs& programs, const std::string& script) {
  programs_ = programs;
  CodeFolder code{job_.code_folder, script, job_.layout.forbidden};
  code.leave_out.push_back(folder_);
  // What this command says may go into a file of that folder, which grows meanwhile.
  for (const char* stream : {"/proc/self/fd/1", "/proc/self/fd/2"}) {
    std::error_code none;
    const std::filesystem::path file = std::filesystem::read_symlink(stream, none);
    if (!none) code.leave_out.push_back(file);
  }
  for (const std::string& made :
       {job_.layout.published_path, output::IndexNameOf(job_.layout.published_path)}) {
    code.leave_out.push_back(made);  // its folder may hold the code
  }
  for (const plan::PlanInput& input : job_.layout.inputs) code.leave_out.push_back(input.root);
  Result<CodeSnapshot> snapshot = SnapshotCode(code, CodeCopy());
  if (!snapshot.ok()) return snapshot.error();
  code_digest_ = snapshot->digest;
  code_files_ = std::move(snapshot->files);
  notes_ = std::move(snapshot->notes);
  if (const Status room = CheckRoom(CodeCopy(), job_.nodes); !room.ok()) return room;

  Result<Fd> listening = ListenOnLoopback(port_);
  if (!listening.ok()) return listening.error();
  listening_ = std::move(*listening);
  return {};
}

std::string Launcher::Url() const { return fmt::format("http://127.0.0.1:{}", port_); }

std::string Launcher::OperatorToken() const { return coordinator::RoleToken(key_, "operator"); }

std::string Launcher::PageUrl() const {
  return fmt::format("{}/#t={}", Url(), coordinator::RoleToken(key_, "viewer"));
}

std::string Launcher::CoordinatorLog() const {
  return job_.layout.log_folder + "/sys/master_role.txt";
}

std::string Launcher::NodeLog(size_t index) const {
  return fmt::format("{}/sys/node/{}/_main.txt", job_.layout.log_folder, index);
}

std::string Launcher::LastWords() const {
  return OrEmpty(ReadRange(words_.get(), 0, coordinator::kMaxLastWords, "the last words"));
}

Result<pid_t> Launcher::StartCoordinator() {
  Result<Fd> words = MemoryFile(kFileName, "");
  if (!words.ok()) return words.error();
  words_ = std::move(*words);
  const json config = {{"release", kVersion},
                       {"job", api::ToJson(job_.job)},
                       {"volumes", job_.volumes},
                       {"key", key_},
                       {"listen", {{"fd", 3}}},
                       {"resourceUid", uid_},
                       {"resume", request_.resume},
                       {"overwrite", request_.overwrite},
                       {"retryFailed", request_.retry_failed},
                       {"scriptFolderFirst", request_.quick.has_value()},
                       {"selection", SelectionJson(selection_)},
                       {"codeDigest", fmt::format("{:x}", code_digest_)},
                       {"codeFiles", code_files_},
                       {"nodes", job_.nodes},
                       {"processes", job_.processes},
                       {"page", request_.page},
                       {"terminationMessage", "/dev/fd/5"}};
  Result<Fd> file =
      MemoryFile(kFileName, config.dump(-1, ' ', false, json::error_handler_t::replace));
  if (!file.ok()) return file.error();
  Result<Fd> log = AppendTo(job_.layout.log_folder, CoordinatorLog());
  if (!log.ok()) return log.error();
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return agent::Spawn(
      {programs_.Command(programs_.coordinator, {"--config", "/dev/fd/4"}),
       agent::OwnEnvironment(),
       "/",
       {null.get(), log->get(), log->get(), listening_.get(), file->get(), words_.get()}});
}

Result<Launcher::NodeProcess> Launcher::StartNode(size_t index, int attempt) {
  const json config = {{"url", Url()},
                       {"token", coordinator::RoleToken(key_, fmt::format("node:{}", index))},
                       {"node", index},
                       {"codeFolder", CodeCopy()},
                       {"workFolder", fmt::format("{}/node-{}-{}", folder_, index, attempt)},
                       {"pythonPath", programs_.python_package}};
  Result<Fd> file = MemoryFile(kFileName, config.dump());
  if (!file.ok()) return file.error();
  Result<Fd> log = AppendTo(job_.layout.log_folder, NodeLog(index));
  if (!log.ok()) return log.error();
  int watch[2];
  if (pipe2(watch, O_CLOEXEC) != 0) return ErrnoError(errno, "make a pipe");
  const Fd read_end(watch[0]);
  NodeProcess node{0, Fd(watch[1])};
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<std::string> guard = {"guard", "--watch", "3", "--"};
  for (std::string& word : programs_.Command(programs_.agent, {"--config", "/dev/fd/4"})) {
    guard.push_back(std::move(word));
  }
  // It outlives this process, to kill what is left, and goes on for that if it was stopped. Killed
  // with it, it left all that the script had started; and of what it had stopped already, to kill
  // it then, a child of the agent that was not yet to die with its parent.
  const Result<pid_t> pid =
      agent::Spawn({programs_.Command(programs_.agent, guard),
                    agent::OwnEnvironment(),
                    "/",
                    {null.get(), log->get(), log->get(), read_end.get(), file->get()},
                    SIGCONT});
  if (!pid.ok()) return pid.error();
  node.guardian = *pid;
  return node;
}

}  // namespace parallelrun::cli
