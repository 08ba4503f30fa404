#include "tests/support/memory_write_store.h"

#include <functional>
#include <utility>

namespace parallelrun {
namespace {

using Fault = MemoryWriteStore::Fault;

Error Away() { return {Code::kUnavailable, "the store does not answer as it should"}; }
Error NoUpload() { return {Code::kNotFound, "the upload is not there any more"}; }

}  // namespace

Fault MemoryWriteStore::Begins(const std::string& what) {
  const size_t number = requests_.size();
  requests_.push_back(what);
  return faults_ ? faults_(number, what) : Fault::kNone;
}

Status MemoryWriteStore::Fits(const std::string& name, const store::Expected& expected) const {
  if (ignores_) return {};
  const Object* const there = Find(name);
  if (expected ? there != nullptr && there->version == *expected : there == nullptr) return {};
  return Error{Code::kStale, name + ": what is there is not what was expected"};
}

void MemoryWriteStore::Store(const std::string& name, std::string bytes, store::Marks marks) {
  objects_[name] = {std::move(bytes), store::Version("v" + std::to_string(++versions_)),
                    std::move(marks)};
}

Status MemoryWriteStore::CompleteNow(const std::string& id, const store::Expected& expected,
                                     Fault fault) {
  if (fault == Fault::kRefused) return Away();
  const auto found = uploads_.find(id);
  if (found == uploads_.end()) return NoUpload();
  if (fault == Fault::kConflict) {
    uploads_.erase(found);
    return Away();
  }
  if (Status fits = Fits(found->second.name, expected); !fits.ok()) return fits;
  std::string bytes;
  for (const auto& [number, part] : found->second.parts) bytes += part;
  Store(found->second.name, std::move(bytes), found->second.marks);
  uploads_.erase(found);
  return fault == Fault::kLostAnswer ? Away() : Status();
}

class MemoryWriteStore::MemoryUpload final : public store::Upload {
 public:
  MemoryUpload(MemoryWriteStore& store, std::string id) : store_(store), id_(std::move(id)) {}

  const std::string& id() const override { return id_; }

  Status Send(uint32_t number, std::string bytes) override {
    const std::lock_guard lock(store_.mutex_);
    const Fault fault = store_.Begins("send");
    if (fault == Fault::kRefused) return Away();
    const auto found = store_.uploads_.find(id_);
    if (found == store_.uploads_.end()) return NoUpload();
    found->second.parts[number] = std::move(bytes);
    return fault == Fault::kLostAnswer ? Away() : Status();
  }

  Status Complete(const store::Expected& expected) override {
    const std::lock_guard lock(store_.mutex_);
    return store_.CompleteNow(id_, expected, store_.Begins("complete"));
  }

 private:
  MemoryWriteStore& store_;
  const std::string id_;
};

Result<std::optional<store::Stored>> MemoryWriteStore::Look(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (Begins("look") != Fault::kNone) return Away();
  const Object* const there = Find(name);
  if (there == nullptr) return std::optional<store::Stored>();
  return std::optional(store::Stored{{there->bytes.size(), there->version}, there->marks});
}

Result<std::optional<store::WriteStore::Text>> MemoryWriteStore::Read(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (Begins("read") != Fault::kNone) return Away();
  const Object* const there = Find(name);
  if (there == nullptr) return std::optional<Text>();
  return std::optional(Text{there->bytes, there->version});
}

class MemoryWriteStore::MemoryObject final : public store::Object {
 public:
  MemoryObject(MemoryWriteStore& store, std::string name, store::Found found)
      : store_(store), name_(std::move(name)), found_(std::move(found)) {}

  const store::Found& found() const override { return found_; }
  Result<size_t> ReadAt(uint64_t offset, std::span<char> to) const override {
    const std::lock_guard lock(store_.mutex_);
    if (store_.Begins("read") != Fault::kNone) return Away();
    const MemoryWriteStore::Object* const there = store_.Find(name_);
    if (there == nullptr || there->version != found_.version) {
      return Error{Code::kStale, name_ + " was changed since it was opened"};
    }
    return there->bytes.copy(to.data(), to.size(), offset);
  }

