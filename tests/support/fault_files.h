// A disk in memory that forgets: what was not synced (bytes, and entries of folders) is lost at
// Crash(), wholly or in part, and any operation can be made to fail. Deterministic: the same seed
// and the same calls give the same disk. Thread-safe.
//
// After Crash() every open File is dead: its operations fail with kUnavailable. Files opened before
// by several users see one disk, as coordinators on one volume do. There are no links on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"

namespace parallelrun {

// splitmix64
class FaultRng {
 public:
  explicit FaultRng(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  // 0 <= result < n; n > 0.
  uint64_t Below(uint64_t n) { return Next() % n; }

 private:
  uint64_t state_;
};

enum class CrashMode {
  kLoseAll,   // nothing unsynced survives
  kKeepAll,   // the process died, the machine lives on: everything survives
  kLoseSome,  // any part may survive: writes whole, torn, or sector by sector; entries singly
};

enum class FaultMoment {
  kBefore,  // nothing happened, except that a write may have written a part
  kAfter,   // it happened, but the answer was lost
};

class FaultFiles final : public Files {
 public:
  explicit FaultFiles(uint64_t seed = 1);
  ~FaultFiles() override;

  // --- Faults. Operations are all calls of Files and File, reads included.
  uint64_t operations() const;
  // The n-th operation from now (1: the next) fails.
  void FailOperation(uint64_t n, Error error, FaultMoment moment = FaultMoment::kBefore);
  // `action` runs right before the n-th operation from now: another user of the same disk comes in.
  void RunBefore(uint64_t n, std::function<void()> action);
  // The n-th ReadAt from now gets one bit flipped, or only a part of its bytes.
  void FlipRead(uint64_t n);
  void ShortenRead(uint64_t n);
  void ClearFaults();
  // Bytes that all files together may hold; nothing: no limit.
  void SetCapacity(std::optional<uint64_t> bytes);
  uint64_t used() const;
  // Whether Reserve does anything, as on ext4, or nothing, as on many network file systems.
  void SetReserveWorks(bool works);
  // Whether RenameNew can do it, as it cannot on some network file systems.
  void SetRenameNewWorks(bool works);
  // Whether CreateExclusive refuses a file that is there. Some mounted buckets do not.
  void SetExclusiveWorks(bool works);
  void Crash(CrashMode mode);
  // From now on operations on `folder` and below it do not come back, as on a volume that is not
  // reached, until Hang("").
  void Hang(const std::string& folder);
  // Waits until an operation hangs.
  void AwaitHanging() const;

  // --- The disk as it is, without counting as operations. Paths must exist.
  std::string Contents(const std::string& path) const;
  bool Has(const std::string& path) const;
  bool HasFolder(const std::string& path) const;
  // Replaces (or makes) a file, durably.
  void Put(const std::string& path, std::string bytes);
  // Removes a file, durably.
  void Drop(const std::string& path);

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
  // Stays locked for ever.
  Result<std::unique_ptr<File>> Lock(const std::string& path) override;
  bool IsLocked(const std::string& path) const override;
  Result<uint64_t> FreeSpace(const std::string& path) const override;

 private:
  struct Disk;
  explicit FaultFiles(std::shared_ptr<Disk> disk) : disk_(std::move(disk)) {}
  std::shared_ptr<Disk> disk_;  // shared with the open files and folders
  friend class FaultFile;
  friend class FaultFolder;
};

}  // namespace parallelrun
