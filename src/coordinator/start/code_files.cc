#include "coordinator/start/code_files.h"

#include <spdlog/fmt/fmt.h>

#include <optional>

#include "base/escape.h"
#include "base/json.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

constexpr char kCodeNote[] = "code.json";
constexpr size_t kMostOfCodeNote = 4 * kMostCodeFileBytes;  // with what JSON adds

std::string DigestText(uint64_t digest) { return fmt::format("{:016x}", digest); }

}  // namespace

std::string FirstChange(const CodeFiles& before, const CodeFiles& now) {
  if (before.empty() || now.empty()) return "";
  std::string first;
  size_t more = 0;
  const auto add = [&](const std::string& path, const char* what) {
    if (!first.empty()) {
      ++more;
    } else {
      first = fmt::format("{} was {}", Printable(path, kShownShort), what);
    }
  };
  auto old = before.begin();
  auto own = now.begin();
  while (old != before.end() || own != now.end()) {
    const bool gone = own == now.end() || (old != before.end() && old->first < own->first);
    const bool added = old == before.end() || (own != now.end() && own->first < old->first);
    if (gone) {
      add(old->first, "removed");
    } else if (added) {
      add(own->first, "added");
    } else if (old->second != own->second) {
      add(own->first, "changed");
    }
    if (!added) ++old;
    if (!gone) ++own;
  }
  return more == 0 ? first : fmt::format("{}, and {} more", first, more);
}

CodeFiles KeptCodeFiles(ledger::StateNotes& notes, uint64_t digest) {
  const Result<std::optional<std::string>> text = notes.Read(kCodeNote, kMostOfCodeNote);
  // Without it the change is told all the same.
  if (!text.ok() || !*text) return {};
  const json kept = ParseJson(**text).value_or(nullptr);
  if (lenient::Text(kept, "digest") != DigestText(digest)) return {};
  CodeFiles found;
  for (const auto& [path, own] : lenient::At(kept, "files").items()) {
    if (own.is_string()) found[path] = own.get<std::string>();
  }
  return found;
}

Status KeepCodeFiles(ledger::StateNotes& notes, uint64_t digest, const CodeFiles& files) {
  const json kept = {{"digest", DigestText(digest)}, {"files", files}};
  return notes.Write(kCodeNote, kept.dump() + "\n");
}

}  // namespace parallelrun::coordinator