 private:
  MemoryWriteStore& store_;
  const std::string name_;
  const store::Found found_;
};

std::unique_ptr<store::Object> MemoryWriteStore::Open(const std::string& name,
                                                      const store::Found& found) {
  return std::make_unique<MemoryObject>(*this, name, found);
}

Status MemoryWriteStore::Put(const std::string& name, const std::string& text,
                             const store::Expected& expected, const store::Marks& marks) {
  const std::lock_guard lock(mutex_);
  const Fault fault = Begins("put");
  if (fault == Fault::kRefused || fault == Fault::kConflict) return Away();
  if (Status fits = Fits(name, expected); !fits.ok()) return fits;
  Store(name, text, marks);
  // The request is repeated, and what it has written itself is in its way.
  if (fault != Fault::kLostAnswer) return {};
  return Error{Code::kStale, name + ": what is there is not what was expected"};
}

Status MemoryWriteStore::Remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const Fault fault = Begins("remove");
  if (fault == Fault::kRefused || fault == Fault::kConflict) return Away();
  objects_.erase(name);
  return fault == Fault::kLostAnswer ? Away() : Status();
}

Result<std::unique_ptr<store::Upload>> MemoryWriteStore::Begin(const std::string& name,
                                                               const store::Marks& marks) {
  const std::lock_guard lock(mutex_);
  const Fault fault = Begins("begin");
  if (fault == Fault::kRefused || fault == Fault::kConflict) return Away();
  const std::string id = "upload-" + std::to_string(++versions_);
  uploads_[id] = {name, marks, {}};
  if (fault == Fault::kLostAnswer) return Away();
  return std::unique_ptr<store::Upload>(std::make_unique<MemoryUpload>(*this, id));
}

Status MemoryWriteStore::EndUpload(const std::string&, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const Fault fault = Begins("end");
  if (fault == Fault::kRefused || fault == Fault::kConflict) return Away();
  uploads_.erase(id);
  return fault == Fault::kLostAnswer ? Away() : Status();
}

std::string MemoryWriteStore::EtagOf(const std::string& bytes) {
  return std::to_string(std::hash<std::string>()(bytes));
}

Result<std::string> MemoryWriteStore::SendTo(const std::string& url, std::string bytes) {
  const std::lock_guard lock(mutex_);
  const size_t upload = url.find("?upload=");
  const size_t part = url.find("&part=");
  if (upload == std::string::npos || part == std::string::npos) {
    return Error{Code::kInvalid, url + " is no URL of a part"};
  }
  const auto found = uploads_.find(url.substr(upload + 8, part - upload - 8));
  if (found == uploads_.end()) return NoUpload();
  std::string etag = EtagOf(bytes);
  found->second.parts[static_cast<uint32_t>(std::stoul(url.substr(part + 6)))] = std::move(bytes);
  return etag;
}

Result<store::SignedUrl> MemoryWriteStore::SignPart(const std::string& name, const std::string& id,
                                                    uint32_t number, Duration life) {
  return store::SignedUrl{"memory://" + name + "?upload=" + id + "&part=" + std::to_string(number),
                          life};
}

Status MemoryWriteStore::CompleteUpload(const std::string&, const std::string& id,
                                        const std::vector<std::string>& etags,
                                        const store::Expected& expected) {
  const std::lock_guard lock(mutex_);
  const Fault fault = Begins("complete");
  if (const auto found = uploads_.find(id); found != uploads_.end()) {
    std::vector<std::string> sent;
    for (const auto& [number, part] : found->second.parts) sent.push_back(EtagOf(part));
    if (sent != etags) return Error{Code::kInvalid, "the parts are not those that were sent"};
  }
  return CompleteNow(id, expected, fault);
}

Result<bool> MemoryWriteStore::HasUpload(const std::string&, const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (Begins("has") != Fault::kNone) return Away();
  return uploads_.contains(id);
}

}  // namespace parallelrun
