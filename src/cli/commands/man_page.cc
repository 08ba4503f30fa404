#include "cli/commands/man_page.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <string_view>

namespace parallelrun::cli {
namespace {

// Text as roff shows it: nothing in it is a request, and a hyphen can be copied into a shell.
std::string Roff(std::string_view text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    begins = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Names(const CLI::Option& option) {
  std::string names;
  const auto add = [&names](const std::string& name) {
    names += (names.empty() ? "\\fB" : ", \\fB") + Roff(name) + "\\fR";
  };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  if (names.empty()) names = "\\fI" + Roff(option.get_name()) + "\\fR";
  const bool value = option.nonpositional() && option.get_items_expected_min() > 0;
  return value ? names + " \\fIVALUE\\fR" : names;
}

std::string Item(const CLI::Option& option) {
  return fmt::format(".TP\n{}\n{}\n", Names(option), Roff(option.get_description()));
}

std::string Section(const CLI::App& command) {
  std::string usage = command.get_name();
  std::string items;
  for (const CLI::Option* option : command.get_options()) {
    if (option == command.get_help_ptr()) continue;
    items += Item(*option);
    if (!option->nonpositional()) usage += " " + option->get_name();
  }
  const std::string footer = command.get_footer();
  if (!footer.empty()) items += ".PP\n" + Roff(footer) + "\n";
  return fmt::format(".SS {}\n{}.\n{}", Roff(usage), Roff(command.get_description()), items);
}

// As docs/cli.md has them.
constexpr char kExitStatuses[] = R"(.SH EXIT STATUS
.TP
0
The job succeeded; the job files are right.
.TP
1
The job failed, or this machine did not let it go on.
.TP
2
It cannot start: a wrong flag, a wrong job file, something missing, or an output that is there already.
.TP
3
It finished with losses, of which no threshold of the job speaks.
.TP
130, 143, 129
Stopped by SIGINT (Ctrl\-C), SIGTERM or SIGHUP.
)";

}  // namespace

std::string ManPage(const CLI::App& app, const std::string& version) {
  std::string page = fmt::format(
      ".TH PARALLELRUN 1 \"\" \"parallelrun {0}\" \"ParallelRun\"\n.SH NAME\nparallelrun \\- run a "
      "Python entry script over a large data set, in parallel\n.SH SYNOPSIS\n.B parallelrun\n.I "
      "COMMAND\n[\\fIFLAG\\fR...]\n.SH DESCRIPTION\n{1}\n.SH COMMANDS\n",
      Roff(version), Roff(app.get_description()));
  for (const CLI::App* command : app.get_subcommands(nullptr)) page += Section(*command);
  return page + kExitStatuses;
}

}  // namespace parallelrun::cli
