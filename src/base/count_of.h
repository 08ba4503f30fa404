// How many of something there are, in words. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace parallelrun {

// "1 item", "3 items", "2 mini-batches". The plural of `one` ends in "s", or in "es" after "s" or
// "ch".
std::string CountOf(uint64_t count, std::string_view one);

// With the verb that belongs to it: CountOf(1, "item", "has", "have") is "1 item has".
std::string CountOf(uint64_t count, std::string_view one, std::string_view verb_of_one,
                    std::string_view verb_of_many);

}  // namespace parallelrun
