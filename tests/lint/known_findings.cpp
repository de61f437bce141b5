// Two findings that lint must report, in own code and in a template of own code over a class of the standard library: suite_lint refuses a
// plug-in that hides one. No target compiles this file.
#include <string>
#include <utility>

namespace {

template <class T>
size_t twice_as_long(T text) {
  const T moved = std::move(text);
  return text.size() + moved.size();
}

}  // namespace

size_t lengths(std::string text) {
  const std::string moved = std::move(text);
  return text.size() + twice_as_long(moved);
}
