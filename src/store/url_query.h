// What stands behind a `?` in the URL of a store. There is no query in such a URL: a name may hold
// a
// `?`, and in a glob it is any one character. But people copy URLs with a query from consoles and
// other tools, and a version or a signature that is taken for a part of a name finds nothing. Pure.
#pragma once

#include <string>

#include "base/error.h"

namespace parallelrun::store {

// kInvalid with what to write, where a parameter that the store knows stands behind the first `?`:
// a version, which is not read, or a signature, which is a secret. No message has anything of it.
Status CheckQuery(const std::string& url);

}  // namespace parallelrun::store
