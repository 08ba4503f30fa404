#include "tests/simulation/sim_files.h"

namespace parallelrun::simulation {
namespace {

class SimFile final : public File {
 public:
  SimFile(const SimFiles& files, std::unique_ptr<File> file)
      : files_(files), file_(std::move(file)) {}
  Status WriteAt(uint64_t offset, std::string_view bytes) override {
    return files_.Operate([&] { return file_->WriteAt(offset, bytes); });
  }
  Result<std::string> ReadAt(uint64_t offset, size_t size) const override {
    return files_.Operate([&] { return file_->ReadAt(offset, size); });
  }
  Status Sync() override {
    return files_.Operate([&] { return file_->Sync(); });
  }
  Result<uint64_t> Size() const override {
    return files_.Operate([&] { return file_->Size(); });
  }
  Status Reserve(uint64_t size) override {
    return files_.Operate([&] { return file_->Reserve(size); });
  }
  Status Trim() override {
    return files_.Operate([&] { return file_->Trim(); });
  }

 private:
  const SimFiles& files_;
  const std::unique_ptr<File> file_;
};

}  // namespace

Result<std::unique_ptr<File>> SimFiles::Wrap(Result<std::unique_ptr<File>> file) const {
  if (!file.ok()) return file;
  return std::unique_ptr<File>(std::make_unique<SimFile>(*this, std::move(*file)));
}
Result<std::unique_ptr<File>> SimFiles::CreateExclusive(const std::string& path) {
  return Wrap(Operate([&] { return disk_.CreateExclusive(path); }));
}
Result<std::unique_ptr<File>> SimFiles::Open(const std::string& path) {
  return Wrap(Operate([&] { return disk_.Open(path); }));
}
Result<std::unique_ptr<File>> SimFiles::OpenRead(const std::string& path) const {
  return Wrap(Operate([&] { return disk_.OpenRead(path); }));
}
Status SimFiles::Rename(const std::string& from, const std::string& to) {
  return Operate([&]() -> Status {
    const bool there = disk_.Has(from);
    Status renamed = disk_.Rename(from, to);
    if (there && !disk_.Has(from) && renamed_) renamed_(to);
    return renamed;
  });
}
Result<bool> SimFiles::RenameNew(const std::string& from, const std::string& to) {
  return Operate([&]() -> Result<bool> {
    const bool there = disk_.Has(from);
    Result<bool> renamed = disk_.RenameNew(from, to);
    if (there && !disk_.Has(from) && renamed_) renamed_(to);
    return renamed;
  });
}
Status SimFiles::Remove(const std::string& path) {
  return Operate([&] { return disk_.Remove(path); });
}
Status SimFiles::SyncFolder(const std::string& path) {
  return Operate([&] { return disk_.SyncFolder(path); });
}
Status SimFiles::MakeFolders(const std::string& path) {
  return Operate([&] { return disk_.MakeFolders(path); });
}
Result<std::vector<std::string>> SimFiles::List(const std::string& path) const {
  return Operate([&] { return disk_.List(path); });
}
Result<bool> SimFiles::Exists(const std::string& path) const {
  return Operate([&] { return disk_.Exists(path); });
}
Result<uint64_t> SimFiles::FreeSpace(const std::string& path) const {
  return Operate([&] { return disk_.FreeSpace(path); });
}

}  // namespace parallelrun::simulation
