// kubectl, found on the path: it is logged in as its user has set it up, and does what this user
// may do. Blocks until it has ended; there is no limit of our own, as it may ask its user to log
// in.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/cluster/interruption.h"

namespace parallelrun::cli {

struct KubectlWhere {
  std::string context;     // of the kubeconfig; empty: its own
  std::string name_space;  // empty: that of the context
  // "kubectl" and the flags that say so.
  std::vector<std::string> Words() const;
};

// `words` begin with those of a KubectlWhere; `input` is its standard input. What it says goes
// where ours does. Returns its exit status, 128 and the signal if one ended it. kNotFound: there is
// no kubectl.
Result<int> RunKubectl(const std::vector<std::string>& words, const std::string& input);

struct KubectlAnswer {
  int status = 0;
  std::string output;  // 16 MiB at most, kept in memory alone; its errors go where ours do
};
Result<KubectlAnswer> AskKubectl(const std::vector<std::string>& words,
                                 const std::string& input = "");

// What it says is given to `take` piece by piece, whose error ends kubectl, and so does an
// interruption (kUnavailable). Its exit status. From the main thread only: kubectl dies with it.
using TakeBytes = std::function<Status(std::string_view bytes)>;
Result<int> StreamKubectl(const std::vector<std::string>& words, const Interruption& interruption,
                          const TakeBytes& take);

}  // namespace parallelrun::cli
