#include "cli/explain_command.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <vector>

#include "api/fields/explain.h"
#include "api/node.h"
#include "api/text.h"
#include "base/wrap.h"
#include "cli/run/local_run.h"
#include "reasons/entries.h"

namespace parallelrun::cli {
namespace {

// The backquotes of Markdown are of no use here.
std::string Told(std::string_view happened, std::string_view to_do) {
  constexpr std::string_view kToDo = "what to do: ";
  std::string told = Wrapped(happened) + "\n" + std::string(kToDo) + Wrapped(to_do, kToDo.size());
  std::erase(told, '`');
  return told;
}

Result<std::string> ExitStatus(const std::string& status) {
  std::vector<std::string> known;
  for (const reasons::ExitStatus& exit : reasons::ExitStatuses()) {
    if (exit.program != reasons::Program::kCommand) continue;
    known.push_back(std::to_string(exit.status));
    if (known.back() != status) continue;
    return "exit status " + status + " of the command\n\n" + Told(exit.happened, exit.to_do);
  }
  return Error{Code::kNotFound,
               "there is no exit status " + status + ": it is " + api::OrList(known)};
}

}  // namespace

Result<std::string> Explained(const std::string& word) {
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (!word.empty() && word.size() < 10 && std::all_of(word.begin(), word.end(), digit)) {
    return ExitStatus(word);
  }
  if (const reasons::Entry* const entry = reasons::Find(word)) {
    return fmt::format("{}: {}\n\n{}", entry->reason.word(), reasons::PlacesText(entry->places),
                       Told(entry->happened, entry->to_do));
  }
  Result<std::string> field = api::fields::Explain(word);
  // Fields begin with a small letter.
  if (field.ok() || std::isupper(static_cast<unsigned char>(word[0])) == 0) return field;
  const std::string closest =
      api::ClosestName(word, {std::begin(reasons::kWords), std::end(reasons::kWords)});
  if (closest.empty()) {
    return Error{Code::kNotFound, field.error().message + "; docs/messages.md lists the reasons"};
  }
  return Error{Code::kNotFound,
               "there is no reason " + api::Quoted(word) + ": did you mean " + closest + "?"};
}

int PrintExplained(const std::string& word) {
  const Result<std::string> told = Explained(word);
  if (!told.ok()) std::fprintf(stderr, "%s\n", told.error().message.c_str());
  if (told.ok()) std::printf("%s", told->c_str());
  return told.ok() ? kExitOk : kExitUsage;
}

}  // namespace parallelrun::cli
