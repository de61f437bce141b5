// What a load tells the host: st_load_report, whose texts the checkpoint's handle keeps.
#pragma once

#include <scaletrain/checkpoint.h>

#include <cstdint>
#include <string>
#include <vector>

namespace st::capi {

class LoadReport {
 public:
  int64_t step = -1, read = 0;
  std::string name, metadata = "{}";
  std::vector<std::string> missing, unexpected, skipped, changed;

  /// Fills the host's, unless it is NULL. Its texts are of this object, as long as that is neither changed nor moved.
  void give(st_load_report* theirs);

 private:
  std::vector<const char*> texts_;  // of the four lists, one behind the other
};

}  // namespace st::capi
