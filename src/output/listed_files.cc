#include "output/listed_files.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <string_view>

#include "base/count_of.h"
#include "base/escape.h"
#include "base/file_lines.h"
#include "base/hex.h"
#include "base/json.h"
#include "output/output_file.h"
#include "output/output_index.h"
#include "output/own_places.h"

namespace parallelrun::output {
namespace {

constexpr size_t kMostListLine = size_t{8} << 20;  // a mini-batch's files, with their digests
constexpr size_t kReadAtOnce = size_t{1} << 20;

// How it differs, in words that follow its name; "": not at all.
Result<std::string> DifferenceOf(const Folder& folder, const std::string& name, uint64_t bytes,
                                 const std::string& sha256) {
  const Result<std::unique_ptr<File>> file = folder.OpenRead(name);
  if (!file.ok() && file.error().code == Code::kNotFound) return std::string("is not there");
  if (!file.ok()) return file.error();
  const Result<uint64_t> size = (*file)->Size();
  if (!size.ok()) return size.error();
  if (*size != bytes) {
    return fmt::format("has {}, {} were published", CountOf(*size, "byte"), bytes);
  }
  (*file)->ExpectSequentialReads();
  Sha256 digest;
  for (uint64_t at = 0; at < bytes;) {
    const Result<std::string> read = (*file)->ReadAt(at, kReadAtOnce);
    if (!read.ok()) return read.error();
    if (read->empty()) break;
    digest.Add(*read);
    at += read->size();
  }
  return std::string(Hex(digest.Finish()) == sha256 ? "" : "has other bytes than were published");
}

struct ListedFile {
  std::string name;
  uint64_t bytes = 0;
  std::string sha256;
};

// Each file that the list of an output names.
Status EachListed(const Files& files, const std::string& output_path,
                  const std::function<void(const ListedFile&)>& each) {
  const bool alone = output_path.ends_with(std::string("/") + kSideListName);
  const std::string path = alone ? output_path : IndexNameOf(output_path);
  const Result<std::unique_ptr<File>> list = files.OpenRead(path);
  if (!list.ok()) return list.error();
  const auto tell = [&each](const nlohmann::json& file) {
    each({lenient::Text(file, "name"), lenient::Unsigned(file, "bytes"),
          lenient::Text(file, "sha256")});
  };
  Status wrong;
  const Result<uint64_t> read = EachLine(**list, kMostListLine, [&](std::string_view line) {
    const std::optional<nlohmann::json> parsed = ParseJson(line);
    if (!parsed) wrong = Error{Code::kInvalid, path + " holds a line that is no JSON"};
    if (!parsed) return false;
    if (alone) tell(*parsed);
    for (const nlohmann::json& file : lenient::List(*parsed, "files")) tell(file);
    return true;
  });
  if (!wrong.ok()) return wrong;
  if (!read.ok()) return read.error();
  if (*read > 0) return Error{Code::kInvalid, path + " holds a line that is too long"};
  return {};
}

// And the folders above it that are empty then.
Status RemoveWithFolders(Folder& folder, std::string name) {
  if (Status removed = folder.Remove(name); !removed.ok()) return removed;
  for (size_t slash = name.rfind('/'); slash != std::string::npos; slash = name.rfind('/')) {
    name.resize(slash);
    if (!folder.Remove(name).ok()) break;  // something is left there
  }
  return {};
}

}  // namespace

Result<ListedFiles> CheckListedFiles(const Files& files, const std::string& output_path) {
  const Result<std::unique_ptr<Folder>> folder =
      files.OpenFolder(FolderOf(output_path), Links::kRefuse);
  if (!folder.ok()) return folder.error();
  ListedFiles found;
  const Status read = EachListed(files, output_path, [&](const ListedFile& file) {
    const Result<std::string> differs = DifferenceOf(**folder, file.name, file.bytes, file.sha256);
    ++found.files;
    found.bytes += file.bytes;
    if (differs.ok() && differs->empty()) return;
    const std::string words =
        differs.ok() ? *differs : "cannot be read: " + differs.error().message;
    if (found.damaged++ == 0) found.first = Printable(file.name, kShown) + " " + words;
  });
  if (!read.ok()) return read.error();
  return found;
}

Result<uint64_t> RemoveListedFiles(const Files& files, const std::string& output_path,
                                   const std::function<bool(const std::string& name)>& keeps) {
  const Result<std::unique_ptr<Folder>> folder =
      files.OpenFolder(FolderOf(output_path), Links::kRefuse);
  if (!folder.ok()) return folder.error();
  uint64_t count = 0;
  const Status read = EachListed(files, output_path, [&](const ListedFile& file) {
    if (keeps(file.name)) return;
    const Result<std::string> differs = DifferenceOf(**folder, file.name, file.bytes, file.sha256);
    if (!differs.ok() || !differs->empty()) return;  // it is gone, or somebody's by now
    const Status removed = RemoveWithFolders(**folder, file.name);
    if (removed.ok()) ++count;
    if (!removed.ok()) spdlog::warn("{}", removed.error().message);
  });
  if (!read.ok() && read.error().code != Code::kNotFound) return read.error();
  return count;
}

}  // namespace parallelrun::output
