#include "ledger/chain_note.h"

#include <spdlog/fmt/fmt.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/hex.h"
#include "base/json.h"
#include "base/small_file.h"

namespace parallelrun::ledger {
namespace {

constexpr size_t kMostOfChainNote = size_t{64} << 10;

std::string PathOfChainNote(const std::string& state_folder) {
  return state_folder + "/chain.json";
}

}  // namespace

Result<std::optional<ChainNote>> ReadChainNote(const Files& files,
                                               const std::string& state_folder) {
  const std::string path = PathOfChainNote(state_folder);
  const Result<std::string> text = ReadBegin(files, path, kMostOfChainNote);
  if (!text.ok() && text.error().code == Code::kNotFound) return std::optional<ChainNote>();
  if (!text.ok()) return text.error();
  const nlohmann::json note = ParseJson(*text).value_or(nullptr);
  const uint64_t epoch = lenient::Unsigned(note, "epoch");
  const std::optional<uint64_t> run = ParseHex(lenient::Text(note, "run"));
  const std::string place = lenient::Text(note, "chain");
  if (place.empty() || !run || epoch > std::numeric_limits<uint32_t>::max()) {
    return Error{Code::kCorrupt, path +
                                     " is not what a coordinator has written: restore it, or "
                                     "begin with another state folder"};
  }
  return std::optional(ChainNote{place, static_cast<uint32_t>(epoch), *run});
}

Status WriteChainNote(Files& files, const std::string& state_folder, const ChainNote& note) {
  const nlohmann::json text = {
      {"chain", note.place}, {"epoch", note.epoch}, {"run", fmt::format("{:016x}", note.run_id)}};
  return PublishFile(files, PathOfChainNote(state_folder),
                     text.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace parallelrun::ledger
