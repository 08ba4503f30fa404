// A path in a store, of which nobody knows by its words whether it is the key of one object or a
// prefix of keys: the store is asked, once, by the first call. An object of that key is it; where
// there is none, or nobody may know, it is all below. An empty object with other keys below it is
// the mark of a folder, as tools that play file system leave one.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "store/store.h"

namespace parallelrun::plan {

// Whether it is one object. `below`: all below the path; `beside`: all below what holds it, where
// it is called `name`.
Result<bool> IsOneObject(store::Store& below, store::Store& beside, const std::string& name);

// The store of what the path is.
std::unique_ptr<store::Store> ObjectOrPrefix(std::unique_ptr<store::Store> below,
                                             std::unique_ptr<store::Store> beside,
                                             std::string name);

}  // namespace parallelrun::plan
