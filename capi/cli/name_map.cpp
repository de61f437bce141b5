#include "name_map.h"

#include <scaletrain/gpt2_names.h>

#include <algorithm>
#include <utility>

#include "failure.h"

namespace cli {
namespace {

// Prefixes that torch.compile, FSDP and activation checkpointing add to names. DistributedDataParallel's prefix may also be a module's own
// name, so it counts only if all weights have it.
constexpr std::string_view kWrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."},
                           kParallelPrefix = "module.";

/// `name` after the rename, "" if the pattern does not fit.
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
  if (!map.empty() && map != "gpt2") refuse("--map is \"", map, "\"; it must be gpt2, the names of Hugging Face's GPT-2");
}

NameMap NameMap::of(const std::vector<StoredTensor>& tensors) {
  const auto is_gpt2s = [](const StoredTensor& t) { return t.name == "wte.weight" || t.name == "transformer.wte.weight"; };
  return NameMap(std::ranges::any_of(tensors, is_gpt2s) ? "gpt2" : "");
}

bool NameMap::unwrap(std::vector<StoredTensor>& weights) {
  bool is_wrapped = false;
  const auto unwrap_all = [&] {
    for (StoredTensor& weight : weights) {
      std::string name = unwrapped(weight.name);
      is_wrapped = is_wrapped || name != weight.name;
      weight.name = std::move(name);
    }
  };
  unwrap_all();
  has_module_ = std::ranges::all_of(weights, [](const StoredTensor& weight) { return weight.name.starts_with(kParallelPrefix); });
  unwrap_all();
  return is_wrapped;
}

std::string NameMap::unwrapped(std::string name) const {
  for (const std::string_view wrapper : kWrappers)
    for (size_t at = 0; (at = name.find(wrapper, at)) != std::string::npos;) {
      if (at == 0 || name[at - 1] == '.')
        name.erase(at, wrapper.size());
      else
        ++at;
    }
  return has_module_ && name.starts_with(kParallelPrefix) ? name.substr(kParallelPrefix.size()) : name;
}

std::string NameMap::ours(const std::string& wrapped) const {
  std::string theirs = unwrapped(wrapped);
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
    refuse(
        "--map gpt2: lm_head.weight differs from wte.weight; the model gpt uses its embedding as its head, so a separate head cannot be "
        "kept");
  std::erase_if(tensors, [](const StoredTensor& t) {
    return t.name == "lm_head.weight" || t.name.ends_with(".attn.bias") || t.name.ends_with(".attn.masked_bias");
  });
}

}  // namespace cli
