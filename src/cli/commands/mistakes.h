// What is said of words that are no command and no flag, with the one that was meant.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): that of CLI11
class App;
class Error;
}  // namespace CLI

namespace parallelrun::cli {

// ": did you mean --input?"; "" where nothing of `known` is like `word`.
std::string Meant(const std::string& word, const std::vector<std::string>& known);

// For CLI11, in place of its own words.
std::string WhatIsWrong(const CLI::App* app, const CLI::Error& error);

}  // namespace parallelrun::cli
