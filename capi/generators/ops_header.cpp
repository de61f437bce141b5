// Writes the typed wrappers from the rows of ops.def: scaletrain/ops.h (C), scaletrain/ops.hpp (C++), ops.py, Ops.java or Ops.cs, chosen by
// the path's ending. Run it with the file's path after a row has changed. With --check it writes nothing and fails if the file is not up to
// date.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "base/error.h"
#include "op_wrappers.h"

using namespace st;
using namespace st::capi;

namespace {

std::string wrappers_of(const std::string& path) {
  if (path.ends_with(".hpp")) return cpp_wrappers();
  if (path.ends_with(".py")) return python_wrappers();
  if (path.ends_with(".java")) return java_wrappers();
  if (path.ends_with(".cs")) return csharp_wrappers();
  return c_wrappers();
}

int run(const std::string& path, bool check_only) {
  const std::string made = wrappers_of(path);
  if (!check_only) return (std::ofstream(path, std::ios::binary) << made).flush() ? 0 : 1;
  std::stringstream there;
  there << std::ifstream(path, std::ios::binary).rdbuf();
  if (there.str() == made) return 0;
  std::fprintf(stderr, "%s does not match the rows of ops.def; run ops_header %s\n", path.c_str(), path.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool check_only = argc == 3 && std::string_view(argv[1]) == "--check";
  if (argc != 2 && !check_only) {
    std::fprintf(stderr, "usage: ops_header [--check] PATH\n");
    return 2;
  }
  try {
    return run(argv[argc - 1], check_only);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
