// The names of an input, one at a time and in byte order, or in that of its manifest: what its
// store lists below the root (store/store.h), without what no mini-batch is to have. A listing can
// go on behind any name without reading what sorts before it.
//
// Left out: names that begin with a dot, but for a root that is one or a pattern that names the
// dot, folders named lost+found, what the pattern does not match, what an exclude pattern matches
// (a folder that one matches is left out with all below it), and of tables what is no data by its
// name (left_out.h), but for a root that is a file. And what an input before it means: a file
// belongs to the first input that means it. And, where only some are to be taken (PlanInput::only),
// all others. What becomes of links: store/folder/folder_store.h.
//
// Blocking I/O. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/input_names.h"
#include "plan/left_out.h"
#include "plan/planner.h"
#include "store/store.h"

namespace parallelrun::plan {

class Listing {
 public:
  // The names that sort after `after` (a name that this listing gave before, or empty: all).
  // `input` and `store` outlive the listing.
  Listing(const PlanInput& input, store::Store& store, std::string after = "");
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;

  // Looks at the root; Next() does it where it was not done. One that may be missing has no names.
  Status Start();
  // The next name, or nullopt at the end; its view holds until the next call. A name is bytes: what
  // is no UTF-8 and line breaks are in it as they are. Errors name the input: kUnavailable once the
  // input's `stop` was asked for, else those of the store. After an error the listing is over.
  Result<std::optional<store::Listed>> Next();

  // What was left out so far, for its name or as another input's. A listing that goes on behind a
  // name counts what its store still meets on the way.
  const LeftOut& left_out() const { return left_out_; }

 private:
  store::Wanted Wants();
  bool MayBeMissing(const Error& error) const;
  // Whoever names one file as the input means it.
  bool IsRoot(std::string_view path) const;
  bool CountsAsData(std::string_view path);
  void CountNoFile(std::string_view path);
  bool IsOfOther(std::string_view path);
  bool Chosen(std::string_view path) const;
  Error Over(const Error& error);

  const PlanInput& input_;
  store::Store& store_;
  const InputNames names_;
  const std::string after_;
  bool started_ = false;
  std::unique_ptr<store::Listing> listing_;  // none once it is over
  LeftOut left_out_;
};

// What is there under a listed name, nothing where that is gone by now. Errors name the input.
Result<std::optional<store::Found>> Look(const PlanInput& input, store::Store& store,
                                         const std::string& name);

}  // namespace parallelrun::plan
