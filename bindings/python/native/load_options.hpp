// Which tensors a load takes, and by which names: what Python's keyword arguments say.
#pragma once

#include <scaletrain/model.hpp>
#include <string>
#include <vector>

namespace scaletrain::python {

/// from[i] is renamed to[i].
inline ReadOptions load_options(bool partial, const std::vector<std::string>& from, const std::vector<std::string>& to,
                                const std::vector<std::string>& names) {
  ReadOptions options;
  options.partial = partial;
  for (size_t i = 0; i < from.size() && i < to.size(); ++i) options.renames.push_back({from[i], to[i]});
  options.names = names;
  return options;
}

}  // namespace scaletrain::python
