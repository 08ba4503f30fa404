#include "store/s3/answers.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <string_view>

#include "base/http/target.h"
#include "base/json.h"
#include "store/objects/object_version.h"
#include "store/s3/timestamps.h"

namespace parallelrun::store::s3 {
namespace {

using nlohmann::json;

constexpr size_t kMostUploadId = 2048;  // AWS's have about 150
constexpr size_t kMostKey = 4096;       // S3's are 1,024; others may allow more

// Entities beyond XML's own five are not known to it, and nothing is read from anywhere: a document
// cannot grow. A key that is one space is a text, and not nothing.
constexpr unsigned kOptions =
    pugi::parse_escapes | pugi::parse_cdata | pugi::parse_ws_pcdata_single;

bool Load(pugi::xml_document& document, const std::string& body) {
  return static_cast<bool>(document.load_buffer(body.data(), body.size(), kOptions));
}

Error NotExpected(const std::string& what) {
  return {Code::kCorrupt, "the server's answer is not what it should be: " + what};
}

Result<std::string> ParseName(std::string name, bool encoded) {
  if (encoded) {
    std::optional<std::string> decoded = FormDecode(name);
    if (!decoded) return NotExpected("a key is not encoded as it says");
    name = std::move(*decoded);
  }
  if (name.empty() || name.size() > kMostKey) return NotExpected("a key is empty, or too long");
  return name;
}

Result<ListedKey> ParseKey(const pugi::xml_node& contents, bool encoded) {
  Result<std::string> key = ParseName(contents.child_value("Key"), encoded);
  if (!key.ok()) return key.error();
  ListedKey listed;
  listed.key = std::move(*key);
  const std::string_view size = contents.child_value("Size");
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), listed.size);
  if (error != std::errc() || end != size.data() + size.size()) {
    return NotExpected("a size is not a number");
  }
  listed.etag = PlainEtag(contents.child_value("ETag"));
  if (listed.etag.size() > kMostEtag) return NotExpected("an ETag is too long");
  return listed;
}

}  // namespace

Result<ListPage> ParseListPage(const std::string& body) {
  pugi::xml_document document;
  if (!Load(document, body)) return NotExpected("not XML");
  const pugi::xml_node root = document.child("ListBucketResult");
  if (!root) return NotExpected("not a list of keys");
  const bool encoded = std::string_view(root.child_value("EncodingType")) == "url";
  ListPage page;
  page.more = std::string_view(root.child_value("IsTruncated")) == "true";
  for (const pugi::xml_node& contents : root.children("Contents")) {
    Result<ListedKey> key = ParseKey(contents, encoded);
    if (!key.ok()) return key.error();
    page.keys.push_back(std::move(*key));
  }
  for (const pugi::xml_node& common : root.children("CommonPrefixes")) {
    Result<std::string> folder = ParseName(common.child_value("Prefix"), encoded);
    if (!folder.ok()) return folder.error();
    page.folders.push_back(std::move(*folder));
  }
  if (page.more && page.keys.empty() && page.folders.empty()) {
    return NotExpected("an empty page that others follow");
  }
  return page;
}

std::optional<ErrorBody> ParseErrorBody(const std::string& body) {
  pugi::xml_document document;
  if (!Load(document, body)) return std::nullopt;
  pugi::xml_node error = document.child("Error");
  if (!error) error = document.child("ErrorResponse").child("Error");  // STS
  if (!error) return std::nullopt;
  return ErrorBody{error.child_value("Code"), error.child_value("Message"),
                   error.child_value("Region")};
}

Result<std::string> ParseUploadId(const std::string& body) {
  pugi::xml_document document;
  if (!Load(document, body)) return NotExpected("not XML");
  std::string id = document.child("InitiateMultipartUploadResult").child_value("UploadId");
  if (id.empty() || id.size() > kMostUploadId) return NotExpected("no upload");
  return id;
}

bool IsCompleted(const std::string& body) {
  pugi::xml_document document;
  return Load(document, body) && document.child("CompleteMultipartUploadResult");
}

Result<SessionKeys> ParseAssumedRole(const std::string& body) {
  pugi::xml_document document;
  if (!Load(document, body)) return NotExpected("not XML");
  const pugi::xml_node found = document.child("AssumeRoleWithWebIdentityResponse")
                                   .child("AssumeRoleWithWebIdentityResult")
                                   .child("Credentials");
  SessionKeys session;
  session.keys = {found.child_value("AccessKeyId"), found.child_value("SecretAccessKey"),
                  found.child_value("SessionToken")};
  session.ends = ParseIsoTime(found.child_value("Expiration"));
  const Keys& keys = session.keys;
  if (keys.id.empty() || keys.secret.empty() || keys.token.empty() || !session.ends) {
    return NotExpected("no credentials in it");
  }
  return session;
}

Result<SessionKeys> ParseKeysJson(const std::string& body) {
  const json object = ParseJson(body).value_or(nullptr);
  const Error wrong{Code::kCorrupt, "the answer has no credentials in it"};
  SessionKeys session;
  session.keys = {lenient::Text(object, "AccessKeyId"), lenient::Text(object, "SecretAccessKey"),
                  lenient::Text(object, "Token")};
  const std::string ends = lenient::Text(object, "Expiration");
  session.ends = ParseIsoTime(ends);
  const bool whole = !session.keys.id.empty() && !session.keys.secret.empty();
  if (!whole || (!ends.empty() && !session.ends)) return wrong;
  return session;
}

}  // namespace parallelrun::store::s3
