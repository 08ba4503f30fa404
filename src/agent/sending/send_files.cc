#include "agent/sending/send_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>

#include "agent/sending/file_stream.h"

namespace parallelrun::agent {
namespace {

class Sending {
 public:
  Sending(const Folder& folder, const SendRequest& request, const PutBytes& put)
      : folder_(folder), request_(request), put_(put), chunk_(kMostFrame, '\0') {}

  Status All() {
    if (request_.only.empty()) {
      if (Status sent = Below("."); !sent.ok()) return sent;
    }
    for (const std::string& name : request_.only) {
      if (Status sent = Named(name); !sent.ok()) return sent;
    }
    return put_(EndFrame(files_, bytes_));
  }

 private:
  bool Excepted(const std::string& name) const {
    return std::any_of(
        request_.except.begin(), request_.except.end(), [&](const std::string& except) {
          if (!except.ends_with('*')) return name == except;
          return name.starts_with(std::string_view(except).substr(0, except.size() - 1));
        });
  }

  // Depth first, so that what waits is no more than the folders on the way.
  Status Below(const std::string& top) {
    std::vector<std::string> waiting = {top};
    while (!waiting.empty()) {
      const std::string folder = std::move(waiting.back());
      waiting.pop_back();
      const Result<std::vector<std::string>> names = NamesIn(folder);
      if (!names.ok()) return names.error();
      std::vector<std::string> folders;
      for (const std::string& name : *names) {
        if (Excepted(name)) continue;
        const Result<FileFacts> facts = folder_.Stat(name, Links::kRefuse);
        if (!facts.ok() && facts.error().code == Code::kNotFound) continue;  // gone meanwhile
        if (!facts.ok()) return facts.error();
        if (facts->kind == EntryKind::kFolder) folders.push_back(name);
        if (facts->kind != EntryKind::kFile) continue;
        if (const Status sent = Named(name); !sent.ok()) return sent;
      }
      waiting.insert(waiting.end(), folders.rbegin(), folders.rend());
    }
    return {};
  }

  // Their paths from the top, sorted.
  Result<std::vector<std::string>> NamesIn(const std::string& path) const {
    std::vector<std::string> names;
    const Result<std::unique_ptr<Folder>> folder = folder_.OpenFolder(path);
    if (!folder.ok() && folder.error().code == Code::kNotFound) return names;  // gone meanwhile
    if (!folder.ok()) return folder.error();
    const Status listed = (*folder)->Entries([&](const std::string& name, EntryKind) -> Status {
      names.push_back(path == "." ? name : path + "/" + name);
      return {};
    });
    if (!listed.ok()) return listed.error();
    std::sort(names.begin(), names.end());
    return names;
  }

  Status Named(const std::string& name) {
    const Result<std::unique_ptr<File>> file = folder_.OpenRead(name);
    if (!file.ok() && file.error().code == Code::kNotFound) return {};
    if (!file.ok()) return file.error();
    const Result<FileFacts> facts = (*file)->Stat();
    if (!facts.ok()) return facts.error();
    if (facts->kind != EntryKind::kFile) return {};
    if (const Status sent = put_(FileFrame(name)); !sent.ok()) return sent;
    ++files_;
    (*file)->ExpectSequentialReads();
    for (uint64_t at = 0; at < facts->size;) {
      const size_t wanted = std::min<uint64_t>(chunk_.size(), facts->size - at);
      const Result<size_t> read = (*file)->ReadInto(at, std::span(chunk_.data(), wanted));
      if (!read.ok()) return read.error();
      if (*read == 0) break;
      const std::string_view bytes(chunk_.data(), *read);
      if (const Status sent = put_(BytesFrame(bytes)); !sent.ok()) return sent;
      at += *read;
      bytes_ += *read;
    }
    return {};
  }

  const Folder& folder_;
  const SendRequest& request_;
  const PutBytes& put_;
  std::string chunk_;
  uint64_t files_ = 0;
  uint64_t bytes_ = 0;
};

Status Send(const Files& files, const SendRequest& request, const PutBytes& put) {
  const Result<std::unique_ptr<Folder>> root = files.OpenFolder(request.root, Links::kRefuse);
  if (!root.ok()) return root.error();
  const Result<std::unique_ptr<Folder>> folder = (*root)->OpenFolder(request.folder);
  if (!folder.ok() && folder.error().code == Code::kNotFound) return put(EndFrame(0, 0));
  if (!folder.ok()) return folder.error();
  return Sending(**folder, request, put).All();
}

}  // namespace

Status SendFiles(const Files& files, const SendRequest& request, const PutBytes& put) {
  if (Status begun = put(kFileStreamMagic); !begun.ok()) return begun;
  Status sent = Send(files, request, put);
  if (!sent.ok()) static_cast<void>(put(FailedFrame(sent.error().message)));
  return sent;
}

Status SendFilesOut(const Files& files, const SendRequest& request) {
  return SendFiles(files, request, [](std::string_view bytes) -> Status {
    while (!bytes.empty()) {
      const ssize_t n = write(STDOUT_FILENO, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoError(errno, "write to standard output");
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return {};
  });
}

}  // namespace parallelrun::agent
