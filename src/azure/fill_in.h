// What `parallelrun convert` cannot know stands in its job files as a placeholder that is marked
// FILL IN; as values, so that they are found again whatever becomes of the comments. Pure.
#pragma once

#include <string_view>

#include "api/node.h"
#include "api/problem.h"

namespace parallelrun::azure {

inline constexpr char kFillIn[] = "FILL_IN";  // also as a word of a text
inline constexpr char kFillInScript[] = "FILL_IN.py";
inline constexpr char kFillInImage[] = "registry.example/fill-in:1";
inline constexpr std::string_view kFillInClaim = "fill-in-";  // and the volume's name

// Whether `text` has kFillIn as a word of its own: "--to=FILL_IN/x", and not FILL_INSIDE.
bool IsOpen(std::string_view text);

// An error for each placeholder that is left in a job file, in the file's order.
api::Problems FindFillIns(const api::Node& job);

}  // namespace parallelrun::azure
