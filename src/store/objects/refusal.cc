#include "store/objects/refusal.h"

#include <spdlog/fmt/fmt.h>

#include "base/escape.h"

namespace parallelrun::store {
std::string Said(const Refusal& refusal) {
  std::string said = fmt::format("{}", refusal.status);
  if (!refusal.body.code.empty()) said += " " + Printable(refusal.body.code, kShownLong);
  if (!refusal.body.message.empty()) said += ", " + Printable(refusal.body.message, kShownLong);
  if (!refusal.request_id.empty()) said += ", request " + Printable(refusal.request_id, kShownLong);
  return said;
}

std::string PlainEtag(std::string_view etag) {
  const bool quoted = etag.size() >= 2 && etag.front() == '"' && etag.back() == '"';
  return std::string(quoted ? etag.substr(1, etag.size() - 2) : etag);
}

}  // namespace parallelrun::store
