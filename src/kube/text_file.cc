#include "kube/text_file.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstdio>
#include <memory>

namespace parallelrun::kube {
namespace {

constexpr size_t kMaxFile = size_t{4} * 1024 * 1024;

}  // namespace

Result<std::string> ReadTextFile(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) return ErrnoError(errno, "read " + path);
  std::string text;
  char buffer[8192];
  while (text.size() <= kMaxFile) {
    const size_t n = std::fread(buffer, 1, sizeof(buffer), file.get());
    if (n == 0) break;
    text.append(buffer, n);
  }
  if (std::ferror(file.get()) != 0) return ErrnoError(errno, "read " + path);
  if (text.size() > kMaxFile) return Error{Code::kInvalid, "read " + path + ": more than 4 MiB"};
  if (Trimmed(text).empty()) return Error{Code::kInvalid, "read " + path + ": it is empty"};
  return text;
}

std::string Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kSpace) - begin + 1));
}

std::string ChangingFile::Read() {
  Result<std::string> next = ReadTextFile(path_);
  const std::lock_guard lock(mutex_);
  if (next.ok()) {
    text_ = std::move(*next);
  } else {
    spdlog::warn("{}; the old text stays in use", next.error().message);
  }
  return text_;
}

}  // namespace parallelrun::kube
