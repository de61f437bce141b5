// Which topologies go on from what another one saved.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace st {

/// The topologies, of `count`, that resume the checkpoint of number `from`: the next one, so that each saves and each resumes. With
/// ST_LONG_TRIALS: all.
inline std::vector<size_t> resumed_by(size_t from, size_t count) {
  if (std::getenv("ST_LONG_TRIALS") == nullptr) return {(from + 1) % count};
  std::vector<size_t> all;
  for (size_t to = 0; to < count; ++to) all.push_back(to);
  return all;
}

}  // namespace st
