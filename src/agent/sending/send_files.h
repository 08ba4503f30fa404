// `parallelrun-agent send`: the files below a folder of a pod, as one stream. What lies there is
// hostile: no link is followed, and nothing but plain files is read. Blocking; any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace parallelrun::agent {

struct SendRequest {
  std::string root;    // absolute; a mount. May be a link
  std::string folder;  // of the root; "." is all of it
  // Relative to the folder: these files, if they are there. Empty: all below it.
  std::vector<std::string> only;
  // Not these: the name of a file or folder, or the begin of such names and a "*".
  std::vector<std::string> except;
};

// `put` takes the stream piece by piece; its error ends all. A folder that is not there has no
// files. What cannot be read is the stream's last frame, and the error that is returned. A file
// that grows meanwhile is sent as long as it was when it was opened; one that gets shorter, as it
// is.
using PutBytes = std::function<Status(std::string_view bytes)>;
Status SendFiles(const Files& files, const SendRequest& request, const PutBytes& put);

// The same, to standard output.
Status SendFilesOut(const Files& files, const SendRequest& request);

}  // namespace parallelrun::agent
