// A store in memory that is written to, for tests: objects with marks, uploads, conditions. Each
// request can be made to fail in the ways that stores know, by its number, before it does anything
// or after it did. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/write_store.h"

namespace parallelrun {

class MemoryWriteStore final : public store::WriteStore {
 public:
  // What becomes of a request.
  enum class Fault : uint8_t {
    kNone,
    kRefused,     // 503, or 200 with an error, for longer than anybody repeats it
    kLostAnswer,  // it happens, and nobody hears of it
    kConflict,    // 409: nothing happens, and an upload is of no use any more
  };
  // Asked of each request: its number (from 0) and what it is: "put", "look", "read", "remove",
  // "begin", "send", "complete", "end", "has".
  using Faults = std::function<Fault(size_t number, const std::string& what)>;

  struct Object {
    std::string bytes;
    store::Version version;
    store::Marks marks;
  };

  void SetFaults(Faults faults) { faults_ = std::move(faults); }
  // As one that does not know conditions.
  void IgnoreConditions() { ignores_ = true; }
  // What somebody else writes, and removes.
  void Write(const std::string& name, std::string bytes, store::Marks marks = {}) {
    Store(name, std::move(bytes), std::move(marks));
  }
  void Drop(const std::string& name) { objects_.erase(name); }
  // What a rule of the bucket does.
  void DropUploads() { uploads_.clear(); }
  const Object* Find(const std::string& name) const {
    const auto found = objects_.find(name);
    return found == objects_.end() ? nullptr : &found->second;
  }
  size_t uploads() const { return uploads_.size(); }
  void DropUpload(const std::string& id) { uploads_.erase(id); }
  // What whoever has a URL of SignPart sends; gives its ETag.
  Result<std::string> SendTo(const std::string& url, std::string bytes);
  static std::string EtagOf(const std::string& bytes);
  size_t objects() const { return objects_.size(); }
  const std::vector<std::string>& requests() const { return requests_; }
  // The parts of one upload are this small here.
  void SetParts(const Parts& parts) { parts_ = parts; }

  std::string Location(const std::string& name) const override { return "s3://bucket/" + name; }
  Parts parts() const override { return parts_; }
  Result<std::optional<store::Stored>> Look(const std::string& name) override;
  Result<std::optional<Text>> Read(const std::string& name) override;
  std::unique_ptr<store::Object> Open(const std::string& name, const store::Found& found) override;
  Status Put(const std::string& name, const std::string& text, const store::Expected& expected,
             const store::Marks& marks) override;
  Status Remove(const std::string& name) override;
  Result<std::unique_ptr<store::Upload>> Begin(const std::string& name,
                                               const store::Marks& marks) override;
  Status EndUpload(const std::string& name, const std::string& id) override;
  // "memory://NAME?upload=ID&part=NUMBER"
  Result<store::SignedUrl> SignPart(const std::string& name, const std::string& id, uint32_t number,
                                    Duration life) override;
  Status CompleteUpload(const std::string& name, const std::string& id,
                        const std::vector<std::string>& etags,
                        const store::Expected& expected) override;
  Result<bool> HasUpload(const std::string& name, const std::string& id) override;

 private:
  class MemoryUpload;
  class MemoryObject;
  struct Parted {
    std::string name;
    store::Marks marks;
    std::map<uint32_t, std::string> parts;
  };

  Fault Begins(const std::string& what);
  Status Fits(const std::string& name, const store::Expected& expected) const;
  void Store(const std::string& name, std::string bytes, store::Marks marks);
  // As S3: what the condition refuses stays an upload. With the mutex.
  Status CompleteNow(const std::string& id, const store::Expected& expected, Fault fault);

  std::mutex mutex_;
  std::map<std::string, Object> objects_;
  std::map<std::string, Parted> uploads_;
  std::vector<std::string> requests_;
  Faults faults_;
  Parts parts_{1, 10000};
  bool ignores_ = false;
  size_t versions_ = 0;
};

}  // namespace parallelrun
