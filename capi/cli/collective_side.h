// One side of a benchmark of collectives: programs whose ranks wait for orders (collective_probe.h), so that rounds of several sides can
// alternate.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collective_probe.h"
#include "scratch_folder.h"

namespace cli {

class CollectiveSide {
 public:
  using Program = std::vector<std::string>;  // and its arguments
  /// `programs` returns what to start, given the folder of the pipes. Together the programs have ranks 0 to `ranks` - 1.
  CollectiveSide(int ranks, const std::function<std::vector<Program>(const std::string& folder)>& programs);
  ~CollectiveSide();
  CollectiveSide(const CollectiveSide&) = delete;
  CollectiveSide& operator=(const CollectiveSide&) = delete;

  /// The times of the slowest rank; nullopt if this side has no such collective. Throws std::runtime_error with the reason if a rank failed
  /// or found a wrong result; the side is unusable afterwards.
  std::optional<CallTimes> measure(Exchange exchange, int64_t elements, int64_t calls, uint64_t seed);

 private:
  void start(const Program& program);
  void end();
  std::string next_answer();
  void look_for_ended() const;
  std::string last_words() const;

  int ranks_;
  ScratchFolder folder_;
  std::vector<int> orders_;  // by rank
  int answers_ = -1;
  std::string read_;  // read from answers_, not yet consumed
  std::vector<pid_t> children_;
  bool has_failed_ = false;
};

}  // namespace cli
