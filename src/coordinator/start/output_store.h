// The stores that a job's output, its logs and its state go to, from what its job file says.
#pragma once

#include <memory>
#include <stop_token>

#include "base/error.h"
#include "base/files.h"
#include "base/time.h"
#include "coordinator/start/layout.h"
#include "store/store.h"
#include "store/write_store.h"

namespace parallelrun::coordinator {

// `patience`: for how long one request is repeated. Asks nobody yet; kInvalid, kPermission: what
// the user has to mend, in words.
Result<std::unique_ptr<store::WriteStore>> OpenOutputStore(const JobLayout& layout,
                                                           std::stop_token stop,
                                                           Duration patience = seconds(180));

// The same of its logs, and the same place to be listed; names are relative to the folder of all
// runs.
Result<std::unique_ptr<store::WriteStore>> OpenLogStore(const JobLayout& layout,
                                                        std::stop_token stop);
Result<std::unique_ptr<store::Store>> OpenLogList(const JobLayout& layout, std::stop_token stop);

// The same of its state; `url` is the folder of this run's.
Result<std::unique_ptr<store::WriteStore>> OpenStateStore(const JobLayout& layout,
                                                          const std::string& url,
                                                          std::stop_token stop,
                                                          Duration patience = seconds(180));
Result<std::unique_ptr<store::Store>> OpenStateList(const JobLayout& layout, const std::string& url,
                                                    std::stop_token stop);

// Removes what coordinators of this job have left in its store, uploads and claim. For whoever
// knows that none is at work any more. Takes some seconds at most where the store is away.
Status RemoveLeftInStore(Files& files, const JobLayout& layout);

}  // namespace parallelrun::coordinator
