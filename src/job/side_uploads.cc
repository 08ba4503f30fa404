#include "job/side_uploads.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/hex.h"
#include "base/json.h"
#include "job/side_list.h"

namespace parallelrun::job {
namespace {

constexpr uint64_t kPartStep = uint64_t{1} << 20;
constexpr size_t kMostUploadName = 1024;  // bytes of its id

Error NoUploads(const char* what) { return {Code::kInvalid, what}; }

std::string Dumped(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

uint64_t SidePartBytes(uint64_t file_bytes) {
  const uint64_t needed = (file_bytes + kMostSideParts - 1) / kMostSideParts;
  return std::max(kLeastSidePart, (needed + kPartStep - 1) / kPartStep * kPartStep);
}

uint32_t SidePartsOf(uint64_t file_bytes) {
  const uint64_t part = SidePartBytes(file_bytes);
  return static_cast<uint32_t>(std::max<uint64_t>(1, (file_bytes + part - 1) / part));
}

std::string SideUploadsWantedText(const SideUploadsWanted& wanted) {
  nlohmann::json files = nlohmann::json::array();
  for (const SideUploadWanted& file : wanted.files) {
    nlohmann::json& one = files.emplace_back(
        nlohmann::json{{"name", file.name}, {"bytes", file.bytes}, {"sha256", Hex(file.sha256)}});
    if (file.upload.empty()) continue;
    one["upload"] = file.upload;
    one["part"] = file.part;
  }
  return Dumped({{"miniBatch", wanted.mini_batch}, {"files", std::move(files)}});
}

Result<SideUploadsWanted> ParseSideUploadsWanted(std::string_view text) {
  const std::optional<nlohmann::json> object = ParseObject(text);
  if (!object) return NoUploads("no JSON object that names side files");
  Members in(*object, "the call for uploads");
  SideUploadsWanted wanted{in.Unsigned("miniBatch", UINT64_MAX), {}};
  for (const nlohmann::json& value : in.Value("files", nlohmann::json::value_t::array)) {
    Members of(value, "a file of the call for uploads");
    SideUploadWanted& file = wanted.files.emplace_back();
    file.name = of.Text("name");
    file.bytes = of.Unsigned("bytes", kMostSideFileBytes);
    const bool digest = ReadSha256(of.Text("sha256"), file.sha256);
    file.upload = of.TextOr("upload", "");
    file.part = static_cast<uint32_t>(of.UnsignedOr("part", kMostSideParts, 1));
    if (!of.status().ok()) return of.status().error();
    const bool part = file.part >= 1 && file.part <= SidePartsOf(file.bytes);
    if (!digest || !part || !IsSideName(file.name) || file.upload.size() > kMostUploadName) {
      return NoUploads("a file of the call for uploads is none");
    }
  }
  if (!in.status().ok()) return in.status().error();
  if (wanted.files.empty() || wanted.files.size() > kMostSideUploads) {
    return NoUploads("the call for uploads names no file, or too many");
  }
  return wanted;
}

std::string SideUploadsText(const SideUploads& uploads) {
  nlohmann::json files = nlohmann::json::array();
  for (const SideUpload& upload : uploads.files) {
    files.push_back({{"upload", upload.id}, {"urls", upload.urls}});
  }
  return Dumped({{"seconds", uploads.seconds}, {"files", std::move(files)}});
}

Result<SideUploads> ParseSideUploads(std::string_view text) {
  const Error wrong = NoUploads("the answer to a call for uploads is malformed");
  const std::optional<nlohmann::json> object = ParseObject(text);
  if (!object) return wrong;
  Members in(*object, "the answer to a call for uploads");
  SideUploads uploads{in.U32("seconds"), {}};
  for (const nlohmann::json& value : in.Value("files", nlohmann::json::value_t::array)) {
    Members of(value, "a file of the answer to a call for uploads");
    SideUpload& upload = uploads.files.emplace_back();
    upload.id = of.Text("upload");
    for (const nlohmann::json& url : of.Value("urls", nlohmann::json::value_t::array)) {
      if (!url.is_string()) return wrong;
      upload.urls.push_back(url.get<std::string>());
    }
    if (!of.status().ok()) return of.status().error();
    if (upload.id.empty() || upload.urls.empty()) return wrong;
  }
  if (!in.status().ok()) return in.status().error();
  return uploads;
}

}  // namespace parallelrun::job
