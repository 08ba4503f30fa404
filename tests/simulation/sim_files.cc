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
  Result<size_t> ReadInto(uint64_t offset, std::span<char> to) const override {
    return files_.Operate([&] { return file_->ReadInto(offset, to); });
  }
  Status Sync() override {
    return files_.Operate([&] { return file_->Sync(); });
  }
  Result<FileFacts> Stat() const override {
    return files_.Operate([&] { return file_->Stat(); });
  }
  Status Cut(uint64_t size) override {
    return files_.Operate([&] { return file_->Cut(size); });
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

class SimFolder final : public Folder {
 public:
  SimFolder(const SimFiles& files, std::unique_ptr<Folder> folder)
      : files_(files), folder_(std::move(folder)) {}
  Status Entries(const EachEntry& each) const override {
    return files_.Operate([&] { return folder_->Entries(each); });
  }
  Result<FileFacts> Stat(const std::string& name, Links links) const override {
    return files_.Operate([&] { return folder_->Stat(name, links); });
  }
  Result<std::unique_ptr<Folder>> OpenFolder(const std::string& name) const override {
    return files_.Wrap(files_.Operate([&] { return folder_->OpenFolder(name); }));
  }
  Result<std::unique_ptr<File>> OpenRead(const std::string& name) const override {
    return files_.Wrap(files_.Operate([&] { return folder_->OpenRead(name); }));
  }
  Result<std::unique_ptr<File>> CreateExclusive(const std::string& name) override {
    return files_.Wrap(files_.Operate([&] { return folder_->CreateExclusive(name); }));
  }
  Result<std::unique_ptr<File>> OpenOrCreate(const std::string& name) override {
    return files_.Wrap(files_.Operate([&] { return folder_->OpenOrCreate(name); }));
  }
  Status Append(const std::string& name, std::string_view bytes) override {
    return files_.Operate([&] { return folder_->Append(name, bytes); });
  }
  Status MakeFolder(const std::string& name) override {
    return files_.Operate([&] { return folder_->MakeFolder(name); });
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return files_.Operate([&] { return folder_->Rename(from, to); });
  }
  Status Remove(const std::string& name) override {
    return files_.Operate([&] { return folder_->Remove(name); });
  }
  Status Link(const std::string& target, const std::string& name) override {
    return files_.Operate([&] { return folder_->Link(target, name); });
  }
  Status SyncFolderOf(const std::string& name) override {
    return files_.Operate([&] { return folder_->SyncFolderOf(name); });
  }

 private:
  const SimFiles& files_;
  const std::unique_ptr<Folder> folder_;
};

}  // namespace

Result<std::unique_ptr<Folder>> SimFiles::Wrap(Result<std::unique_ptr<Folder>> folder) const {
  if (!folder.ok()) return folder;
  return std::unique_ptr<Folder>(std::make_unique<SimFolder>(*this, std::move(*folder)));
}

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
Result<std::unique_ptr<File>> SimFiles::OpenOrCreate(const std::string& path) {
  return Wrap(Operate([&] { return disk_.OpenOrCreate(path); }));
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
Result<FileFacts> SimFiles::Stat(const std::string& path) const {
  return Operate([&] { return disk_.Stat(path); });
}
Result<std::string> SimFiles::RealPath(const std::string& path) const {
  return Operate([&] { return disk_.RealPath(path); });
}
Result<std::unique_ptr<Folder>> SimFiles::OpenFolder(const std::string& path, Links links) const {
  return Wrap(Operate([&] { return disk_.OpenFolder(path, links); }));
}
Result<std::unique_ptr<File>> SimFiles::Lock(const std::string& path) {
  return Wrap(Operate([&] { return disk_.Lock(path); }));
}
bool SimFiles::IsLocked(const std::string& path) const { return disk_.IsLocked(path); }
Result<uint64_t> SimFiles::FreeSpace(const std::string& path) const {
  return Operate([&] { return disk_.FreeSpace(path); });
}

}  // namespace parallelrun::simulation
