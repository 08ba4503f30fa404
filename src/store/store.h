// Where input data lies: names in byte order, and bytes at a name. A `Store` is one root with all
// below it: a folder of a volume, a bucket's keys behind a prefix. What is above (listing, readers,
// plan) knows names, sizes and versions; inodes, descriptors, requests and credentials end here.
//
// Every call blocks, perhaps for as long as a network volume or a server does: never call one on a
// thread that takes decisions. A store is made with the token that ends its waits: once that was
// asked for, a listing and a look fail with kUnavailable soon, so that a job can end in their
// midst.
//
// A `Store` and an `Object` may be used by several threads at once, a `Listing` by one at a time.
// Listings and objects may outlive neither their store nor what it was made with.
//
// Errors: kNotFound where there is no such root or object; kPermission where the store does not let
// us; kUnavailable where a later try may succeed, the stop included; kInvalid for what a person has
// to mend; else what the store says. Messages name the location and hold nothing secret; those
// above add which input it was.
#pragma once

#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace parallelrun::store {

// Which state of an object was seen: size and modification time of a file, ETag and size of an
// object. It stands in the plan, so that whoever reads later knows whether it reads what was
// planned: equal versions, equal bytes. Others only compare and keep it; its own store alone reads
// what it says, and where it writes it in another way than earlier releases it knows theirs,
// because it lies in ledgers.
class Version {
 public:
  static constexpr size_t kMost = 255;  // bytes: a plan counts them in one

  Version() = default;  // of nothing
  explicit Version(std::string bytes) : bytes_(std::move(bytes)) { assert(bytes_.size() <= kMost); }
  std::string_view bytes() const { return bytes_; }
  bool operator==(const Version&) const = default;

 private:
  std::string bytes_;
};

// What is there. The size stands apart from the version, which may not tell it.
struct Found {
  uint64_t size = 0;  // bytes
  Version version;
};

// Which names are wanted; the patterns themselves stay above. All are asked with a name relative to
// the root, as the listing gives it, often, and never by two threads at once.
struct Wanted {
  // Is an object with this name wanted?
  std::function<bool(std::string_view)> name;
  // May `name` say yes to something below this folder ("a/b": names that begin with "a/b/")? What
  // is below is not looked at where it says no: a store skips it, or leaves out all that it was
  // given. A name that has such a folder on its way is not listed, whatever `name` says of it.
  std::function<bool(std::string_view)> below;
  // Told, where it is given, of each object that holds bytes though its name ends in '/', or is
  // empty: it is no mark of a folder, and yet nothing that a file could be called. It is not
  // listed.
  std::function<void(std::string_view)> no_file = {};
};

// What somebody else's list says that an object is: of one version and no other.
struct Pin {
  std::optional<uint64_t> size{};  // bytes
  std::string etag = {};           // without quotes; empty: nothing is said of it
  bool operator==(const Pin&) const = default;
};

struct Listed {
  std::string_view name;       // holds until the next call of Next
  std::optional<Found> found;  // where the listing learns it for nothing; else ask Stat
  // What is said of it beside its name, as a JSON object; holds as long. Of a manifest alone.
  std::string_view metadata = {};
};

class Listing {
 public:
  virtual ~Listing() = default;

  // The next name, nothing at the end. Names are relative to the root, with '/' between folders, in
  // the order of their bytes ("a.b" before "a/b" before "a0"), and each comes once. The order
  // depends on names only, so that a listing can go on behind any of them. After an error the
  // listing is over: make a new one.
  virtual Result<std::optional<Listed>> Next() = 0;
};

// One version of one object. Its bytes are those of `found().version`, or an error tells that they
// are there no more (kStale) where the store can know that; one that cannot reads what is there, as
// far as it was long when it was opened, and whoever reads the plan later compares versions.
class Object {
 public:
  virtual ~Object() = default;

  virtual const Found& found() const = 0;
  // Reads into `to`, and says how many bytes; fewer only at the end.
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<char> to) const = 0;
};

// How often a server has answered, over all calls so far.
struct AnswerCounts {
  uint64_t all = 0;
  uint64_t throttled = 0;  // of these: it wanted fewer questions
};

class Store {
 public:
  virtual ~Store() = default;

  // The names behind `after`, which is a name that a listing of this root gave, perhaps in an
  // earlier life of this program, or empty for all. It need not be there any more.
  virtual Result<std::unique_ptr<Listing>> List(Wanted wanted, const std::string& after) = 0;
  // Whether the root is there, though a listing may give nothing of it: a folder, a bucket, and of
  // a prefix where any key begins so, as that of the mark by which consoles make a folder.
  virtual Result<bool> IsThere() = 0;
  // What is there under a name; nothing where that is gone, or is no object, as a folder.
  virtual Result<std::optional<Found>> Stat(const std::string& name) = 0;
  // Opens what is there now, for reading from front to back or anywhere. kNotFound: it is gone.
  virtual Result<std::unique_ptr<Object>> Open(const std::string& name) = 0;
  // That version of it, without asking anybody: reads tell whether it is still there (kStale).
  // Nothing where the store has to look first: its reads do not say which version they mean, or
  // the version does not tell how long the object is.
  virtual std::unique_ptr<Object> OpenUnseen(const std::string& /*name*/,
                                             const Version& /*version*/) {
    return nullptr;
  }

  // While calls are under way, too. Zeros for a store that asks no server.
  virtual AnswerCounts CountAnswers() const { return {}; }

  // Where a name is, as plans, scripts and people are told: "/data/a/b.txt", "s3://bucket/a/b.txt":
  // the root that the store was made with, and the name behind a '/'. Of the empty name: what names
  // are relative to, which is the root, or what holds it when the root is a single object (whether
  // it is one may be known only once a call above has succeeded).
  virtual std::string Location(std::string_view name) const = 0;
  // Location("") with all links on the way to it followed: the same where a store has no links.
  virtual Result<std::string> RealRoot() = 0;
  // What `pin` says is there, the rest as it is `now`; nothing where that has to be looked at
  // first. A reader who meets anything else says how it differs.
  virtual std::optional<Found> Pinned(const Pin& /*pin*/, const std::optional<Found>& now) const {
    return now;
  }
  // How two states of one object differ, for people: "had 8 bytes, has 9".
  virtual std::string Difference(const Version& was, const Version& is) const = 0;
  // The same version as an earlier release has written it into the plan of a run that goes on, or
  // as it is. Each store says it, and so does one that stands before another: a plan of that
  // release is else another input.
  virtual Version AsBefore(const Version& version) const = 0;
  // Whether what was planned, maybe by an earlier release, is what is there now.
  bool IsStill(const Version& planned, const Version& now) const {
    return planned == now || planned == AsBefore(now);
  }
};

}  // namespace parallelrun::store
