// A name for a job that nobody has named. Pure.
#pragma once

#include <string>

namespace parallelrun::api {

// Made of the script's name: lower case letters, digits and dashes.
std::string JobNameOf(const std::string& script);

}  // namespace parallelrun::api
