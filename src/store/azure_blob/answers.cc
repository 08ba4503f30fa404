#include "store/azure_blob/answers.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "base/http/target.h"
#include "base/json.h"
#include "store/objects/object_version.h"

namespace parallelrun::store::azure_blob {
namespace {

using nlohmann::json;

constexpr size_t kMostName = 4096;    // bytes; Azure's have up to 1,024 characters
constexpr size_t kMostMarker = 8192;  // it goes into a URL
constexpr size_t kMostToken = 64 * 1024;
constexpr uint64_t kMostLife = uint64_t{366} * 24 * 3600;  // seconds

// Entities beyond XML's own five are not known to it, and nothing is read from anywhere: a document
// cannot grow. A name that is one space is a text, and not nothing.
constexpr unsigned kOptions =
    pugi::parse_escapes | pugi::parse_cdata | pugi::parse_ws_pcdata_single;

bool Load(pugi::xml_document& document, const std::string& body) {
  return static_cast<bool>(document.load_buffer(body.data(), body.size(), kOptions));
}

Error NotExpected(const std::string& what) {
  return {Code::kCorrupt, "the server's answer is not what it should be: " + what};
}

// Of a blob or a folder; it is encoded where XML cannot hold it as it is.
Result<std::string> ParseName(const pugi::xml_node& entry) {
  const pugi::xml_node node = entry.child("Name");
  std::string name = node.child_value();
  if (node.attribute("Encoded").as_bool()) {
    std::optional<std::string> decoded = PercentDecode(name);
    if (!decoded) return NotExpected("a name is not encoded as it says");
    name = std::move(*decoded);
  }
  if (name.empty() || name.size() > kMostName) {
    return NotExpected("a name is empty, or too long");
  }
  return name;
}

Result<ListedBlob> ParseBlob(const pugi::xml_node& entry) {
  Result<std::string> name = ParseName(entry);
  if (!name.ok()) return name.error();
  ListedBlob blob;
  blob.name = std::move(*name);
  const pugi::xml_node properties = entry.child("Properties");
  blob.is_folder = std::string_view(properties.child_value("ResourceType")) == "directory" ||
                   std::string_view(entry.child("Metadata").child_value("hdi_isfolder")) == "true";
  const std::string_view size = properties.child_value("Content-Length");
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), blob.size);
  const bool is_number = error == std::errc() && end == size.data() + size.size();
  if (!is_number && !blob.is_folder) return NotExpected("a size is not a number");
  blob.etag = PlainEtag(properties.child_value("Etag"));
  if (blob.etag.size() > kMostEtag) return NotExpected("an ETag is too long");
  return blob;
}

}  // namespace

Result<ListPage> ParseListPage(const std::string& body) {
  pugi::xml_document document;
  if (!Load(document, body)) return NotExpected("not XML");
  const pugi::xml_node results = document.child("EnumerationResults");
  if (!results) return NotExpected("not a list of blobs");
  ListPage page;
  for (const pugi::xml_node entry : results.child("Blobs").children()) {
    const std::string_view kind = entry.name();
    if (kind == "Blob") {
      Result<ListedBlob> blob = ParseBlob(entry);
      if (!blob.ok()) return blob.error();
      page.blobs.push_back(std::move(*blob));
    } else if (kind == "BlobPrefix") {
      Result<std::string> name = ParseName(entry);
      if (!name.ok()) return name.error();
      if (!name->ends_with('/')) return NotExpected("a folder without its /");
      page.folders.push_back(std::move(*name));
    }
  }
  page.marker = results.child_value("NextMarker");
  if (page.marker.size() > kMostMarker) return NotExpected("a marker is too long");
  return page;
}

std::optional<ErrorBody> ParseErrorBody(const std::string& body) {
  pugi::xml_document document;
  if (!Load(document, body)) return std::nullopt;
  const pugi::xml_node error = document.child("Error");
  if (!error) return std::nullopt;
  ErrorBody told{error.child_value("Code"), error.child_value("Message"), ""};
  // Behind its first line stand the request's id and the time.
  told.message.erase(std::min(told.message.find('\n'), told.message.size()));
  return told;
}

Result<Token> ParseToken(const std::string& body) {
  const json object = ParseJson(body).value_or(nullptr);
  Token token;
  token.text = lenient::Text(object, "access_token");
  if (token.text.empty() || token.text.size() > kMostToken) {
    return NotExpected("no token in it");
  }
  const json& life = lenient::At(object, "expires_in");
  if (life.is_number_unsigned() && life.get<uint64_t>() <= kMostLife) {
    token.life = seconds(life.get<int64_t>());
  }
  return token;
}

std::string ParseTokenError(const std::string& body) {
  const json object = ParseJson(body).value_or(nullptr);
  const std::string words = lenient::Text(object, "error_description");
  return words.empty() ? lenient::Text(object, "error")
                       : words.substr(0, words.find_first_of("\r\n"));
}

}  // namespace parallelrun::store::azure_blob
