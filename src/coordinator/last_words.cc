#include "coordinator/last_words.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/escape.h"
#include "base/json.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string Cut(const std::string& text, size_t limit) {
  return text.size() <= limit ? text : std::string(Front(text, limit)) + "...";
}

// Every text in `value`, at any depth.
void CutTexts(json& value, size_t limit) {
  if (value.is_string()) {
    value = Cut(value.get_ref<const std::string&>(), limit);
  } else if (value.is_structured()) {
    for (json& member : value) CutTexts(member, limit);
  }
}

}  // namespace

std::string LastWordsJson(const std::string& progress, const std::string& ended) {
  json whole = {{"progress", ParseObject(progress).value_or(json::object())}};
  json& said = whole["progress"];
  said.erase("nodes");
  said.erase("metrics");
  if (!ended.empty()) whole["ended"] = ended;
  std::string text = Dump(whole);
  // Escapes make a text up to six times as long, so only the result can be measured.
  for (size_t limit = 2048; text.size() > kMaxLastWords && limit >= 128; limit /= 2) {
    CutTexts(whole, limit);
    text = Dump(whole);
  }
  while (text.size() > kMaxLastWords && said.contains("errors") && !said["errors"].empty()) {
    said["errors"].erase(said["errors"].size() - 1);
    text = Dump(whole);
  }
  // The rest are names and numbers of ours, and a few texts.
  for (size_t limit = 64; text.size() > kMaxLastWords && limit > 0; limit /= 2) {
    CutTexts(whole, limit);
    text = Dump(whole);
  }
  return text;
}

std::string LastErrorJson(const std::string& message) {
  std::string text;
  for (size_t limit = kMaxLastWords; limit > 0; limit /= 2) {
    text = Dump({{"error", Cut(message, limit)}});
    if (text.size() <= kMaxLastWords) break;
  }
  return text;
}

void LeaveLastWords(Files& files, const std::string& path, const std::string& words) {
  if (path.empty()) return;
  const Result<std::unique_ptr<File>> file = files.OpenOrCreate(path);
  Status written = file.ok() ? (*file)->Cut(0) : Status(file.error());
  if (written.ok()) written = (*file)->WriteAt(0, words);
  if (!written.ok()) spdlog::warn("the last words are lost: {}", written.error().message);
}

}  // namespace parallelrun::coordinator
