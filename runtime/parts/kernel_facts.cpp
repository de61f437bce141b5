#include "parts/kernel_facts.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace st {

std::vector<RankFact> kernel_facts(std::string_view kernels) {
  std::vector<RankFact> facts = {{"kernels", ""}};
  while (!kernels.empty()) {
    const std::string_view word = kernels.substr(0, kernels.find(' '));
    kernels.remove_prefix(std::min(word.size() + 1, kernels.size()));
    if (const size_t equals = word.find('='); equals != word.npos)
      facts.push_back({text("kernels: ", word.substr(0, equals)), std::string(word.substr(equals + 1))});
    else
      facts.front().value.append(facts.front().value.empty() ? "" : " ").append(word);
  }
  return facts;
}

}  // namespace st
