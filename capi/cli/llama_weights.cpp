#include "llama_weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "failure.h"
#include "name_map.h"
#include "safetensors_file.h"

namespace cli {
namespace {

constexpr std::string_view kBase = "model.",  // LlamaForCausalLM's name of its LlamaModel
    kHead = "lm_head.weight", kJoinedName = "qkv.weight";

struct LlamaName {
  const char *theirs, *ours;
  bool is_product;  // stored [outputs, inputs]
};
constexpr LlamaName kLlamaNames[] = {{"embed_tokens.weight", "token_embedding.weight", false},
                                     {"layers.*.input_layernorm.weight", "block.*.attention_norm.gamma", false},
                                     {"layers.*.self_attn.qkv.weight", "block.*.attention.qkv.weight", true},  // joined
                                     {"layers.*.self_attn.o_proj.weight", "block.*.attention.projection.weight", true},
                                     {"layers.*.post_attention_layernorm.weight", "block.*.mlp_norm.gamma", false},
                                     {"layers.*.mlp.gate_proj.weight", "block.*.mlp.gate.weight", true},
                                     {"layers.*.mlp.up_proj.weight", "block.*.mlp.up.weight", true},
                                     {"layers.*.mlp.down_proj.weight", "block.*.mlp.down.weight", true},
                                     {"norm.weight", "final_norm.gamma", false},
                                     {"lm_head.weight", "head.weight", true}};
constexpr std::array<std::string_view, 3> kJoined = {"q_proj.weight", "k_proj.weight", "v_proj.weight"};

bool is_row_major(const StoredTensor& tensor) {
  int64_t stride = 1;
  for (size_t d = tensor.strides.size(); d-- > 0; stride *= tensor.dims[d])
    if (tensor.dims[d] > 1 && tensor.strides[d] != stride) return false;
  return true;
}

/// [q + k + v, inputs].
StoredTensor joined(const std::string& name, const std::array<const StoredTensor*, 3>& parts, std::deque<std::string>& made) {
  StoredTensor all{.name = name, .dtype = parts[0]->dtype, .dims = {0, parts[0]->dims.back()}, .strides = {}, .bytes = {}};
  std::string& bytes = made.emplace_back();
  for (const StoredTensor* part : parts) {
    if (part->dtype != all.dtype || part->dims.size() != 2 || part->dims[1] != all.dims[1] || !is_row_major(*part))
      refuse(part->name, " cannot be joined with ", parts[0]->name, "; they must be matrices of one dtype and width");
    all.dims[0] += part->dims[0];
    bytes += part->bytes.substr(0, static_cast<size_t>(part->elements() * size_of(part->dtype)));
  }
  all.bytes = bytes;
  return all;
}

void join_projections(std::vector<StoredTensor>& weights, std::deque<std::string>& made) {
  std::map<std::string, std::array<const StoredTensor*, 3>> found;  // by the name before "q_proj.weight"
  for (const StoredTensor& weight : weights)
    for (size_t i = 0; i < kJoined.size(); ++i)
      if (weight.name.ends_with(kJoined[i]) && !weight.dims.empty())
        found[weight.name.substr(0, weight.name.size() - kJoined[i].size())][i] = &weight;
  std::vector<StoredTensor> all;
  std::set<std::string> gone;
  for (const auto& [prefix, parts] : found) {
    if (std::ranges::find(parts, nullptr) != parts.end()) continue;
    all.push_back(joined(prefix + "qkv.weight", parts, made));
    for (const StoredTensor* part : parts) gone.insert(part->name);
  }
  std::erase_if(weights, [&](const StoredTensor& weight) { return gone.contains(weight.name); });
  weights.insert(weights.end(), std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()));
}

void transpose(StoredTensor& tensor) {
  if (tensor.dims.size() != 2) return;
  if (tensor.strides.empty()) tensor.strides = {tensor.dims[1], 1};
  std::swap(tensor.dims[0], tensor.dims[1]);
  std::swap(tensor.strides[0], tensor.strides[1]);
}

/// [rows, columns] of a row-major [columns, rows], of which the first row is `first`.
std::string transposed(const StoredTensor& tensor, int64_t first, int64_t rows) {
  constexpr int64_t kTile = 32;  // both sides of a tile stay in the cache
  const int64_t columns = tensor.dims[0], all = tensor.dims[1], width = size_of(tensor.dtype);
  std::string bytes(static_cast<size_t>(rows * columns * width), '\0');
  for (int64_t top = 0; top < rows; top += kTile)
    for (int64_t left = 0; left < columns; left += kTile)
      for (int64_t row = top; row < std::min(rows, top + kTile); ++row)
        for (int64_t column = left; column < std::min(columns, left + kTile); ++column)
          std::memcpy(bytes.data() + (row * columns + column) * width, tensor.bytes.data() + (column * all + first + row) * width,
                      static_cast<size_t>(width));
  return bytes;
}

std::string without_base(const std::string& name) { return name.starts_with(kBase) ? name.substr(kBase.size()) : name; }

void drop_copies(std::vector<StoredTensor>& weights) {
  const auto named = [&](std::string_view name) {
    return std::ranges::find_if(weights, [&](const StoredTensor& weight) { return without_base(weight.name) == name; });
  };
  const auto head = named("lm_head.weight"), embedding = named("embed_tokens.weight");
  const bool is_copy =
      head != weights.end() && embedding != weights.end() && head->bytes == embedding->bytes && head->dims == embedding->dims;
  if (is_copy) weights.erase(head);
  std::erase_if(weights, [](const StoredTensor& weight) { return weight.name.ends_with(".rotary_emb.inv_freq"); });
}

}  // namespace

