#include "name_map.h"

#include <scaletrain/gpt2_names.h>

#include <algorithm>

#include "failure.h"

namespace cli {
namespace {

/// `name` by the rename, "" where it does not fit.
std::string by_rename(std::string_view name, std::string_view from, std::string_view to) {
  const size_t star = from.find('*');
  if (star == std::string_view::npos) return name == from ? std::string(to) : "";
  const std::string_view start = from.substr(0, star), end = from.substr(star + 1);
  if (name.size() < start.size() + end.size() || !name.starts_with(start) || !name.ends_with(end)) return "";
  const std::string_view middle = name.substr(start.size(), name.size() - start.size() - end.size());
  return std::string(to).replace(to.find('*'), 1, middle);
}

}  // namespace

NameMap::NameMap(const std::string& map) : name_(map) {
  if (!map.empty() && map != "gpt2") refuse("--map is \"", map, "\"; there is: gpt2, the names of Hugging Face's GPT-2");
}

std::string NameMap::ours(const std::string& theirs) const {
  if (!is_any()) return theirs;
  for (const auto& [from, to] : st_gpt2_names)
    if (std::string name = by_rename(theirs, from, to); !name.empty()) return name;
  refuse("--map gpt2: GPT-2 has no weight \"", theirs, "\"");
}

std::string NameMap::theirs(const std::string& ours) const {
  if (!is_any()) return ours;
  for (const auto& [from, to] : st_gpt2_names)
    if (std::string name = by_rename(ours, to, from); !name.empty()) return name;
  refuse("--map gpt2: GPT-2 has no weight for \"", ours, "\"");
}

void NameMap::drop_copies(std::vector<StoredTensor>& tensors) const {
  if (!is_any()) return;
  const auto named = [&](std::string_view end) {
    return std::ranges::find_if(tensors, [&](const StoredTensor& t) { return t.name.ends_with(end); });
  };
  const auto head = named("lm_head.weight"), embedding = named("wte.weight");
  if (head != tensors.end() && (embedding == tensors.end() || head->bytes != embedding->bytes || head->dims != embedding->dims))
    refuse("--map gpt2: lm_head.weight is not wte.weight; the head of the model gpt is its embedding, so this one cannot be kept");
  std::erase_if(tensors, [](const StoredTensor& t) {
    return t.name == "lm_head.weight" || t.name.ends_with(".attn.bias") || t.name.ends_with(".attn.masked_bias");
  });
}

}  // namespace cli
