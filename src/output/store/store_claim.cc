#include "output/store/store_claim.h"

#include <spdlog/fmt/fmt.h>

#include <memory>
#include <optional>
#include <utility>

namespace parallelrun::output {
namespace {

constexpr int kTries = 20;  // each lost to another run that starts right now
constexpr char kNoVersion[] = "parallelrun-probe";

std::string ClaimOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string::npos ? 0 : slash + 1;
  return name.substr(0, base) + ClaimName(name.substr(base));
}

Error Ignored(const store::WriteStore& store, const std::string& name, const char* condition) {
  return {Code::kInvalid,
          fmt::format("{}: its store ignores the condition of a write ({}): two runs, or a run and "
                      "somebody else, could overwrite each other's output there, and nobody would "
                      "know. Write to a store that keeps conditions, or to a folder, and copy the "
                      "file",
                      store.Location(name), condition)};
}

// The claim is there: writes that are not to replace it must fail, in one request and as an upload.
Status Probe(store::WriteStore& store, const std::string& claim, const std::string& name,
             const std::string& text) {
  const store::Expected other{store::Version(kNoVersion)};
  const Status put = store.Put(claim, text, std::nullopt, {});
  if (put.ok()) return Ignored(store, name, "If-None-Match: *");
  if (put.error().code != Code::kStale) return put;
  const Result<std::unique_ptr<store::Upload>> upload = store.Begin(claim, {});
  if (!upload.ok()) return upload.error();
  Status probed = (*upload)->Send(1, text);
  if (probed.ok()) {
    for (const store::Expected& expected : {store::Expected(), other}) {
      const Status completed = (*upload)->Complete(expected);
      if (!completed.ok() && completed.error().code == Code::kStale) continue;
      probed = completed;
      if (completed.ok()) {
        probed = Ignored(store, name,
                         expected ? "If-Match, of uploads" : "If-None-Match: *, of uploads");
      }
      break;
    }
  }
  const Status ended = store.EndUpload(claim, (*upload)->id());
  return probed.ok() ? ended : probed;
}

// True: it is ours now. False: somebody else was faster.
Result<bool> TakeOver(store::WriteStore& store, const Files& files, const std::string& name,
                      const ClaimOptions& options, const HeldOutput& held) {
  const Result<std::optional<store::WriteStore::Text>> there = store.Read(held.path);
  if (!there.ok()) return there.error();
  if (!*there) return false;
  if ((*there)->text == held.text) return true;  // by a request whose answer was lost
  const Judged judged =
      JudgeClaim(files, options, (*there)->text, store.Location(held.path), store.Location(name));
  if (!judged.over) return judged.refused.error();
  const Status put = store.Put(held.path, held.text, (*there)->version, {});
  if (put.ok()) return true;
  return put.error().code == Code::kStale ? Result<bool>(false) : put.error();
}

}  // namespace

Result<HeldOutput> ClaimInStore(store::WriteStore& store, const Files& files,
                                const std::string& name, const ClaimOptions& options) {
  const HeldOutput held{ClaimOf(name), ClaimText(options.owner)};
  for (int i = 0; i < kTries; ++i) {
    const Status put = store.Put(held.path, held.text, std::nullopt, {});
    if (!put.ok() && put.error().code != Code::kStale) return put.error();
    if (!put.ok()) {
      const Result<bool> taken = TakeOver(store, files, name, options, held);
      if (!taken.ok()) return taken.error();
      if (!*taken) continue;
    }
    if (const Status probed = Probe(store, held.path, name, held.text); !probed.ok()) {
      static_cast<void>(ReleaseInStore(store, held));  // the first error tells
      return probed.error();
    }
    return held;
  }
  return Error{
      Code::kUnavailable,
      store.Location(held.path) + ": other runs claim this output at the same time, over and over"};
}

Status KeepInStore(store::WriteStore& store, const HeldOutput& held) {
  if (held.path.empty()) return {};
  for (int i = 0; i < kTries; ++i) {
    const Result<std::optional<store::WriteStore::Text>> there = store.Read(held.path);
    if (!there.ok()) return there.error();
    if (*there && (*there)->text == held.text) return {};
    if (*there) {
      const std::optional<OutputOwner> other = ParseClaim((*there)->text);
      return Error{Code::kExists,
                   fmt::format("{}: another run has taken this output meanwhile: {}",
                               store.Location(held.path),
                               other ? "job " + Named(*other) : "which one is not to be seen")};
    }
    const Status put = store.Put(held.path, held.text, std::nullopt, {});
    if (put.ok() || put.error().code != Code::kStale) return put;
  }
  return Error{Code::kUnavailable,
               store.Location(held.path) + " comes and goes: end what writes it"};
}

Status ReleaseInStore(store::WriteStore& store, const HeldOutput& held) {
  if (held.path.empty()) return {};
  const Result<std::optional<store::WriteStore::Text>> there = store.Read(held.path);
  if (!there.ok()) return there.error();
  if (!*there || (*there)->text != held.text) return {};
  return store.Remove(held.path);
}

Result<std::optional<OutputOwner>> OwnerInStore(store::WriteStore& store, const std::string& name) {
  const Result<std::optional<store::WriteStore::Text>> there = store.Read(ClaimOf(name));
  if (!there.ok()) return there.error();
  return *there ? ParseClaim((*there)->text) : std::nullopt;
}

Status RemoveClaimInStore(store::WriteStore& store, const Files& files,
                          const std::string& state_folder, const std::string& name) {
  const Result<std::optional<OutputOwner>> owner = OwnerInStore(store, name);
  if (!owner.ok()) return owner.error();
  if (!*owner || !IsStateOf(files, state_folder, **owner)) return {};
  return store.Remove(ClaimOf(name));
}

}  // namespace parallelrun::output
