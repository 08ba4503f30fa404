#include "coordinator/log_tree/log_part_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace parallelrun::coordinator {

Result<LogPart> ReadLogPart(const LogFolder& folder, const std::string& name,
                            std::optional<uint64_t> from) {
  const Result<std::unique_ptr<File>> file = folder.OpenRead(name);
  if (!file.ok()) return file.error();
  const Result<FileFacts> facts = (*file)->Stat();
  if (!facts.ok()) return facts.error();
  if (facts->kind != EntryKind::kFile) return Error{Code::kInvalid, "it is no file"};
  LogPart part;
  part.size = facts->size;
  const uint64_t end = part.size - std::min<uint64_t>(part.size, kMostLogPart);
  part.from = std::min(from.value_or(end), part.size);
  Result<std::string> bytes =
      (*file)->ReadAt(part.from, std::min<uint64_t>(part.size - part.from, kMostLogPart));
  if (!bytes.ok()) return bytes.error();
  part.bytes = std::move(*bytes);
  return part;
}

bool LogPartReader::Ask(std::string name, std::optional<uint64_t> from, Answer answer) {
  return thread_.Ask([this, name = std::move(name), from, answer = std::move(answer)] {
    answer(ReadLogPart(folder_, name, from));
  });
}

}  // namespace parallelrun::coordinator
