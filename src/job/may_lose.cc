#include "job/may_lose.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/json.h"

namespace parallelrun::job {
namespace {

constexpr const char* kMayLose = "mayLose";

std::string TextOf(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string WithMember(std::string_view format, nlohmann::json member) {
  nlohmann::json with = ParseObject(format).value_or(nlohmann::json::object());
  with[kMayLose] = std::move(member);
  return TextOf(with);
}

bool AreNumbers(const nlohmann::json& list, size_t count) {
  return list.is_array() && list.size() == count &&
         std::all_of(list.begin(), list.end(),
                     [](const nlohmann::json& value) { return value.is_number_unsigned(); });
}

// The numbers of each mini-batch, as a list; null where they are not those of the chunk.
nlohmann::json ListsOf(const nlohmann::json& member, const TabularChunk& chunk) {
  if (!AreNumbers(member, chunk.slices.size())) return nullptr;
  nlohmann::json lists = nlohmann::json::array();
  for (const nlohmann::json& number : member) lists.push_back(nlohmann::json::array({number}));
  return lists;
}

nlohmann::json ListsOf(const nlohmann::json& member, const TableGroupsChunk& chunk) {
  if (!member.is_array() || member.size() != chunk.groups.size()) return nullptr;
  for (size_t i = 0; i < chunk.groups.size(); ++i) {
    if (!AreNumbers(member[i], chunk.groups[i].slices.size())) return nullptr;
  }
  return member;
}

template <typename Chunk>
std::optional<MayLose> Of(const Chunk& chunk) {
  // Most chunks of an earlier program, and those of other formats, are not taken apart.
  if (chunk.format.find(kMayLose) == std::string_view::npos) return std::nullopt;
  auto format = ParseObject(chunk.format);
  if (!format) return std::nullopt;
  const nlohmann::json lists = ListsOf(lenient::At(*format, kMayLose), chunk);
  if (lists.is_null()) return std::nullopt;
  MayLose found;
  for (const nlohmann::json& list : lists) {
    found.of_batch.push_back("\"" + std::string(kMayLose) + "\":" + TextOf(list));
  }
  format->erase(kMayLose);
  found.format = TextOf(*format);
  return found;
}

}  // namespace

std::string WithMayLose(std::string_view format, const std::vector<uint64_t>& slices) {
  return WithMember(format, slices);
}

std::string WithMayLose(std::string_view format, const std::vector<std::vector<uint64_t>>& groups) {
  return WithMember(format, groups);
}

std::optional<MayLose> MayLoseOf(const PlanChunkRecord& chunk) {
  if (const auto* rows = std::get_if<TabularChunk>(&chunk.content)) return Of(*rows);
  if (const auto* tables = std::get_if<TableGroupsChunk>(&chunk.content)) return Of(*tables);
  return std::nullopt;
}

}  // namespace parallelrun::job
