// The report of a load to the host: an st_load_report whose texts the checkpoint's handle owns.
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

  /// Fills the host's struct unless it is NULL. The texts stay valid until this object is changed or moved.
  void give(st_load_report* theirs);

 private:
  std::vector<const char*> texts_;  // of the four lists, concatenated
};

}  // namespace st::capi
