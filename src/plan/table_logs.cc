#include "plan/table_logs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/escape.h"
#include "plan/glob.h"
#include "plan/source.h"

namespace parallelrun::plan {
namespace {

struct TableLog {
  std::string_view folder;  // its name, in the folder of the table
  std::string_view kind;    // of the table
  std::string_view file;    // how a name in it ends; of "metadata" there are other folders too
};

constexpr std::array<TableLog, 2> kTableLogs = {{
    {"_delta_log", "a Delta", ""},
    {"metadata", "an Iceberg", ".metadata.json"},
}};

// "/data/a", "/data", "/"; "s3://bucket/a", "s3://bucket". False where nothing is above.
bool GoUp(std::string& folder) {
  const size_t scheme = folder.find("://");
  const size_t root = scheme == std::string::npos ? 0 : scheme + 3;
  const size_t slash = folder.rfind('/');
  if (slash == std::string::npos || slash < root || folder == "/") return false;
  folder.resize(std::max<size_t>(slash, 1));
  return true;
}

// Looks for logs by opening each as an input of its own: every store can do that, and no more of it
// is read than the names in one folder.
class TableLogs {
 public:
  TableLogs(OpenStore open, const PlanInput& input)
      : open_(std::move(open)),
        input_(input),
        exclude_(input.exclude.begin(), input.exclude.end()) {}

  // The root, and all that it lies in: nearest first. Their own names are not known here, so that
  // `exclude` is asked for the bare name of the log, which is how people say that they mean it.
  Status CheckFrom(std::string folder) const {
    do {
      for (const TableLog& log : kTableLogs) {
        if (Excluded(log.folder)) continue;
        if (Status plain = Check(folder, log); !plain.ok()) return plain;
      }
    } while (GoUp(folder));
    return {};
  }

  // A folder that a listing has met, by its name from the root.
  Status CheckMet(const store::Store& store, std::string_view met) const {
    const size_t name = met.rfind('/') + 1;
    for (const TableLog& log : kTableLogs) {
      if (met.substr(name) != log.folder || Excluded(met)) continue;
      return Check(store.Location(name == 0 ? "" : met.substr(0, name - 1)), log);
    }
    return {};
  }

 private:
  bool Excluded(std::string_view path) const {
    return std::any_of(exclude_.begin(), exclude_.end(),
                       [&](const Glob& glob) { return glob.Matches(path); });
  }

  Status Check(const std::string& folder, const TableLog& log) const {
    PlanInput input = input_;
    input.root = JoinPath(folder, log.folder);
    const auto store = open_(input);
    const auto listing =
        store->List({[&log](std::string_view name) { return name.ends_with(log.file); },
                     [](std::string_view) { return false; }},
                    "");
    if (!listing.ok()) return UnlessNotThere(listing.error());
    const auto first = (*listing)->Next();
    if (!first.ok()) return UnlessNotThere(first.error());
    // A file that is called so is none: names are relative to what holds it then.
    if (!*first || store->Location("") != input.root) return {};
    return Error{
        Code::kInvalid,
        fmt::format("{} is {} table ({}/{} is there), and its files hold rows that were removed or "
                    "replaced since: write the rows that count out as plain Parquet first, or, "
                    "to read every file all the same, name {} in inputs[].exclude",
                    Printable(folder, 4096), log.kind, log.folder, Printable((*first)->name, 256),
                    log.folder)};
  }

  // Not to know is not to allow; but above the input there may be folders that are nobody's to see.
  static Status UnlessNotThere(const Error& why) {
    if (why.code == Code::kNotFound || why.code == Code::kPermission) return {};
    return why;
  }

  const OpenStore open_;
  const PlanInput input_;
  const std::vector<Glob> exclude_;
};

class CheckedListing final : public store::Listing {
 public:
  CheckedListing(std::unique_ptr<store::Listing> listing, std::shared_ptr<const Status> refused)
      : refused_(std::move(refused)), listing_(std::move(listing)) {}

  Result<std::optional<store::Listed>> Next() override {
    auto next = listing_->Next();
    if (!refused_->ok()) return refused_->error();
    return next;
  }

 private:
  const std::shared_ptr<const Status> refused_;
  const std::unique_ptr<store::Listing> listing_;
};

class CheckedStore final : public store::Store {
 public:
  CheckedStore(OpenStore open, const PlanInput& input)
      : store_(open(input)), logs_(std::move(open), input) {}

  Result<std::unique_ptr<store::Listing>> List(store::Wanted wanted,
                                               const std::string& after) override {
    const auto refused = std::make_shared<Status>();
    store::Wanted asked = {wanted.name,
                           [this, refused, below = wanted.below](std::string_view met) {
                             if (refused->ok()) *refused = logs_.CheckMet(*store_, met);
                             return refused->ok() && below(met);
                           },
                           wanted.no_file};
    auto listing = store_->List(std::move(asked), after);
    if (!refused->ok()) return refused->error();
    if (!listing.ok()) return listing.error();
    const Result<std::string> root = store_->RealRoot();
    if (!root.ok()) return root.error();
    if (const Status plain = logs_.CheckFrom(*root); !plain.ok()) return plain.error();
    return std::unique_ptr<store::Listing>(
        std::make_unique<CheckedListing>(std::move(*listing), refused));
  }
  Result<bool> IsThere() override { return store_->IsThere(); }
  Result<std::optional<store::Found>> Stat(const std::string& name) override {
    return store_->Stat(name);
  }
  Result<std::unique_ptr<store::Object>> Open(const std::string& name) override {
    return store_->Open(name);
  }
  store::AnswerCounts CountAnswers() const override { return store_->CountAnswers(); }
  std::string Location(std::string_view name) const override { return store_->Location(name); }
  Result<std::string> RealRoot() override { return store_->RealRoot(); }
  std::string Difference(const store::Version& was, const store::Version& is) const override {
    return store_->Difference(was, is);
  }
  store::Version AsBefore(const store::Version& version) const override {
    return store_->AsBefore(version);
  }

 private:
  const std::unique_ptr<store::Store> store_;
  const TableLogs logs_;
};

}  // namespace

OpenStore RefusingTableLogs(OpenStore open) {
  return [open = std::move(open)](const PlanInput& input) -> std::unique_ptr<store::Store> {
    if (DataNamesOf(input.kind) == DataNames::kAll) return open(input);
    return std::make_unique<CheckedStore>(open, input);
  };
}

}  // namespace parallelrun::plan
