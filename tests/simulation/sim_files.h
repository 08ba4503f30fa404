// One coordinator's view of the shared simulated disk: it can be made to die, to fail, or to be
// interrupted right before its n-th operation from now. Forwards everything else to FaultFiles.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fault_files.h"

namespace parallelrun::simulation {

class SimFiles final : public Files {
 public:
  explicit SimFiles(FaultFiles& disk) : disk_(disk) {}

  // At the n-th operation from now (1: the next).
  void FailAt(uint64_t n, FaultMoment moment) { countdown_ = n, moment_ = moment, interrupt_ = {}; }
  void InterruptAt(uint64_t n, std::function<void()> action) {
    countdown_ = n;
    interrupt_ = std::move(action);
  }
  void ClearFaults() { countdown_ = 0; }
  // The process is dead: nothing that it still tries has an effect.
  void Die() { dead_ = true; }
  bool dead() const { return dead_; }
  void OnRename(std::function<void(const std::string& to)> told) { renamed_ = std::move(told); }

  Result<std::unique_ptr<File>> CreateExclusive(const std::string& path) override;
  Result<std::unique_ptr<File>> Open(const std::string& path) override;
  Result<std::unique_ptr<File>> OpenOrCreate(const std::string& path) override;
  Result<std::unique_ptr<File>> OpenRead(const std::string& path) const override;
  Status Rename(const std::string& from, const std::string& to) override;
  Result<bool> RenameNew(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status SyncFolder(const std::string& path) override;
  Status MakeFolders(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& path) const override;
  Result<bool> Exists(const std::string& path) const override;
  Result<FileFacts> Stat(const std::string& path) const override;
  Result<std::string> RealPath(const std::string& path) const override;
  Result<std::unique_ptr<Folder>> OpenFolder(const std::string& path, Links links) const override;
  Result<std::unique_ptr<File>> Lock(const std::string& path) override;
  bool IsLocked(const std::string& path) const override;
  Result<uint64_t> FreeSpace(const std::string& path) const override;

  // Does `act`, or what was armed for this operation.
  template <typename Act>
  auto Operate(Act act) const -> decltype(act()) {
    if (countdown_ > 0 && --countdown_ == 0) {
      if (interrupt_) {
        std::exchange(interrupt_, {})();
      } else {
        disk_.FailOperation(1, {Code::kInternal, "input/output error"}, moment_);
      }
    }
    if (dead_) return Error{Code::kUnavailable, "this process is dead"};
    return act();
  }
  // What was opened operates through this object too.
  Result<std::unique_ptr<File>> Wrap(Result<std::unique_ptr<File>> file) const;
  Result<std::unique_ptr<Folder>> Wrap(Result<std::unique_ptr<Folder>> folder) const;

 private:
  FaultFiles& disk_;
  bool dead_ = false;
  mutable uint64_t countdown_ = 0;
  FaultMoment moment_ = FaultMoment::kBefore;
  mutable std::function<void()> interrupt_;
  std::function<void(const std::string&)> renamed_;
};

}  // namespace parallelrun::simulation