bool is_llama(const std::vector<StoredTensor>& weights) {
  return std::ranges::any_of(weights, [](const StoredTensor& weight) { return without_base(weight.name) == "embed_tokens.weight"; });
}

void take_llama(std::vector<StoredTensor>& weights, std::deque<std::string>& made) {
  drop_copies(weights);
  join_projections(weights, made);
  for (StoredTensor& weight : weights)
    for (const auto& [theirs, ours, is_product] : kLlamaNames) {
      const std::string name = by_rename(without_base(weight.name), theirs, ours);
      if (name.empty()) continue;
      weight.name = name;
      if (is_product) transpose(weight);
      break;
    }
}

void import_llama(const std::string& path, std::vector<StoredTensor>& weights, std::deque<std::string>& made) {
  if (!is_llama(weights)) refuse("--map llama: ", path, " has no embed_tokens.weight, so it is not a Llama of Hugging Face");
  take_llama(weights, made);
  for (const StoredTensor& weight : weights) {
    if (std::ranges::any_of(kLlamaNames, [&](const LlamaName& row) { return !by_rename(weight.name, row.ours, "*").empty(); })) continue;
    if (std::ranges::any_of(kJoined, [&](std::string_view part) { return weight.name.ends_with(part); }))
      refuse("--map llama: ", path, " has ", weight.name, " without the other two of q_proj, k_proj and v_proj, which are one weight here");
    refuse("--map llama: Llama has no weight \"", weight.name, "\"; save only the state_dict() of the network");
  }
}

void export_llama(std::vector<StoredTensor>& weights, std::deque<std::string>& made) {
  std::vector<StoredTensor> all;
  for (StoredTensor& weight : weights) {
    const auto* const row =
        std::ranges::find_if(kLlamaNames, [&](const LlamaName& each) { return !by_rename(weight.name, each.ours, "*").empty(); });
    if (row == std::end(kLlamaNames)) refuse("--map llama: Llama has no weight for \"", weight.name, "\"");
    const std::string name = (row->theirs == kHead ? "" : std::string(kBase)) + by_rename(weight.name, row->ours, row->theirs);
    if (!row->is_product) {
      weight.name = name;
      all.push_back(std::move(weight));
      continue;
    }
    const bool is_joined = name.ends_with(kJoinedName), is_matrix = weight.dims.size() == 2;
    const int64_t inputs = is_matrix ? weight.dims[0] : 0, outputs = is_matrix ? weight.dims[1] : 0;
    if (!is_matrix || (is_joined && (outputs <= inputs || (outputs - inputs) % 2 != 0)))
      refuse("--map llama: ", weight.name, is_joined ? " is not [width, width + 2 x width of the keys]" : " is not a matrix",
             "; the checkpoint must be one of the model llama");
    const auto add = [&](const std::string& to, int64_t first, int64_t rows) {
      const std::string& bytes = made.emplace_back(transposed(weight, first, rows));
      all.push_back({.name = to, .dtype = weight.dtype, .dims = {rows, inputs}, .strides = {}, .bytes = bytes});
    };
    if (!is_joined) {
      add(name, 0, outputs);
      continue;
    }
    const std::string prefix = name.substr(0, name.size() - kJoinedName.size());
    const int64_t keys = (outputs - inputs) / 2;  // queries are as wide as the model
    const std::array<int64_t, 4> begins = {0, inputs, inputs + keys, outputs};
    for (size_t i = 0; i < kJoined.size(); ++i) add(prefix + std::string(kJoined[i]), begins[i], begins[i + 1] - begins[i]);
  }
  weights = std::move(all);
}

}  // namespace cli
