// Which run may publish to an output: a file beside it, made exclusively, that names the run
// (docs/ledger.md, "Claiming the output"). One whose owner is over is taken over. Blocking I/O; the
// texts are pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"

namespace parallelrun::output {

// Who has an output, as its file says. An epoch of a state folder has one run id for ever, so the
// two of them tell whether a state folder is the owner's.
struct OutputOwner {
  std::string job;  // "namespace/name", or its name
  std::string uid;
  uint64_t run_id = 0;
  uint32_t epoch = 0;
  std::string state_folder;  // as the owner sees it
  std::string near_state;    // the same from the output's folder, on the same volume; "": elsewhere
  std::string host;
  bool in_pod = false;
  std::string address;  // OutputAddress of api/output_address.h; "" for a local run
  std::string since;    // RFC 3339
};

std::string ClaimText(const OutputOwner& owner);
// Nothing for what no run has written.
std::optional<OutputOwner> ParseClaim(std::string_view text);
// `output_file` is empty with SummaryOnly, whose folder has one claim.
std::string ClaimName(const std::string& output_file);
// Whether a name beside that output is of a claim, or of a run that ended while it made one.
bool IsClaimFile(const std::string& name, const std::string& output_file);

struct HeldOutput {
  std::string path;  // of the claim; empty: none is held
  std::string text;
};

struct ClaimOptions {
  OutputOwner owner;
  std::string output_folder;
  std::string output_file;
  // Nothing of this job was ever begun. Only then what the operator has seen is young enough to
  // tell that other jobs with this address are over.
  bool first_start = false;
  // Whether a `parallelrun run` works on that state folder.
  std::function<bool(const std::string& state_folder)> at_work;
};

// What becomes of a claim that is there.
struct Judged {
  bool over = false;                 // its owner: it may be taken over
  std::optional<OutputOwner> owner;  // none of a torn claim
  Status refused;  // where it is not over: kExists names the owner; kInvalid: no run has made it
};
// `claim`, the place of the claim, and `output` are for messages.
Judged JudgeClaim(const Files& files, const ClaimOptions& options, std::string_view text,
                  const std::string& claim, const std::string& output);

// The owner, for messages.
std::string Named(const OutputOwner& owner);

// Whether this is the state folder of the owner's run.
bool IsStateOf(const Files& files, const std::string& folder, const OutputOwner& owner);

// Takes the output, also over from an owner that is over, whose tokens go first. kExists: somebody
// else has it, who is named with what to do; kInvalid: a file that no run has made is in the way.
Result<HeldOutput> ClaimOutput(Files& files, const ClaimOptions& options);

// kExists when another one has the output by now. A claim that somebody has removed is made again.
Status KeepHeld(Files& files, const HeldOutput& held);

// Whether the claim that is there is of a job with that uid: then it had the output before, and has
// not given it back.
Result<bool> IsClaimedBy(const Files& files, const std::string& output_folder,
                         const std::string& output_file, const std::string& uid);

// Gives the output back, if it still is held.
Status ReleaseOutput(Files& files, const HeldOutput& held);

// Removes what coordinators of this state folder have left beside the output, claim and tokens. For
// whoever knows that none is at work any more. `published` is the name of what is published there,
// "" where nothing is: with SummaryOnly there may be such although the folder is what is claimed.
Status RemoveLeftBeside(Files& files, const std::string& state_folder,
                        const std::string& output_folder, const std::string& output_file,
                        const std::string& published);

}  // namespace parallelrun::output
