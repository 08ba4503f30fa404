#include "cli/render/code.h"

#include <spdlog/fmt/fmt.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "agent/code_archive.h"
#include "base/small_file.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxPlainBytes = 128 << 10;  // above it, compressing is worth it
constexpr size_t kMaxKey = 253;
constexpr size_t kBlock = 512;
constexpr size_t kBiggestShown = 5;

std::string Size(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1 << 20) return fmt::format("{:.1f} MiB", value / (1 << 20));
  return bytes >= 1 << 10 ? fmt::format("{:.0f} KiB", value / (1 << 10))
                          : fmt::format("{} bytes", bytes);
}

struct Found {
  fs::path file;  // what is read
  std::string path;
  uint64_t size = 0;
};

Error TooBig(const std::string& what, std::vector<std::pair<uint64_t, std::string>> sizes) {
  std::sort(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string biggest;
  for (size_t i = 0; i < std::min(sizes.size(), kBiggestShown); ++i) {
    biggest += fmt::format("{}{} ({})", i > 0 ? ", " : "", sizes[i].second, Size(sizes[i].first));
  }
  return {
      Code::kInvalid,
      fmt::format("{}. The biggest files: {}. Keep data and models in an input or a side input, "
                  "name a folder that holds only the script and what it imports with --code, "
                  "or put the code onto a volume (code: {{volume: NAME, path: FOLDER}}) or into "
                  "the image (code: {{image: {{path: FOLDER}}}})",
                  what, biggest)};
}

// A link stands for the file of the folder that it leads to.
Status AddLink(const fs::path& root, const std::string& path, std::vector<Found>& found) {
  const fs::path link = root / path;
  std::error_code error;
  const fs::path target = fs::canonical(link, error);
  const fs::path inside = target.lexically_relative(fs::canonical(root));
  if (error || inside.empty() || *inside.begin() == ".." || !fs::is_regular_file(target)) {
    return Error{Code::kInvalid,
                 fmt::format("{} is a link to {}, which is not a file of the code folder: put the "
                             "file or folder itself there",
                             link.string(), fs::read_symlink(link).string())};
  }
  found.push_back({target, path, fs::file_size(target)});
  return {};
}

Result<std::vector<CodeFile>> Read(const std::string& folder, const CodeListing& listing) {
  std::vector<Found> found;
  for (const CodeEntry& entry : listing.entries) {
    if (entry.kind == CodeEntry::Kind::kFile) {
      found.push_back({fs::path(folder) / entry.path, entry.path, entry.size});
    } else if (entry.kind == CodeEntry::Kind::kLink) {
      if (Status s = AddLink(folder, entry.path, found); !s.ok()) return s.error();
    }
  }
  uint64_t bytes = 0;
  std::vector<std::pair<uint64_t, std::string>> sizes;
  for (const Found& one : found) {
    bytes += one.size;
    sizes.emplace_back(one.size, one.path);
  }
  const agent::CodeArchiveLimits limits;
  if (bytes > limits.bytes || found.size() > limits.entries || listing.more) {
    return TooBig(fmt::format("the code folder {} holds {}{} in {} files", folder,
                              listing.more ? "at least " : "", Size(bytes), found.size()),
                  std::move(sizes));
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.path < b.path; });
  std::vector<CodeFile> files;
  for (const Found& one : found) {
    Result<std::string> content = ReadSmallFile(one.file, limits.bytes);
    if (!content.ok()) return Error{Code::kPermission, one.file.string() + " cannot be read"};
    const bool executable =
        (fs::status(one.file).permissions() & fs::perms::owner_exec) != fs::perms::none;
    files.push_back({one.path, *std::move(content), executable});
  }
  return files;
}

bool IsKey(const std::string& path) {
  return path.size() <= kMaxKey && !path.starts_with("..") && path != "." &&
         path != agent::kCodeArchive && std::all_of(path.begin(), path.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte < 0x80 && (std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.');
         });
}

// A ConfigMap's files cannot be executed; a script that python3 reads need not be.
bool FitPlain(const std::vector<CodeFile>& files) {
  size_t bytes = 0;
  return std::all_of(files.begin(), files.end(), [&](const CodeFile& file) {
    bytes += file.content.size();
    return bytes <= kMaxPlainBytes && IsKey(file.path) &&
           (!file.executable || file.path.ends_with(".py"));
  });
}

