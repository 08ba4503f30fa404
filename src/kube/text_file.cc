#include "kube/text_file.h"

#include <spdlog/spdlog.h>

#include "base/small_file.h"

namespace parallelrun::kube {
namespace {

constexpr size_t kMaxFile = size_t{4} * 1024 * 1024;

}  // namespace

Result<std::string> ReadTextFile(const std::string& path) {
  Result<std::string> text = ReadSmallFile(path, kMaxFile);
  if (text.ok() && Trimmed(*text).empty()) {
    return Error{Code::kInvalid, "read " + path + ": it is empty"};
  }
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
