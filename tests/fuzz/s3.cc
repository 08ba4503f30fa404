// What comes from servers for S3, and what users write down for them: lists, errors and keys in XML
// and JSON, URLs, keys, files of profiles. The first byte of an input says which.
#include <algorithm>

#include "base/http/target.h"
#include "store/s3/address.h"
#include "store/s3/answers.h"
#include "store/s3/failure.h"
#include "store/s3/surroundings.h"
#include "tests/fuzz/expect.h"

using namespace parallelrun;             // NOLINT(google-build-using-namespace)
using namespace parallelrun::store::s3;  // NOLINT(google-build-using-namespace)

namespace {

void CheckList(const std::string& body) {
  const Result<ListPage> page = ParseListPage(body);
  if (!page.ok()) return;
  Expect(!page->more || !page->keys.empty(), "a page that would be asked for again for ever");
  for (const ListedKey& listed : page->keys) {
    Expect(!listed.key.empty() && listed.etag.size() < 255, "a key or an ETag out of bounds");
  }
}

// Any key comes back from a list as it went in, and from a path.
void CheckKey(const std::string& key) {
  if (key.empty() || key.size() > 4096) return;
  const Result<ListPage> page =
      ParseListPage("<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>" +
                    PercentEncode(key) + "</Key><Size>1</Size></Contents></ListBucketResult>");
  Expect(page.ok() && page->keys.size() == 1 && page->keys[0].key == key, "another key");
  Expect(PercentDecode(PercentEncodeSegments(key)) == key, "another path");
}

void CheckError(const std::string& body) {
  const auto error = ParseErrorBody(body);
  const Result<Server> server = ServerOf("bucket", "eu-west-1", "", std::nullopt);
  if (!error) return;
  for (const int status : {200, 403, 404, 503}) {
    const Error told = Explain({Action::kRead, {"bucket", ""}, error->code, "x"}, *server,
                               {status, *error, "", "", 0});
    Expect(std::none_of(told.message.begin(), told.message.end(),
                        [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; }),
           "a message with control characters");
  }
}

void CheckSession(const Result<SessionKeys>& session) {
  if (session.ok()) Expect(!session->keys.id.empty() && !session->keys.secret.empty(), "no keys");
}

void CheckAddress(const std::string& url, const std::string& endpoint) {
  const Result<Address> address = ParseAddress(url);
  if (!address.ok()) return;
  const Result<Address> again = ParseAddress(address->Url("") + "/");
  Expect(again.ok() && again->bucket == address->bucket && again->prefix == address->prefix,
         "another address");
  Expect(address->NameOf(address->KeyOf(url)) == url, "another name");
  const Result<Server> server = ServerOf(address->bucket, "eu-west-1", endpoint, std::nullopt);
  if (!server.ok()) return;
  Expect(std::all_of(server->host.begin(), server->host.end(), [](char c) { return c > 0x20; }),
         "a host that is none");
}

void CheckProfiles(std::string_view text) {
  const Profiles merged = Merged(ParseProfiles(text, true), ParseProfiles(text, false));
  for (const auto& [name, profile] : merged) {
    Expect(!name.empty(), "a profile without a name");
    for (const auto& [setting, value] : profile) {
      Expect(!value.empty() && value.find('\n') == std::string::npos, "a value that is none");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t nul = std::min(rest.find('\0'), rest.size());
  switch (data[0] % 7) {
    case 0: CheckList(rest); break;
    case 1: CheckKey(rest); break;
    case 2: CheckError(rest); break;
    case 3: CheckSession(ParseAssumedRole(rest)); break;
    case 4: CheckSession(ParseKeysJson(rest)); break;
    case 5: CheckAddress(rest.substr(0, nul), rest.substr(std::min(nul + 1, rest.size()))); break;
    default: CheckProfiles(rest);
  }
  return 0;
}
