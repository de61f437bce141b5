// What Java and C# give as lists: which tensors a load takes, and by which names.
#pragma once

#include <scaletrain/model.hpp>
#include <string>
#include <vector>

namespace scaletrain {

/// from and into: the two names of each rename.
inline ReadOptions load_options(bool partial, const std::vector<std::string>& from, const std::vector<std::string>& into,
                                const std::vector<std::string>& names) {
  ReadOptions options;
  options.partial = partial;
  for (size_t i = 0; i < from.size() && i < into.size(); ++i) options.renames.push_back({from[i], into[i]});
  options.names = names;
  return options;
}

}  // namespace scaletrain