// Where a path is cut into ustar's prefix and name; npos when it does not fit.
size_t CutOf(const std::string& path) {
  constexpr size_t kName = 100;
  constexpr size_t kPrefix = 155;
  if (path.size() <= kName) return 0;
  const size_t cut = path.find('/', path.size() - kName - 1);
  const bool fits = cut <= kPrefix && cut + 1 < path.size();
  return fits ? cut : std::string::npos;
}

Status AppendEntry(const std::string& path, char type, const std::string& content, bool executable,
                   std::string& tar) {
  const size_t cut = CutOf(path);
  if (cut == std::string::npos) {
    return Error{Code::kInvalid, fmt::format("the path {} is too long for an archive: shorten it "
                                             "(at most 255 bytes, and 100 in the last part)",
                                             path)};
  }
  std::string header(kBlock, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    std::memcpy(header.data() + at, text.data(), text.size());
  };
  put(0, cut == 0 ? path : path.substr(cut + 1));
  put(100, type == '5' || executable ? "0000755" : "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", content.size()));
  put(136, "00000000000");
  put(148, "        ");
  put(156, std::string(1, type));
  put(257, std::string("ustar\0", 6) + "00");
  put(345, path.substr(0, cut));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  tar += header + content;
  tar.resize((tar.size() + kBlock - 1) / kBlock * kBlock);
  return {};
}

Result<std::string> Tar(const std::vector<CodeFile>& files) {
  std::string tar;
  std::string last_folder;
  for (const CodeFile& file : files) {
    // Every folder once, before what it holds: the files are in order.
    for (size_t slash = file.path.find('/'); slash != std::string::npos;
         slash = file.path.find('/', slash + 1)) {
      const std::string folder = file.path.substr(0, slash + 1);
      if (last_folder.starts_with(folder)) continue;
      if (Status s = AppendEntry(folder, '5', "", false, tar); !s.ok()) return s.error();
      last_folder = folder;
    }
    if (Status s = AppendEntry(file.path, '0', file.content, file.executable, tar); !s.ok()) {
      return s.error();
    }
  }
  return tar + std::string(2 * kBlock, '\0');
}

Result<std::string> Gzip(std::string& bytes) {
  constexpr int kGzip = 15 + 16;  // the largest window, with gzip's header (without name and time)
  constexpr int kMemory = 9;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return Error{Code::kInternal, "zlib cannot compress: there is no memory"};
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): zlib's bytes are unsigned
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.avail_out = static_cast<uInt>(out.size());
  const int done = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (done != Z_STREAM_END) return Error{Code::kInternal, "zlib cannot compress the code"};
  return out;
}

}  // namespace

Result<std::vector<CodeFile>> CollectCode(const CodeFolder& folder,
                                          std::vector<std::string>& notes) {
  const Result<CodeListing> listing = ListCode(folder);
  if (!listing.ok()) return listing.error();
  notes.insert(notes.end(), listing->notes.begin(), listing->notes.end());
  try {
    return Read(folder.path, *listing);
  } catch (const fs::filesystem_error& e) {
    return Error{Code::kPermission, fmt::format("read the code folder {}: {}: {}", folder.path,
                                                e.path1().string(), e.code().message())};
  }
}

Result<std::map<std::string, std::string>> PackCode(const std::vector<CodeFile>& files) {
  std::map<std::string, std::string> packed;
  if (FitPlain(files)) {
    for (const CodeFile& file : files) packed[file.path] = file.content;
    return packed;
  }
  Result<std::string> tar = Tar(files);
  if (!tar.ok()) return tar.error();
  Result<std::string> archive = Gzip(*tar);
  if (!archive.ok()) return archive.error();
  if (archive->size() > kMaxConfigMapBytes) {
    std::vector<std::pair<uint64_t, std::string>> sizes;
    for (const CodeFile& file : files) sizes.emplace_back(file.content.size(), file.path);
    return TooBig(fmt::format("the code is {} when compressed, and a ConfigMap holds 1 MiB",
                              Size(archive->size())),
                  std::move(sizes));
  }
  packed[agent::kCodeArchive] = std::move(*archive);
  return packed;
}

}  // namespace parallelrun::cli
