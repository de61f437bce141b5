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

/// Where `part` begins in the name, as a whole component; npos: nowhere.
size_t find_part(std::string_view name, std::string_view part) {
  size_t at = name.find(part);
  while (at != std::string_view::npos && at > 0 && name[at - 1] != '.') at = name.find(part, at + 1);
  return at;
}

/// Whether GPT-2's library stores this in addition to the weights.
bool is_copy(std::string_view name) {
  return name == "lm_head.weight" || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

}  // namespace

std::string by_rename(std::string_view name, std::string_view from, std::string_view to) {
  const size_t star = from.find('*');
  if (star == std::string_view::npos) return name == from ? std::string(to) : "";
  const std::string_view start = from.substr(0, star), end = from.substr(star + 1);
  if (name.size() < start.size() + end.size() || !name.starts_with(start) || !name.ends_with(end)) return "";
  const std::string_view middle = name.substr(start.size(), name.size() - start.size() - end.size());
  return std::string(to).replace(to.find('*'), 1, middle);
}

NameMap::NameMap(const std::string& map) : name_(map) {
  if (!map.empty() && map != "gpt2") refuse("--map is \"", map, "\"; it must be gpt2 or llama, the names of Hugging Face's");
}

NameMap NameMap::of(const std::vector<StoredTensor>& tensors) {
  const auto is_gpt2s = [](const StoredTensor& t) { return t.name == "wte.weight" || t.name.ends_with(".wte.weight"); };
  return NameMap(std::ranges::any_of(tensors, is_gpt2s) ? "gpt2" : "");
}

std::string NameMap::unwrap(std::vector<StoredTensor>& weights) {
  std::string stripped;
  const auto note = [&](std::string_view prefix) { stripped.append(stripped.empty() ? "" : ", ").append(prefix); };
  const auto unwrap_all = [&] {
    for (StoredTensor& weight : weights) weight.name = unwrapped(std::move(weight.name));
  };
  for (const std::string_view wrapper : kWrappers)
    if (std::ranges::any_of(weights, [&](const StoredTensor& w) { return find_part(w.name, wrapper) != std::string::npos; })) note(wrapper);
  unwrap_all();
  const bool is_parallel = std::ranges::all_of(weights, [](const StoredTensor& w) { return w.name.starts_with(kParallelPrefix); });
  if (is_parallel && !weights.empty()) note(prefix_ = kParallelPrefix);
  unwrap_all();
  if (const std::string prefix = shared_prefix(weights); !prefix.empty()) {
    for (StoredTensor& weight : weights) weight.name.erase(0, prefix.size());
    prefix_ += prefix;
    note(prefix);
  }
  return stripped;
}

std::string NameMap::unwrapped(std::string name) const {
  for (const std::string_view wrapper : kWrappers)
    for (size_t at = 0; (at = find_part(name, wrapper)) != std::string::npos;) name.erase(at, wrapper.size());
  return name.starts_with(prefix_) ? name.substr(prefix_.size()) : name;
}

bool NameMap::knows(std::string_view name) const {
  if (is_any() && is_copy(name)) return true;
  return std::ranges::any_of(st_gpt2_names,
                             [&](const st_rename& row) { return !by_rename(name, is_any() ? row.from : row.to, "*").empty(); });
}

std::string NameMap::shared_prefix(const std::vector<StoredTensor>& weights) const {
  const std::string first = weights.empty() ? "" : weights.front().name;
  for (size_t end = 0;;) {
    const std::string_view prefix = std::string_view(first).substr(0, end);
    const auto fits = [&](const StoredTensor& w) { return w.name.starts_with(prefix) && knows(std::string_view(w.name).substr(end)); };
    if (std::ranges::all_of(weights, fits)) return std::string(prefix);
    if ((end = first.find('.', end)) == std::string::npos) return "";
    ++end;
  }
}

std::string NameMap::ours(const std::string& wrapped) const {
  std::string theirs = unwrapped(wrapped);
  if (!is_any()) return theirs;
  for (const auto& [from, to] : st_gpt2_names)
    if (std::string name = by_rename(theirs, from, to); !name.empty()) return name;
  refuse("--map gpt2: GPT-2 has no weight \"", theirs, "\"; save only the state_dict() of the network");
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
  std::erase_if(tensors, [](const StoredTensor& t) { return is_copy(t.name); });
}

}  // namespace cli
