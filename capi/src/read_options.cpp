#include "read_options.h"

namespace st::capi {
namespace {

/// Checks the length of a host's list.
void check_list(int64_t count, const void* list, const char* what, const char* call) {
  constexpr int64_t kMost = 1 << 20;
  check(count >= 0 && count <= kMost, call, ": options has ", count, " ", what, "; it must be 0 to ", kMost);
  check(count == 0 || list != nullptr, call, ": options has ", count, " ", what, " at NULL");
}

}  // namespace

ReadOptions read_options(const st_read_options* theirs, const char* call) {
  ReadOptions ours;
  if (theirs == nullptr) return ours;
  const st_read_options taken = take(theirs, text(call, ": options").c_str());
  check_list(taken.rename_count, taken.renames, "renames", call);
  check_list(taken.name_count, taken.names, "names", call);
  ours.partial = taken.partial != 0;
  for (int64_t i = 0; i < taken.rename_count; ++i)
    ours.renames.push_back({text_given(taken.renames[i].from, text(call, ": a rename's from").c_str()),
                            text_given(taken.renames[i].to, text(call, ": a rename's to").c_str())});
  for (int64_t i = 0; i < taken.name_count; ++i)
    ours.names.push_back(text_given(taken.names[i], text(call, ": a name of the options").c_str()));
  return ours;
}

}  // namespace st::capi
