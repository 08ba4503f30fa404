#include "tests/simulation/sim_input.h"

#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "job/record_codec.h"
#include "tests/support/fault_files.h"
#include "tests/support/file_version.h"

namespace parallelrun::simulation {
namespace {

constexpr uint32_t kNames = 1'000'000;

void AppendName(uint32_t file, std::string& out) {
  char digits[6];
  for (int i = 5; i >= 0; --i, file /= 10) digits[i] = static_cast<char>('0' + file % 10);
  out.append(digits, 6);
}

}  // namespace

SimInput::SimInput(const Scenario& scenario) : scenario_(scenario) {
  const uint32_t step = kNames / (scenario.files + 1);
  for (uint32_t i = 1; i <= scenario.files; ++i) files_.insert(i * step);
  first_files_ = files_;
}

void SimInput::Grow(uint64_t random) { files_.insert(static_cast<uint32_t>(random % kNames)); }

uint32_t SimInput::Draw(uint32_t file, uint64_t what) const {
  return static_cast<uint32_t>(
      FaultRng(scenario_.seed ^ (uint64_t{file} << 24) ^ (what << 56)).Below(1000));
}

bool SimInput::Poison(const Items& items) const {
  for (const uint32_t file : items) {
    if (Poison(file)) return true;
  }
  return false;
}

bool SimInput::Killer(const Items& items) const {
  return std::any_of(items.begin(), items.end(), [this](uint32_t file) { return Killer(file); });
}

std::string SimInput::Rows(const Items& items, uint32_t& rows) const {
  std::string text;
  rows = 0;
  for (const uint32_t file : items) {
    if (Bad(file)) continue;
    AppendName(file, text);
    text.push_back('\n');
    ++rows;
  }
  return text;
}

std::optional<std::string> SimInput::NextChunk(plan::PlanCursor& cursor, Items& files) const {
  auto at = files_.begin();
  if (!cursor.last_name.empty()) {
    at = files_.upper_bound(static_cast<uint32_t>(std::stoul(cursor.last_name)));
  }
  if (at == files_.end()) return std::nullopt;
  std::string names;
  job::FilesChunk chunk;
  chunk.files_per_batch = scenario_.files_per_batch;
  chunk.root = "/in";
  for (; at != files_.end() && chunk.versions.size() < scenario_.chunk_files; ++at) {
    if (!names.empty()) names.push_back('\0');
    AppendName(*at, names);
    files.push_back(*at);
    chunk.versions.push_back(FileVersion(10, 1));
  }
  chunk.names = names;
  job::PlanChunkRecord record;
  record.first = cursor.next_batch;
  record.first_item = cursor.next_item;
  record.content = chunk;
  cursor = plan::CursorAfter(record, {plan::PlanInput()});
  std::string encoded;
  job::EncodeRecord(record, encoded);
  return encoded;
}

DecodedWork DecodeWork(std::string_view work) {
  Decoder from(work);
  from.U16();
  DecodedWork decoded;
  decoded.attempts = from.U16();
  decoded.id = from.U64();
  from.U64();
  const uint32_t count = from.U32();
  from.Text();
  from.Text();
  std::string_view names = from.Text();
  for (uint32_t i = 0; i < count && names.size() >= 6; ++i) {
    uint32_t file = 0;
    std::from_chars(names.data(), names.data() + 6, file);
    decoded.items.push_back(file);
    names.remove_prefix(std::min<size_t>(names.size(), 7));
  }
  return decoded;
}

}  // namespace parallelrun::simulation
