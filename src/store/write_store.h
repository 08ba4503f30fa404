// Where output is written to, if that keeps objects: one is made out of sight, part by part, and
// appears whole, on a condition that the server checks in the same step. Azure's blocks and
// Google's resumable uploads fit behind it as S3's multipart uploads do.
//
// Names are relative to the store's URL, with '/' between folders. Every call blocks, and repeats
// what a later try may mend: never call one on a thread that takes decisions. A store is made with
// the token that ends its waits. Thread-safe; an `Upload` may be sent parts by several threads at
// once, and may not outlive its store.
//
// Errors: kStale where the condition was not met: nothing was changed; kNotFound where there is no
// such object or upload; kPermission where a right or a key is at fault; kUnavailable where nobody
// knows how it ended, or a later try may succeed; else what the store says. Messages name the
// location and hold nothing secret.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "store/store.h"
#include "store/url_signer.h"

namespace parallelrun::store {

// What stands with an object, as a store keeps it: names are lower-case words with '-' between, and
// values are printable ASCII.
using Marks = std::map<std::string, std::string>;

struct Stored {
  Found found;
  Marks marks;
};

// What must be there when a write happens: that version, or nothing at all.
using Expected = std::optional<Version>;

// An object that nobody sees yet. Dropping it changes nothing: it stays until `EndUpload`.
class Upload {
 public:
  virtual ~Upload() = default;

  // By which it can be ended later, also by another process. No secret: it is of use only to who
  // may write there.
  virtual const std::string& id() const = 0;
  // Parts are numbered from 1, without gaps, and all but the last are of one size. A part may be
  // sent again.
  virtual Status Send(uint32_t number, std::string bytes) = 0;
  // Makes an object of the parts that were sent. kNotFound: the upload was ended, or was completed
  // by a request whose answer was lost.
  virtual Status Complete(const Expected& expected) = 0;
};

class WriteStore {
 public:
  // Of an upload.
  struct Parts {
    uint64_t smallest = 0;  // bytes, of all but the last
    uint32_t most = 0;
  };

  virtual ~WriteStore() = default;

  // As ledgers and people are told: "s3://bucket/a/rows.txt".
  virtual std::string Location(const std::string& name) const = 0;
  virtual Parts parts() const = 0;

  // What is there now; nothing where there is no such object.
  virtual Result<std::optional<Stored>> Look(const std::string& name) = 0;
  struct Text {
    std::string text;
    Version version;
  };
  // A small object, of a MiB at most; nothing where there is none.
  virtual Result<std::optional<Text>> Read(const std::string& name) = 0;
  // That version of an object, to be read; asks nobody yet. The store must outlive it.
  virtual std::unique_ptr<Object> Open(const std::string& name, const Found& found) = 0;
  // Writes a small object in one request. kStale also where an earlier try of the same call has
  // written it, and the answer was lost.
  virtual Status Put(const std::string& name, const std::string& text, const Expected& expected,
                     const Marks& marks) = 0;
  // One that is not there is no error.
  virtual Status Remove(const std::string& name) = 0;

  virtual Result<std::unique_ptr<Upload>> Begin(const std::string& name, const Marks& marks) = 0;
  // From then on the upload makes no object any more. One that is not there is no error.
  virtual Status EndUpload(const std::string& name, const std::string& id) = 0;

  // Of an upload whose parts somebody else sends, who has no keys: a URL by which whoever has it
  // sends that part, and nothing else, for `life` at most. Asks nobody but who gives the keys: the
  // upload was begun by this store.
  virtual Result<SignedUrl> SignPart(const std::string& name, const std::string& id,
                                     uint32_t number, Duration life) = 0;
  // As Upload::Complete, of the parts from number 1 on that have these ETags.
  virtual Status CompleteUpload(const std::string& name, const std::string& id,
                                const std::vector<std::string>& etags,
                                const Expected& expected) = 0;
  // Whether it is there, so that nothing has become of it.
  virtual Result<bool> HasUpload(const std::string& name, const std::string& id) = 0;
};

}  // namespace parallelrun::store
