// Which uploads of side files the coordinators of a state have begun (docs/ledger.md, "Side files
// in a store"): an attempt sends its files as uploads that are not complete, and of those that come
// to nothing nobody else would know. Blocking I/O.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ledger/state_notes.h"
#include "store/write_store.h"

namespace parallelrun::output {

struct SideUploadNote {
  std::string name;  // of what it is to become, in the store
  std::string id;
};

// Of one epoch; one thread at a time.
class SideUploadNotes {
 public:
  // `notes` must outlive it. `store`: the location of the store's root.
  SideUploadNotes(ledger::StateNotes& notes, std::string store, uint64_t run_id, uint32_t epoch);

  // Durable when it returns: before anybody sends a byte there.
  Status Add(const std::vector<SideUploadNote>& begun);

 private:
  std::string Head() const;

  ledger::StateNotes& notes_;
  const std::string store_;
  const uint64_t run_id_;
  const uint32_t epoch_;
  uint32_t number_ = 0;  // of the note that is added to
  std::string text_;     // of it
};

// Ends what is noted of runs that `of_run` says yes of, but for the uploads that `keeps` does, and
// then forgets the notes. What was noted for another store stays.
Status EndSideUploads(ledger::StateNotes& notes, store::WriteStore& store,
                      const std::function<bool(uint64_t run_id)>& of_run,
                      const std::function<bool(const std::string& id)>& keeps);

}  // namespace parallelrun::output
