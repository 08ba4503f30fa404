#include "cli/fetch/arriving_files.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/escape.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/random.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

std::string Normal(const std::string& path) {
  std::string text = fs::absolute(path).lexically_normal();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

}  // namespace

Result<std::unique_ptr<ArrivingFiles>> ArrivingFiles::Begin(Files& files,
                                                            const std::string& target) {
  const std::string normal = Normal(target);
  std::error_code error;
  const bool there = fs::exists(fs::symlink_status(normal, error));
  if (there && !(fs::is_directory(fs::symlink_status(normal, error)) &&
                 fs::is_empty(normal, error) && !error)) {
    return Error{Code::kExists, Printable(normal, kShownLongest) +
                                    " is there, and no empty folder: name one that is not there"};
  }
  if (there && fs::equivalent(normal, fs::current_path(error), error)) {
    return Error{Code::kExists,
                 "the files take the place of a folder, which cannot be the current "
                 "one: name one that is not there"};
  }
  if (Status made = files.MakeFolders(FolderOf(normal)); !made.ok()) return made.error();
  return std::unique_ptr<ArrivingFiles>(new ArrivingFiles(files, normal));
}

ArrivingFiles::ArrivingFiles(Files& files, std::string target)
    : files_(files), target_(std::move(target)), partial_(target_ + ".partial-" + RandomHex(4)) {}

ArrivingFiles::~ArrivingFiles() {
  file_.reset();
  folder_.reset();
  std::error_code ignored;
  fs::remove_all(partial_, ignored);  // follows no link
}

Status ArrivingFiles::Anew(std::optional<ExpectedFile> must) {
  file_.reset();
  folder_.reset();
  std::error_code error;
  fs::remove_all(partial_, error);
  if (error) return ErrnoError(error.value(), "remove " + partial_);
  must_ = std::move(must);
  must_came_ = false;
  must_bytes_ = 0;
  must_digest_.Finish();
  if (Status made = files_.MakeFolders(partial_); !made.ok()) return made;
  Result<std::unique_ptr<Folder>> folder = files_.OpenFolder(partial_, Links::kRefuse);
  if (!folder.ok()) return folder.error();
  folder_ = std::move(*folder);
  return {};
}

Status ArrivingFiles::MakeFoldersOf(const std::string& name) {
  for (size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    const Status made = folder_->MakeFolder(name.substr(0, slash));
    if (!made.ok() && made.error().code != Code::kExists) return made;
  }
  return {};
}

Status ArrivingFiles::Begin(const std::string& name) {
  file_.reset();
  name_ = name;
  size_ = 0;
  if (Status made = MakeFoldersOf(name); !made.ok()) return made;
  Result<std::unique_ptr<File>> file = folder_->CreateExclusive(name);
  if (!file.ok()) return file.error();
  file_ = std::move(*file);
  if (must_ && must_->name == name) must_came_ = true;
  return {};
}

Status ArrivingFiles::Add(std::string_view bytes) {
  if (Status written = file_->WriteAt(size_, bytes); !written.ok()) return written;
  size_ += bytes.size();
  if (!must_ || must_->name != name_) return {};
  must_bytes_ += bytes.size();
  must_digest_.Add(bytes);
  return {};
}

Status ArrivingFiles::CheckMust() {
  if (!must_) return {};
  const std::string name = Printable(must_->name, kShownLongest);
  if (!must_came_) return Error{Code::kNotFound, name + " is not there"};
  if (must_->sha256.empty()) return {};
  const std::string sha256 = Hex(must_digest_.Finish());
  if (must_bytes_ == must_->bytes && sha256 == must_->sha256) return {};
  return Error{
      Code::kCorrupt,
      fmt::format("{} is not what the job published: {} bytes with the SHA-256 {}, and not "
                  "{} with {}. Apply the job anew with output.ifExists: Resume, which "
                  "publishes it again",
                  name, must_bytes_, sha256, must_->bytes,
                  Printable(must_->sha256, kShownLongest))};
}

Status ArrivingFiles::Finish() {
  file_.reset();
  if (Status checked = CheckMust(); !checked.ok()) return checked;
  folder_.reset();
  const Fd opened(open(partial_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.ok() || syncfs(opened.get()) != 0) return ErrnoError(errno, "sync " + partial_);
  return files_.Rename(partial_, target_);
}

}  // namespace parallelrun::cli
