// `parallelrun convert`: reads a file of Azure ML with those that it names, and writes the job.
// What it becomes is decided in azure/convert.
#pragma once

#include <string>

namespace parallelrun::cli {

// For the commands that take a job file: what to do when `file` is one of Azure ML. Empty when it
// is none, or cannot be read.
std::string SayConvert(const std::string& file);

// Reads `file`, writes the job to `target` ("": standard output), says on standard error what to
// do. Returns the exit code.
int ConvertFile(const std::string& file, const std::string& target, const std::string& step);

// The same for each parallel step of a pipeline job, into a file of its name in `folder`, which is
// made. Nothing is written when one of them is there already.
int ConvertEachStep(const std::string& file, const std::string& folder);

}  // namespace parallelrun::cli
