#include "output_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "failure.h"
#include "new_file.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

/// Whether a file at `path` would be read as part of the data folder `folder`, by the rules of TokenSource (runtime/data/tokens.h): every
/// file below the folder, except hidden names and folders named build.
bool is_read_from(const fs::path& folder, const fs::path& path) {
  const fs::path below = path.lexically_relative(folder);
  if (below == ".") return true;
  if (below.empty() || *below.begin() == "..") return false;
  for (auto name = below.begin(); name != below.end(); ++name) {
    const bool is_folder = std::next(name) != below.end();
    if (name->string().starts_with('.') || (is_folder && *name == "build")) return false;
  }
  return true;
}

/// Opens an existing file; creates and removes a missing one. So names that are too long and read-only folders are found now. A pipe is
/// skipped, since opening it would wait for its reader. Other ranks of a launch may try the same name at the same time.
void check_writable(const std::string& option, const std::string& path) {
  const std::string file = file_reached_by(path);
  std::error_code ignored;
  const bool is_there = fs::exists(path, ignored);
  int reason = 0;
  if (is_there && access(path.c_str(), W_OK) != 0 && errno != ENOENT) reason = errno;
  if (!is_there) {
    const int made = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (made < 0 && errno != EEXIST) reason = errno;
    if (made >= 0) close(made);
    if (made >= 0) unlink(file.c_str());
  }
  if (reason != 0) refuse(option, ": cannot write ", path, ": ", std::strerror(reason));
}

}  // namespace

void check_outside_data(const std::string& option, const std::string& path, const std::string& data) {
  const fs::path asked = path;
  std::error_code failed;
  if (!fs::is_directory(data, failed)) return;
  const fs::path folder = fs::canonical(data, failed);
  // A link in the folder to a file elsewhere is read, and so is a file in the folder that is written through a link from elsewhere.
  const fs::path named = fs::weakly_canonical(fs::absolute(asked).parent_path(), failed) / asked.filename();
  const fs::path written = fs::weakly_canonical(asked, failed);
  if (is_read_from(folder, named) || is_read_from(folder, written))
    refuse(option, ": ", path, " is in the data folder ", data,
           ", so the next run would train on it; name a file outside, or below a folder named build");
}

void check_output(const std::string& option, const std::string& path, const std::string& data) {
  if (path.empty()) return;
  std::error_code ignored;
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (fs::is_directory(path, ignored)) refuse(option, ": ", path, " is a folder; name a file");
  if (!fs::is_directory(folder, ignored)) refuse(option, ": no such folder: ", folder.string());
  if (fs::exists(path, ignored) && fs::equivalent(path, data, ignored)) refuse(option, ": ", path, " is the data; name another file");
  check_outside_data(option, path, data);
  check_writable(option, path);
}

}  // namespace cli
