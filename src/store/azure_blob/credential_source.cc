#include "store/azure_blob/credential_source.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "base/base64.h"
#include "base/escape.h"
#include "base/http/target.h"

namespace parallelrun::store::azure_blob {
namespace {

constexpr const char* kConnection = "AZURE_STORAGE_CONNECTION_STRING";
constexpr const char* kAccount = "AZURE_STORAGE_ACCOUNT";
constexpr const char* kKey = "AZURE_STORAGE_KEY";
constexpr const char* kSas = "AZURE_STORAGE_SAS_TOKEN";
constexpr const char* kTokenFile = "AZURE_FEDERATED_TOKEN_FILE";
constexpr const char* kClient = "AZURE_CLIENT_ID";
constexpr const char* kTenant = "AZURE_TENANT_ID";
constexpr const char* kAuthority = "AZURE_AUTHORITY_HOST";
constexpr std::array kVariables{kConnection, kAccount, kKey,    kSas,
                                kTokenFile,  kClient,  kTenant, kAuthority};

Error Wrong(const std::string& words) {
  return {Code::kInvalid, "credentials for Azure: " + words};
}

Error OfAnother(const std::string& what, const std::string& account, const Address& address) {
  return Wrong(fmt::format("{} is of account {}, and the URL names {}", what,
                           Printable(account, kShown), address.account));
}

Result<Source> FromKey(const std::string& account, const std::string& text,
                       const std::string& what) {
  std::optional<std::string> key = DecodeBase64(text);
  if (!key || key->empty()) return Wrong("the key in " + what + " is not base64, as keys are");
  return Source{SharedKey{account, std::move(*key)}, fmt::format("{} of the environment", what)};
}

// "sp=rl, until 2027-01-01": what it allows, without its signature.
std::string TermsOf(const std::string& token) {
  std::string terms;
  for (const auto& [name, words] : {std::pair{"sp", "sp="}, std::pair{"se", "until "}}) {
    const std::string value = QueryParameter(token, name).value_or("");
    if (!value.empty()) terms += (terms.empty() ? "" : ", ") + (words + Printable(value, kShown));
  }
  return terms.empty() ? "" : ", " + terms;
}

Result<Source> FromSas(std::string token, const std::string& what) {
  if (token.starts_with('?')) token.erase(0, 1);
  const bool usable = !QueryParameter(token, "sig").value_or("").empty() &&
                      std::all_of(token.begin(), token.end(), [](char c) {
                        return c > ' ' && c < 0x7f && c != '#' && c != '?';
                      });
  if (!usable) return Wrong("the SAS in " + what + " is none: it has parameters, sig among them");
  const std::string told = fmt::format("{} of the environment (a SAS{})", what, TermsOf(token));
  return Source{Sas{std::move(token)}, told};
}

// "Name=value;Name=value"; a value may have '=' in it.
std::map<std::string, std::string> Settings(std::string_view text) {
  std::map<std::string, std::string> settings;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const size_t equals = one.find('=');
    if (equals != std::string_view::npos)
      settings[std::string(one.substr(0, equals))] = one.substr(equals + 1);
  }
  return settings;
}

Result<Source> FromConnectionString(const std::string& text, const Address& address) {
  std::map<std::string, std::string> settings = Settings(text);
  if (settings.count("UseDevelopmentStorage") > 0) {
    return Wrong(
        "UseDevelopmentStorage is not understood in AZURE_STORAGE_CONNECTION_STRING: write out "
        "AccountName, AccountKey and BlobEndpoint of Azurite");
  }
  const std::string account = settings["AccountName"];
  if (!account.empty() && account != address.account) {
    return OfAnother(kConnection, account, address);
  }
  if (settings["AccountKey"].empty() && settings["SharedAccessSignature"].empty()) {
    return Wrong(
        "AZURE_STORAGE_CONNECTION_STRING has neither AccountKey nor SharedAccessSignature in it");
  }
  Result<Source> source = settings["AccountKey"].empty()
                              ? FromSas(settings["SharedAccessSignature"], kConnection)
                              : FromKey(address.account, settings["AccountKey"], kConnection);
  if (!source.ok()) return source;
  source->endpoint = settings["BlobEndpoint"];
  const std::string suffix = settings["EndpointSuffix"];
  if (source->endpoint.empty() && !suffix.empty()) {
    const std::string protocol = settings["DefaultEndpointsProtocol"];
    source->endpoint = fmt::format("{}://{}.blob.{}", protocol.empty() ? "https" : protocol,
                                   address.account, suffix);
  }
  return source;
}

Result<Source> FromWorkloadIdentity(const Surroundings& around) {
  WorkloadIdentity identity{around.Variable(kTokenFile), around.Variable(kClient),
                            around.Variable(kTenant), around.Variable(kAuthority)};
  if (identity.client.empty() || identity.tenant.empty()) {
    return Wrong(
        "AZURE_FEDERATED_TOKEN_FILE is set, and AZURE_CLIENT_ID or AZURE_TENANT_ID is not; all "
        "three are needed");
  }
  if (identity.authority.empty()) identity.authority = "https://login.microsoftonline.com";
  while (identity.authority.ends_with('/')) identity.authority.pop_back();
  // A token is sent there.
  if (!IsPrivate(identity.authority)) return Wrong("AZURE_AUTHORITY_HOST must be https");
  const std::string told = fmt::format("the workload identity {} (AZURE_FEDERATED_TOKEN_FILE)",
                                       Printable(identity.client, kShown));
  return Source{std::move(identity), told};
}

}  // namespace

std::string Surroundings::Variable(const std::string& name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

Surroundings ReadSurroundings() {
  Surroundings read;
  for (const char* name : kVariables) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
    if (value != nullptr && *value != '\0') read.variables[name] = value;
  }
  return read;
}

Result<Source> SourceOf(const Surroundings& around, const Address& address) {
  const std::string connection = around.Variable(kConnection);
  if (!connection.empty()) return FromConnectionString(connection, address);
  const std::string account = around.Variable(kAccount);
  const std::string key = around.Variable(kKey);
  const std::string sas = around.Variable(kSas);
  if (!account.empty() && account != address.account && !(key.empty() && sas.empty())) {
    return OfAnother(kAccount, account, address);
  }
  if (!key.empty()) return FromKey(address.account, key, kKey);
  if (!sas.empty()) return FromSas(sas, kSas);
  if (!around.Variable(kTokenFile).empty()) return FromWorkloadIdentity(around);
  return Error{Code::kPermission,
               "no credentials for Azure: set AZURE_STORAGE_CONNECTION_STRING, or "
               "AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or AZURE_STORAGE_SAS_TOKEN; on a "
               "cluster, have a workload identity (AZURE_FEDERATED_TOKEN_FILE, AZURE_CLIENT_ID, "
               "AZURE_TENANT_ID)"};
}

}  // namespace parallelrun::store::azure_blob
