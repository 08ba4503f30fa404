#include "tests/bench/coordinator/coordinator.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <spawn.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "coordinator/log_tree/log_sink.h"
#include "coordinator/log_tree/log_writer.h"
#include "coordinator/server.h"
#include "ledger/ledger.h"

namespace parallelrun::bench {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  fmt::print(stderr, "bench_coordinator: {}\n", what);
  std::exit(1);
}

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) Fail(result.error().message);
  return std::move(*result);
}

}  // namespace

void WriteCertificate(const std::string& folder) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 24 * 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto* subject = reinterpret_cast<const unsigned char*>("bench");
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, subject, -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_EXTENSION* address =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
  X509_add_ext(certificate, address, -1);
  X509_EXTENSION_free(address);
  X509_sign(certificate, key, EVP_sha256());
  std::FILE* file = std::fopen((folder + "/tls.crt").c_str(), "w");
  if (file == nullptr || PEM_write_X509(file, certificate) != 1) Fail("cannot write tls.crt");
  std::fclose(file);
  file = std::fopen((folder + "/tls.key").c_str(), "w");
  if (file == nullptr ||
      PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    Fail("cannot write tls.key");
  }
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

int Listen(uint16_t& port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, any, size) != 0 || listen(fd, 4096) != 0 ||
      getsockname(fd, any, &size) != 0) {
    Fail("cannot listen on 127.0.0.1");
  }
  port = ntohs(address.sin_port);
  return fd;
}

pid_t StartCoordinator(const CoordinatorSettings& s) {
  std::vector<std::string> words = {"bench_coordinator",
                                    "coordinator",
                                    s.folder,
                                    s.key,
                                    std::to_string(s.listen_fd),
                                    std::to_string(s.nodes),
                                    std::to_string(s.processes),
                                    std::to_string(s.batches)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process = -1;
  if (posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ) != 0) {
    Fail("cannot start the coordinator");
  }
  return process;
}

int RunCoordinator(const CoordinatorSettings& s) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  spdlog::set_level(spdlog::level::warn);
  const std::unique_ptr<Files> files = MakeSystemFiles();
  job::JobState state;
  ledger::LedgerOptions options;
  options.state_folder = s.folder + "/state";
  options.nonce = static_cast<uint64_t>(getpid());
  options.new_run_id = 1;
  if (const Status made = files->MakeFolders(options.state_folder); !made.ok()) {
    Fail(made.error().message);
  }
  const auto apply = [&state](const job::Record& record, const job::Place& place,
                              const job::Place& rows) { return state.Apply(record, place, rows); };
  const std::unique_ptr<ledger::Ledger> ledger =
      Must(ledger::Ledger::Claim(*files, options, apply));
  std::optional<job::SettingsRecord> settings;
  if (ledger->fresh()) settings = job::SettingsRecord{1, 1, 2, "bench", "{}", "{}"};
  if (const Status begun = ledger->Begin(settings, std::nullopt); !begun.ok()) {
    Fail(begun.error().message);
  }
  if (settings) {
    if (const Status applied = state.Apply(*settings, {}, {}); !applied.ok()) {
      Fail(applied.error().message);
    }
  }
  coordinator::ServerOptions server;
  server.coordinator.nodes = s.nodes;
  server.coordinator.processes = s.processes;
  server.coordinator.settings_digest = 7;
  // As with SummaryOnly: a new epoch waits for every node, and no lease may be lost.
  server.coordinator.speculation = false;
  server.http.listen_fd = s.listen_fd;
  server.http.tls_chain_file = s.folder + "/tls.crt";
  server.http.tls_key_file = s.folder + "/tls.key";
  server.http.max_connections = size_t{4} * s.nodes;
  server.key = s.key;
  server.agent_job = "{}";
  server.output_folder = s.folder + "/out";
  server.state_folder = options.state_folder;
  plan::PlanInput ranks;
  ranks.name = "ranks";
  ranks.kind = plan::PlanKind::kRanks;
  ranks.batch_size = s.batches;
  server.inputs = {ranks};
  coordinator::LogSink sink = Must(coordinator::LogSink::Open(*files, s.folder + "/logs"));
  const coordinator::LogFolder folder = sink.folder();
  coordinator::LogWriter logs(std::move(sink));
  coordinator::CoordinatorServer coordinator(std::move(server), *files, *ledger, state, folder,
                                             logs);
  return static_cast<int>(Must(coordinator.Run()));
}

double ProcessorSeconds(pid_t process) {
  std::ostringstream text;
  text << std::ifstream(fmt::format("/proc/{}/stat", process)).rdbuf();
  std::istringstream fields(text.str().substr(text.str().rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;  // up to the minor and major faults
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double PeakMegabytes(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1000;
  }
  return 0;
}

}  // namespace parallelrun::bench
