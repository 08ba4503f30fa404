#include "cli/runs/kept_code.h"

#include <filesystem>
#include <system_error>

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kEvents[] = "--events";
constexpr char kEndsWithStdin[] = "--ends-with-stdin";
constexpr char kCode[] = "--code";

}  // namespace

std::string KeptCodeFolder(const std::string& state_folder) { return state_folder + "/code"; }

Status KeepCode(const std::string& code, const std::string& state_folder) {
  const std::string kept = KeptCodeFolder(state_folder);
  const std::string beside = kept + ".new";
  std::error_code error;
  fs::remove_all(beside, error);  // follows no link, and so does the next one
  if (!error) {
    fs::copy(code, beside, fs::copy_options::recursive | fs::copy_options::copy_symlinks, error);
  }
  // Of a function: whatever it closes over.
  if (!error) fs::permissions(beside, fs::perms::owner_all, error);
  if (!error) fs::remove_all(kept, error);
  if (!error) fs::rename(beside, kept, error);
  if (!error) return {};
  const int number = error.value();
  std::error_code ignored;
  fs::remove_all(beside, ignored);
  return ErrnoError(number, "keep the code in " + kept);
}

std::vector<std::string> WordsForPeople(const std::vector<std::string>& words,
                                        const std::string& script, const std::string& code,
                                        const std::string& kept) {
  // Without a folder of its own the code is the folder of the script.
  fs::path below = fs::path(script).filename();
  if (!script.empty() && !code.empty()) {
    below = fs::absolute(script).lexically_relative(fs::absolute(code));
  }
  std::vector<std::string> told;
  size_t at = 0;
  for (; at < words.size() && words[at] != "--"; ++at) {
    const std::string& word = words[at];
    if (word == kEndsWithStdin || word.starts_with(std::string(kEvents) + "=")) continue;
    if (word == kEvents) {
      ++at;  // its value
    } else if (!kept.empty() && !script.empty() && word == script) {
      told.push_back(kept + "/" + below.string());
    } else if (!kept.empty() && (word == kCode || word == kCode + ("=" + code))) {
      told.insert(told.end(), {kCode, kept});
      if (word == kCode) ++at;
    } else {
      told.push_back(word);
    }
  }
  if (at < words.size()) {
    told.insert(told.end(), words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  }
  return told;
}

}  // namespace parallelrun::cli
