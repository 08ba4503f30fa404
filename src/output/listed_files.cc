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
#include "job/side_list.h"
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

using EachFile = std::function<void(const ListedFile&)>;

bool IsListAlone(const std::string& output) {
  return output == kSideListName || output.ends_with(std::string("/") + kSideListName);
}

// False: the line is no JSON. `alone`: of a list that is the output; else of an index.
bool TellLine(std::string_view line, bool alone, const EachFile& each) {
  const auto tell = [&each](const nlohmann::json& file) {
    each({lenient::Text(file, "name"), lenient::Unsigned(file, "bytes"),
          lenient::Text(file, "sha256")});
  };
  const std::optional<nlohmann::json> parsed = ParseJson(line);
  if (!parsed) return false;
  if (alone) tell(*parsed);
  for (const nlohmann::json& file : lenient::List(*parsed, "files")) tell(file);
  return true;
}

void Count(ListedFiles& found, const ListedFile& file, const Result<std::string>& differs) {
  ++found.files;
  found.bytes += file.bytes;
  if (differs.ok() && differs->empty()) return;
  const std::string words = differs.ok() ? *differs : "cannot be read: " + differs.error().message;
  if (found.damaged++ == 0) found.first = Printable(file.name, kShown) + " " + words;
}

// The lines of an object, pieced together.
Status EachLineOf(const store::Object& object, const std::string& place,
                  const std::function<bool(std::string_view)>& line) {
  std::string kept;
  for (uint64_t at = 0; at < object.found().size;) {
    std::string piece(kReadAtOnce, '\0');
    const Result<size_t> read = object.ReadAt(at, piece);
    if (!read.ok()) return read.error();
    if (*read == 0) break;
    at += *read;
    kept.append(piece, 0, *read);
    size_t begin = 0;
    for (size_t end = kept.find('\n'); end != std::string::npos; end = kept.find('\n', begin)) {
      if (!line(std::string_view(kept).substr(begin, end - begin))) {
        return Error{Code::kInvalid, place + " holds a line that is no JSON"};
      }
      begin = end + 1;
    }
    kept.erase(0, begin);
    if (kept.size() > kMostListLine) {
      return Error{Code::kInvalid, place + " holds a line that is too long"};
    }
  }
  return kept.empty() ? Status() : Status(Error{Code::kInvalid, place + " ends within a line"});
}

Result<std::string> DifferenceIn(store::Store& store, const std::string& name,
                                 const ListedFile& file) {
  const Result<std::unique_ptr<store::Object>> object = store.Open(name);
  if (!object.ok() && object.error().code == Code::kNotFound) return std::string("is not there");
  if (!object.ok()) return object.error();
  job::Published published;
  published.bytes = file.bytes;
  if (!job::ReadSha256(file.sha256, published.sha256))
    return std::string("is listed with no SHA-256");
  return DamageOf(
      (*object)->found().size,
      [&object](uint64_t offset, std::span<char> to) { return (*object)->ReadAt(offset, to); },
      published);
}

// Each file that the list of an output names.
Status EachListed(const Files& files, const std::string& output_path, const EachFile& each) {
  const bool alone = IsListAlone(output_path);
  const std::string path = alone ? output_path : IndexNameOf(output_path);
  const Result<std::unique_ptr<File>> list = files.OpenRead(path);
  if (!list.ok()) return list.error();
  Status wrong;
  const Result<uint64_t> read = EachLine(**list, kMostListLine, [&](std::string_view line) {
    if (TellLine(line, alone, each)) return true;
    wrong = Error{Code::kInvalid, path + " holds a line that is no JSON"};
    return false;
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
    Count(found, file, DifferenceOf(**folder, file.name, file.bytes, file.sha256));
  });
  if (!read.ok()) return read.error();
  return found;
}

Result<ListedFiles> CheckListedFiles(store::Store& store, const std::string& output_name) {
  const bool alone = IsListAlone(output_name);
  const std::string list = alone ? output_name : IndexNameOf(output_name);
  const Result<std::unique_ptr<store::Object>> object = store.Open(list);
  if (!object.ok()) return object.error();
  const size_t slash = output_name.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : output_name.substr(0, slash + 1);
  ListedFiles found;
  const EachFile check = [&](const ListedFile& file) {
    Count(found, file, DifferenceIn(store, folder + file.name, file));
  };
  const Status read = EachLineOf(**object, store.Location(list), [&](std::string_view line) {
    return TellLine(line, alone, check);
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
