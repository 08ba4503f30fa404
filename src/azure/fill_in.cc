#include "azure/fill_in.h"

#include <cctype>

namespace parallelrun::azure {

bool IsOpen(std::string_view text) {
  const auto part_of_word = [&](size_t at) {
    const auto byte = at < text.size() ? static_cast<unsigned char>(text[at]) : ' ';
    return byte == '_' || std::isalnum(byte) != 0;
  };
  const size_t length = std::string_view(kFillIn).size();
  for (size_t at = text.find(kFillIn); at != std::string::npos; at = text.find(kFillIn, at + 1)) {
    if (!part_of_word(at + length) && (at == 0 || !part_of_word(at - 1))) return true;
  }
  return false;
}

namespace {

void Find(const api::Node& node, std::string_view key, const std::string& path,
          api::Problems& problems) {
  const bool open = IsOpen(node.text) || node.text == kFillInImage ||
                    (key == "claimName" && node.text.starts_with(kFillInClaim));
  if (node.kind == api::Node::Kind::kString && open) {
    problems.push_back({.field = path,
                        .what = api::Quoted(node.text) + " is still to be filled in",
                        .mend = "the comment beside it says with what",
                        .line = node.at.line,
                        .column = node.at.column});
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    Find(node.items[i], "", api::JoinPath(path, i), problems);
  }
  for (const api::Node::Field& field : node.fields) {
    Find(field.value, field.key, api::JoinPath(path, field.key), problems);
  }
}

}  // namespace

api::Problems FindFillIns(const api::Node& job) {
  api::Problems problems;
  if (const api::Node* const spec =
          job.kind == api::Node::Kind::kMap ? job.Find("spec") : nullptr) {
    Find(*spec, "", "spec", problems);
  }
  return problems;
}

}  // namespace parallelrun::azure
