// What comes from servers for Azure Blob Storage, and what users write down for them: lists, errors
// and tokens, URLs, names, connection strings and SAS. The first byte of an input says which.
#include <algorithm>

#include "base/http/target.h"
#include "store/azure_blob/address.h"
#include "store/azure_blob/answers.h"
#include "store/azure_blob/credential_source.h"
#include "store/azure_blob/failure.h"
#include "tests/fuzz/expect.h"

using namespace parallelrun;                     // NOLINT(google-build-using-namespace)
using namespace parallelrun::store::azure_blob;  // NOLINT(google-build-using-namespace)

namespace {

void ExpectLine(const std::string& text) {
  Expect(std::none_of(text.begin(), text.end(),
                      [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; }),
         "a message with control characters");
}

void CheckList(const std::string& body) {
  const Result<ListPage> page = ParseListPage(body);
  if (!page.ok()) return;
  for (const ListedBlob& blob : page->blobs) {
    Expect(!blob.name.empty() && blob.etag.size() < 255, "a name or an ETag out of bounds");
  }
  for (const std::string& folder : page->folders) Expect(folder.ends_with('/'), "no folder");
}

void CheckName(const std::string& name) {
  Expect(PercentDecode(PercentEncodeSegments(name)) == name, "another path");
}

void CheckError(const std::string& body) {
  const auto error = ParseErrorBody(body);
  if (!error) return;
  const Address address{"account", "dfs.core.windows.net", "container", ""};
  const Result<Server> server = ServerOf(address, "");
  for (const Proof& proof :
       {Proof(SharedKey{"account", "k"}), Proof(Sas{"s"}), Proof(Bearer{"t"})}) {
    for (const int status : {401, 403, 404, 412, 503}) {
      ExpectLine(Explain({Action::kRead, address, error->code, "x"}, *server, proof,
                         {status, *error, "", "", 0})
                     .message);
    }
  }
}

void CheckAddress(const std::string& url, const std::string& endpoint) {
  const Result<Address> address = ParseAddress(url);
  if (!address.ok()) return ExpectLine(address.error().message);
  Expect(!MayHoldSas(url), "a URL with a secret in it");
  const Result<Address> again = ParseAddress(address->Url("") + "/");
  Expect(again.ok() && again->Url("") == address->Url(""), "another address");
  const Result<Server> server = ServerOf(*address, endpoint);
  if (!server.ok()) return;
  Expect(std::all_of(server->host.begin(), server->host.end(), [](char c) { return c > 0x20; }),
         "a host that is none");
}

void CheckCredentials(const std::string& variable, const std::string& text) {
  const Address address{"account", "dfs.core.windows.net", "container", ""};
  const Result<Source> source = SourceOf({{{variable, text}}}, address);
  ExpectLine(source.ok() ? source->told : source.error().message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t nul = std::min(rest.find('\0'), rest.size());
  switch (data[0] % 7) {
    case 0: CheckList(rest); break;
    case 1: CheckName(rest); break;
    case 2: CheckError(rest); break;
    case 3: static_cast<void>(ParseToken(rest)); break;
    case 4: CheckAddress(rest.substr(0, nul), rest.substr(std::min(nul + 1, rest.size()))); break;
    case 5: CheckCredentials("AZURE_STORAGE_CONNECTION_STRING", rest); break;
    default: CheckCredentials("AZURE_STORAGE_SAS_TOKEN", rest);
  }
  return 0;
}
