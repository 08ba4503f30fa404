// A path in a store, of which nobody knows by its words whether it is the key of one object or a
// prefix of keys: the store is asked, once, by the first call. An object of that key is it; where
// there is none, or nobody may know, it is all below. An empty object with others below it is the
// mark of a folder, as tools that play file system leave one.
#pragma once

#include <memory>
#include <string>

#include "store/store.h"

namespace parallelrun::plan {

// `below`: all below the path; `beside`: all below what holds it, where it is called `name`.
std::unique_ptr<store::Store> ObjectOrPrefix(std::unique_ptr<store::Store> below,
                                             std::unique_ptr<store::Store> beside,
                                             std::string name);

}  // namespace parallelrun::plan
