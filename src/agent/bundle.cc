#include "agent/bundle.h"

#include <filesystem>

namespace parallelrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr char kPart[] = ".parallelrun-part";  // of a file that is not whole yet

Status Failed(const std::error_code& error, const std::string& what) {
  if (!error) return {};
  return ErrnoError(error.value(), what);
}

Status InstallEntry(const fs::directory_entry& entry, const fs::path& to) {
  std::error_code error;
  const fs::file_status status = entry.symlink_status(error);
  if (error) return Failed(error, "look at " + entry.path().native());
  if (fs::is_directory(status)) {
    fs::create_directories(to, error);
    return Failed(error, "make the folder " + to.native());
  }
  const fs::path part = to.native() + kPart;
  fs::remove(part, error);
  if (fs::is_symlink(status)) {
    const fs::path target = fs::read_symlink(entry.path(), error);
    if (!error) fs::create_symlink(target, part, error);
  } else if (fs::is_regular_file(status)) {
    fs::copy_file(entry.path(), part, error);
    if (!error) fs::permissions(part, status.permissions() & fs::perms::all, error);
  } else {
    return Error{Code::kInvalid, entry.path().native() + " is neither a file nor a folder"};
  }
  if (!error) fs::rename(part, to, error);
  return Failed(error, "copy " + entry.path().native() + " to " + to.native());
}

}  // namespace

Result<std::string> OwnBundle() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoError(error.value(), "read /proc/self/exe");
  const fs::path bundle = program.parent_path().parent_path();
  if (!fs::exists(bundle / "bin" / "parallelrun-agent", error)) {
    return Error{Code::kNotFound,
                 "there is no bundle around " + program.native() + ": name its folder with --from"};
  }
  return bundle.native();
}

Status InstallBundle(const std::string& bundle, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Failed(error, "make the folder " + folder);
  fs::recursive_directory_iterator it(bundle, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const fs::path relative = it->path().lexically_relative(bundle);
    if (Status copied = InstallEntry(*it, folder / relative); !copied.ok()) return copied;
  }
  return Failed(error, "read the bundle " + bundle);
}

}  // namespace parallelrun::agent
