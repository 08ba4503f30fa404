#include "job/side_list.h"

#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "base/escape.h"
#include "base/hex.h"
#include "base/json.h"
#include "job/side_uploads.h"

namespace parallelrun::job {
namespace {

using Json = nlohmann::json;

constexpr size_t kFileParts = 3;          // name, size, digest
constexpr size_t kUploadedFileParts = 5;  // and the upload, its parts
constexpr size_t kMostUploadId = 1024;    // bytes
constexpr size_t kMostPartEtag = 255;
constexpr size_t kMostSideFiles = 10'000;
constexpr size_t kMostSideName = 1024;  // bytes
constexpr int kListDepth = 4;

constexpr char kOneOwner[] =
    "With output.sideFiles: Staged a file counts with the one mini-batch that has written it, and "
    "no other one appends to it: give each mini-batch names of its own, as with "
    "mini_batch_context.minibatch_index, and start over with --overwrite (output.ifExists: "
    "Overwrite)";

Error NoList(const char* why) {
  return {Code::kCorrupt, fmt::format("the rows do not begin with a list of side files: {}", why)};
}

bool LeadsBelow(std::string_view name) {
  if (name.empty() || name.size() > kMostSideName || name.find('\0') != std::string_view::npos) {
    return false;
  }
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

bool IsStagedFolder(std::string_view name) {
  return LeadsBelow(name) && std::count(name.begin(), name.end(), '/') == 1;
}

// False: it is no upload of a file that long.
bool ReadUpload(const Json& id, const Json& etags, SideFile& file) {
  if (!id.is_string() || !etags.is_array() || etags.size() != SidePartsOf(file.bytes)) return false;
  file.upload = id.get<std::string>();
  if (file.upload.empty() || file.upload.size() > kMostUploadId) return false;
  for (const Json& etag : etags) {
    if (!etag.is_string()) return false;
    file.etags.push_back(etag.get<std::string>());
    if (file.etags.back().empty() || file.etags.back().size() > kMostPartEtag) return false;
  }
  return true;
}

// False: it is no file.
bool ReadFile(const Json& value, SideFile& file) {
  const bool uploaded = value.is_array() && value.size() == kUploadedFileParts;
  if (!value.is_array() || (value.size() != kFileParts && !uploaded) || !value[0].is_string() ||
      !value[1].is_number_unsigned() || !value[2].is_string()) {
    return false;
  }
  file.name = value[0].get<std::string>();
  file.bytes = value[1].get<uint64_t>();
  if (!LeadsBelow(file.name) || file.bytes > kMostSideFileBytes) return false;
  if (!ReadSha256(value[2].get_ref<const std::string&>(), file.sha256)) return false;
  return !uploaded || ReadUpload(value[3], value[4], file);
}

// In place of the mini-batch that a name is of.
constexpr BatchId kFolder = UINT64_MAX;

std::string FileAndFolder(std::string_view name, BatchId file, BatchId folder) {
  return fmt::format(
      "{} is a side file of mini-batch {}, and the folder of another one (seen with mini-batch "
      "{}): "
      "give the two names that can stand side by side, and start over with --overwrite "
      "(output.ifExists: Overwrite)",
      Printable(name, kShown), MiniBatchText(file), MiniBatchText(folder));
}

}  // namespace

Result<SideList> ParseSideList(std::string_view line) {
  if (line.size() >= kMostSideLine) return NoList("it is too long");
  const std::optional<Json> object = ParseObject(line, kListDepth);
  if (!object) return NoList("it is no JSON object");
  SideList list;
  if (object->empty()) return list;
  list.folder = lenient::Text(*object, "folder");
  if (!IsStagedFolder(list.folder)) return NoList("its folder is none");
  for (const Json& value : lenient::List(*object, "files")) {
    SideFile file;
    if (!ReadFile(value, file)) return NoList("one of its files is none");
    if (!list.files.empty() && list.files.back().name >= file.name) {
      return NoList("its names are not in order");
    }
    list.files.push_back(std::move(file));
  }
  if (list.files.empty() || list.files.size() > kMostSideFiles) {
    return NoList("it has no file, or too many");
  }
  return list;
}

std::string SideListText(const SideList& list) {
  Json object = Json::object();
  if (!list.files.empty()) object["folder"] = list.folder;
  for (const SideFile& file : list.files) {
    Json one = {file.name, file.bytes, Hex(file.sha256)};
    if (!file.upload.empty()) {
      one.push_back(file.upload);
      one.push_back(file.etags);
    }
    object["files"].push_back(std::move(one));
  }
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool IsSideName(std::string_view name) { return LeadsBelow(name); }

bool ReadSha256(std::string_view digits, std::array<uint8_t, 32>& digest) {
  if (digits.size() != 2 * digest.size()) return false;
  for (size_t i = 0; i < digest.size(); ++i) {
    const std::optional<uint64_t> byte = ParseHex(digits.substr(2 * i, 2));
    if (!byte) return false;
    digest[i] = static_cast<uint8_t>(*byte);
  }
  return true;
}

bool StagesSideFiles(std::string_view plan_settings) {
  const Json settings = ParseJson(plan_settings).value_or(nullptr);
  return lenient::Text(lenient::At(settings, "output"), "sideFiles") == "Staged";
}

Result<std::string_view> SideLine::RowsIn(std::string_view bytes, bool first) {
  if (first) *this = {};
  if (ended_) return bytes;
  const size_t end = bytes.find('\n');
  const std::string_view more = bytes.substr(0, end);
  too_long_ = too_long_ || line_.size() + more.size() >= kMostSideLine;
  if (too_long_) return NoList("it is too long");
  line_.append(more);
  ended_ = end != std::string_view::npos;
  return ended_ ? bytes.substr(end + 1) : std::string_view();
}

void SideNames::Add(BatchId id, std::string_view line, size_t most) {
  const Result<SideList> list = ParseSideList(line);
  if (!list.ok()) {
    return Fail(fmt::format("mini-batch {}: {}", MiniBatchText(id), list.error().message));
  }
  for (const SideFile& file : list->files) {
    for (size_t slash = file.name.find('/'); slash != std::string::npos;
         slash = file.name.find('/', slash + 1)) {
      const std::string_view folder = std::string_view(file.name).substr(0, slash);
      const BatchId owner = Take(folder, kFolder);
      if (owner != kFolder) return Fail(FileAndFolder(folder, owner, id));
    }
    const BatchId owner = Take(file.name, id);
    if (owner == kFolder) return Fail(FileAndFolder(file.name, id, id));
    if (owner != id) {
      return Fail(fmt::format("the mini-batches {} and {} have both written the side file {}. {}",
                              MiniBatchText(owner), MiniBatchText(id), Printable(file.name, kShown),
                              kOneOwner));
    }
    if (owners_.size() > most) {
      return Fail(
          fmt::format("there are more than {} side files, with those of mini-batch {}. "
                      "Write fewer and larger ones, or with output.sideFiles: Direct, and "
                      "start over with --overwrite (output.ifExists: Overwrite)",
                      most, MiniBatchText(id)));
    }
  }
}

BatchId SideNames::Take(std::string_view name, BatchId id) {
  return owners_.try_emplace(XXH3_64bits(name.data(), name.size()), id).first->second;
}

bool SideNames::Has(std::string_view name) const {
  return owners_.contains(XXH3_64bits(name.data(), name.size()));
}

void SideNames::Void(const std::vector<BatchId>& ids) {
  if (owners_.empty()) return;
  std::vector<BatchId> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  std::erase_if(owners_, [&sorted](const auto& one) {
    return std::binary_search(sorted.begin(), sorted.end(), one.second);
  });
}

void SideNames::Fail(std::string why) {
  if (trouble_.empty()) trouble_ = std::move(why);
}

}  // namespace parallelrun::job
