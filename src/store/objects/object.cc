#include "store/objects/object.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/escape.h"
#include "store/objects/content_range.h"
#include "store/objects/object_version.h"

namespace parallelrun::store {
namespace {

std::string TextOf(const Found& found) {
  return fmt::format("{} bytes, ETag {}", found.size, Printable(EtagOf(found.version), kShown));
}

std::string DifferenceOf(const Found& was, const Found& is) {
  return "had " + TextOf(was) + "; has " + TextOf(is);
}

class ServedObject final : public Object {
 public:
  ServedObject(ObjectServer& server, std::string key, Found found)
      : server_(server), key_(std::move(key)), found_(std::move(found)) {}

  const Found& found() const override { return found_; }

  Result<size_t> ReadAt(uint64_t offset, std::span<char> to) const override {
    if (offset >= found_.size || to.empty()) return size_t{0};
    const std::span<char> into =
        to.first(static_cast<size_t>(std::min<uint64_t>(to.size(), found_.size - offset)));
    const uint64_t last = offset + into.size() - 1;
    const Result<HttpResponse> answer =
        server_.Read(key_,
                     {{"Range", fmt::format("bytes={}-{}", offset, last)},
                      {"If-Match", fmt::format("\"{}\"", EtagOf(found_.version))}},
                     into);
    if (!answer.ok()) return Changed(answer.error());
    const auto range = ParseContentRange(answer->Header("Content-Range"));
    const bool part = answer->status == 206;
    // Another size is another object, also where the server gives all of them one ETag.
    if (part && range && range->total.value_or(found_.size) != found_.size) {
      return Changed({Code::kStale, server_.Place(key_) + ": it was changed since it was opened"});
    }
    const bool whole = offset == 0 && into.size() == found_.size;
    if (part ? range && range->first == offset && range->last == last : whole) return into.size();
    return Error{Code::kInvalid, server_.Place(key_) +
                                     ": the server gives other bytes than those asked for (Range)"};
  }

 private:
  // Says how it changed, if it did.
  Error Changed(Error error) const {
    const std::string place = server_.Place(key_);
    if (error.code == Code::kNotFound) {
      return {Code::kStale, place + " was deleted since it was opened"};
    }
    if (error.code == Code::kInternal) {
      return {Code::kInvalid, place + ": the server gives more bytes than were asked for (Range)"};
    }
    // The latter for what is shorter now than where a read begins.
    if (error.code != Code::kStale && error.code != Code::kInvalid) return error;
    const Result<std::optional<Found>> now = server_.Stat(key_);
    if (!now.ok() || (*now && IsStill(**now))) return error;
    return {Code::kStale,
            place + (*now ? " was changed since it was opened: it " + DifferenceOf(found_, **now)
                          : " was deleted since it was opened")};
  }

  // Whoever writes knows versions without their size.
  bool IsStill(const Found& now) const {
    return now.size == found_.size && EtagOf(now.version) == EtagOf(found_.version);
  }

  ObjectServer& server_;
  const std::string key_;
  const Found found_;
};

}  // namespace

std::unique_ptr<Object> MakeObject(ObjectServer& server, std::string key, Found found) {
  return std::make_unique<ServedObject>(server, std::move(key), std::move(found));
}

std::unique_ptr<Object> MakeUnseen(ObjectServer& server, std::string key, const Version& version) {
  const std::optional<uint64_t> size = SizeOf(version);
  if (!size || *size == 0) return nullptr;
  return MakeObject(server, std::move(key), {*size, version});
}

Result<std::unique_ptr<Object>> OpenObject(ObjectServer& server, const std::string& key) {
  Result<std::optional<Found>> found = server.Stat(key);
  if (!found.ok()) return found.error();
  if (!*found) return Error{Code::kNotFound, server.Place(key) + ": there is no such object"};
  return MakeObject(server, key, std::move(**found));
}

}  // namespace parallelrun::store
