#include "ledger/state_notes.h"

#include <utility>

#include "base/small_file.h"

namespace parallelrun::ledger {
namespace {

class FolderNotes final : public StateNotes {
 public:
  FolderNotes(Files& files, std::string folder) : files_(files), folder_(std::move(folder)) {}

  std::string Location(const std::string& name) const override { return folder_ + "/" + name; }

  Result<std::optional<std::string>> Read(const std::string& name, size_t most) override {
    Result<std::string> text = ReadBegin(files_, Location(name), most);
    if (text.ok()) return std::optional(std::move(*text));
    if (text.error().code == Code::kNotFound) return std::optional<std::string>();
    return text.error();
  }

  Status Write(const std::string& name, const std::string& text) override {
    const std::string path = Location(name);
    if (name.find('/') != std::string::npos) {
      if (Status made = files_.MakeFolders(FolderOf(path)); !made.ok()) return made;
    }
    return PublishFile(files_, path, text);
  }

  Result<std::vector<std::string>> List(const std::string& folder) override {
    Result<std::vector<std::string>> names = files_.List(Location(folder));
    if (!names.ok() && names.error().code == Code::kNotFound) return std::vector<std::string>();
    return names;
  }

  Status Remove(const std::string& name) override {
    Status removed = files_.Remove(Location(name));
    if (!removed.ok() && removed.error().code == Code::kNotFound) return {};
    return removed;
  }

 private:
  Files& files_;
  const std::string folder_;
};

}  // namespace

std::unique_ptr<StateNotes> MakeFolderNotes(Files& files, const std::string& state_folder) {
  return std::make_unique<FolderNotes>(files, state_folder);
}

}  // namespace parallelrun::ledger
