#include "reasons/page.h"

#include "reasons/entries.h"

namespace parallelrun::reasons {
namespace {

constexpr char kHead[] = R"(# Messages

Every reason and every exit status of ParallelRun: what happened, and what to do. Search this page for the word that you
saw, or let `parallelrun explain NodeBackOff` say it. The message beside the word has the names and the figures.

This page is made from `src/reasons` by `script/messages`.
)";

constexpr char kExits[] = R"(
## Exit statuses

`parallelrun explain 3` says one of the command. The other two programs run in the pods of a job; on one machine the
command looks after them.
)";

std::string Row(std::initializer_list<std::string_view> cells) {
  std::string row = "|";
  for (const std::string_view cell : cells) row.append(" ").append(cell).append(" |");
  return row + "\n";
}

std::string Code(std::string_view word) { return "`" + std::string(word) + "`"; }

}  // namespace

std::string PageText() {
  std::string page = kHead;
  for (const Section& section : Sections()) {
    page.append("\n## ").append(section.title).append("\n\n").append(section.about).append("\n\n");
    page += Row({"reason", "seen as", "what happened", "what to do"}) + "|---|---|---|---|\n";
    for (const Entry& entry : section.entries) {
      page +=
          Row({Code(entry.reason.word()), PlacesText(entry.places), entry.happened, entry.to_do});
    }
  }
  page += kExits;
  std::string_view program;
  for (const ExitStatus& exit : ExitStatuses()) {
    if (const std::string_view name = ProgramName(exit.program); name != program) {
      program = name;
      page += "\n" + Row({Code(program), "what happened", "what to do"}) + "|---|---|---|\n";
    }
    page += Row({std::to_string(exit.status), exit.happened, exit.to_do});
  }
  return page;
}

}  // namespace parallelrun::reasons
