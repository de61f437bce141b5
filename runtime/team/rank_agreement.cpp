#include "team/rank_agreement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "base/digest.h"
#include "base/error.h"
#include "base/library_version.h"
#include "base/text.h"
#include "comm/rank_texts.h"
#include "ir/op.h"
#include "parts/kernel_facts.h"

namespace st {
namespace {

constexpr size_t kHex = 32;  // characters of a digest
using Hex = std::array<char, kHex>;

Hex hex_of(const Digest& digest) {
  Hex made;
  std::ranges::copy(digest.hex(), made.begin());
  return made;
}

std::string_view text_of(const Hex& hex) { return {hex.data(), hex.size()}; }

/// Each rank's record, by rank. Records are plain bytes.
template <class Record>
std::vector<Record> gathered(Communicator& ranks, const Record& own, std::string_view label) {
  std::vector<Record> all(static_cast<size_t>(ranks.size()));
  ranks.all_gather(&own, all.data(), ranks.size() * static_cast<int64_t>(sizeof(Record)), DType::u8, label);
  return all;
}

/// Keys that only change speed, or that each rank may choose for itself.
bool is_own_choice(std::string_view key) {
  constexpr std::array<std::string_view, 10> kOwn = {"ranks",      "threads", "tune",           "recompute",      "recompute_budget",
                                                     "trim_every", "offload", "offload_folder", "offload_budget", "overlap"};
  return std::ranges::find(kOwn, key) != kOwn.end();
}

/// Digest of the collectives of a step along the data axis, in order: each op and the elements it covers. A rank's shards are in it as all
/// ranks' cuts.
std::string collectives_of(const Plan& plan) {
  const Program& program = plan.program;
  Digest digest;
  int64_t count = 0;
  const auto add = [&](SlotId id) { digest.update_sized(program.slot(id).name); };
  for (const Instruction& at : plan.instructions) {
    const Node& node = program.sections[static_cast<size_t>(at.section)].graph.nodes[static_cast<size_t>(at.node)];
    if (!at.sends() || axis_of(node) != MeshAxis::data) continue;
    ++count;
    digest.update_sized(name_of(node.op));
    if (node.op == Op::reduce_scatter)
      for (const int64_t parameter : node.attrs.ints("parameters")) add(static_cast<SlotId>(parameter));
    else
      std::ranges::for_each(node.writes, add);
  }
  for (const Slot& slot : program.slots)
    if (slot.role == Role::parameter) digest.update_sized(text(slot.type.shape, " ", text_of(slot.sums), " ", text_of(slot.update)));
  return text(count, ", digest ", digest.hex());
}

std::vector<SlotId> parameters_of(const Program& program) {
  std::vector<SlotId> all;
  for (size_t s = 0; s < program.slots.size(); ++s)
    if (program.slots[s].role == Role::parameter) all.push_back(static_cast<SlotId>(s));
  return all;
}

Hex digest_of(Backend& backend, const Operand& tensor) {
  const int64_t bytes = tensor.elements() * bytes_of(tensor.dtype);
  const int64_t at_a_time = std::min(backend.transfer_bytes(0), bytes);
  std::vector<std::byte> room(static_cast<size_t>(at_a_time));
  Digest digest;
  if (room.empty()) digest.update(std::span(backend.in_host(tensor.data), static_cast<size_t>(bytes)));
  for (int64_t at = 0; at < bytes && !room.empty(); at += at_a_time) {
    const int64_t count = std::min(at_a_time, bytes - at);
    backend.to_host(room.data(), tensor.data + at, count);
    digest.update(std::span(room).first(static_cast<size_t>(count)));
  }
  return hex_of(digest);
}

/// The rank whose digest the fewest have; of two such the later one, since rank 0 is whom others are compared with.
int odd_one(std::span<const Hex> by_rank) {
  const auto like = [&](const Hex& hex) { return std::ranges::count(by_rank, hex); };
  size_t odd = 0;
  for (size_t rank = 1; rank < by_rank.size(); ++rank)
    if (like(by_rank[rank]) <= like(by_rank[odd])) odd = rank;
  return static_cast<int>(odd);
}

/// All ranks know that some parameter differs; now which, and on whom.
[[noreturn]] void name_differing(Communicator& ranks, const Program& program, std::span<const SlotId> parameters,
                                 std::span<const Hex> own) {
  const auto size = static_cast<size_t>(ranks.size());
  const size_t count = own.size();
  std::vector<Hex> all(size * count), by_rank(size);
  ranks.all_gather(own.data(), all.data(), static_cast<int64_t>(all.size() * kHex), DType::u8, "digests of parameters");
  size_t first = count;
  int64_t differ = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto is_like_0 = [&](size_t rank) { return all[rank * count + i] == all[i]; };
    bool is_alike = true;
    for (size_t rank = 1; rank < size; ++rank) is_alike = is_alike && is_like_0(rank);
    if (is_alike) continue;
    ++differ;
    first = std::min(first, i);
  }
  require(first < count, Code::internal, "replica check: digests differ, but no parameter does");
  for (size_t rank = 0; rank < size; ++rank) by_rank[rank] = all[rank * count + first];
  const int odd = odd_one(by_rank), other = odd == 0 ? 1 : 0;
  const std::string& name = program.slot(parameters[first]).name;
  refuse_rank(ranks, odd, name,
              text("replica check: \"", name, "\" has digest ", text_of(by_rank[static_cast<size_t>(odd)]), " on ",
                   text_of_rank(ranks, odd), " and ", text_of(by_rank[static_cast<size_t>(other)]), " on rank ", other, "; ", differ,
                   " of ", count, " parameters differ. Give all ranks the same weights, or resume all from the same checkpoint"));
}

/// Ranks of one machine have devices of different indices.
std::string kind_of_device(const Recipe& recipe) { return text('"', recipe.device.substr(0, recipe.device.find(':')), '"'); }

}  // namespace

Recipe on_ranks(Recipe recipe, int64_t ranks) {
  check(recipe.ranks == 1 || recipe.ranks == ranks, "trainer: the recipe has ranks ", recipe.ranks, ", but the communicator has ", ranks,
        "; leave ranks out of the recipe, or make it equal");
  recipe.ranks = ranks;
  return recipe;
}

std::vector<RankFact> run_facts(const Recipe& recipe, const RunIdentity& run, const Plan& plan) {
  std::vector<RankFact> facts = {{"library version", std::string(library_version())}};
  std::ranges::move(kernel_facts(run.kernels), std::back_inserter(facts));
  for (const RecipeKey& key : recipe_keys())
    if (!is_own_choice(key.name)) facts.push_back({key.name, key.name == "device" ? kind_of_device(recipe) : recipe.get(key.name)});
  facts.push_back({"micro-batches of a step", text(run.micro_batches)});
  facts.push_back({"parameters", text(parameters_of(plan.program).size())});
  facts.push_back({"graph, by digest", run.graph});
  facts.push_back({"rows of data", text(run.rows)});
  std::string fields;
  for (const std::string& field : run.fields) fields += text(fields.empty() ? "" : ", ", field);
  facts.push_back({"fields of data", fields});
  facts.push_back({"data, by digest", run.data});
  if (plan.program.mesh.stage == 1 && plan.program.mesh.tensor == 1) facts.push_back(collective_facts(plan).front());
  return facts;
}

std::vector<RankFact> collective_facts(const Plan& plan) { return {{"collectives of a step", collectives_of(plan)}}; }

void require_agreement_along_data(Communicator& ranks, const Mesh& mesh, std::span<const RankFact> facts) {
  require_agreement(ranks, facts, "trainer", [&](int rank) { return color_along(mesh, MeshAxis::data, rank); });
}

void require_replicas(Communicator& ranks, const Executor& executor, Backend& backend) {
  const Program& program = executor.plan().program;
  std::vector<SlotId> parameters = parameters_of(program);
  std::erase_if(parameters, [&](SlotId id) { return program.slot(id).type.layout.is_flat(); });  // in pieces: one each
  std::vector<Hex> own;
  Digest together;
  for (const SlotId parameter : parameters) {
    own.push_back(digest_of(backend, executor.slot(parameter)));
    together.update(text_of(own.back()));
  }
  const std::vector<Hex> all = gathered(ranks, hex_of(together), "replica check");
  if (std::ranges::any_of(all, [&](const Hex& other) { return other != all[0]; })) name_differing(ranks, program, parameters, own);
}

std::optional<std::vector<RegionId>> recomputed_by_all(Communicator& ranks, const Recipe& recipe, PlanOptions options,
                                                       const std::function<Plan(const PlanOptions&)>& plan) {
  if (recipe.recompute != "auto") return std::nullopt;
  const std::vector<int64_t> memory = gathered(ranks, options.memory, "memory of all");
  const auto least = std::ranges::min_element(memory);
  options.memory = *least;
  std::string told;
  try {
    if (ranks.rank() == 0)
      for (const RecomputedScope& scope : plan(options).recompute.scopes) told += text(scope.region, '\0');
  } catch (const Error& refusal) {
    if (refusal.code() != Code::out_of_memory) throw;
    Error error(refusal.code(), text(refusal.message(), ". The rank with the least memory is ",
                                     text_of_rank(ranks, static_cast<int>(least - memory.begin())), ", which has ", text_of_bytes(*least)));
    error.place = refusal.place;
    throw error;
  }
  std::string first = gather_texts(ranks, told, "recomputed scopes").front();
  std::vector<RegionId> scopes;
  for (std::string_view rest = first; !rest.empty();) scopes.push_back(static_cast<RegionId>(std::stol(take_text(rest))));
  return scopes;
}

}  // namespace st
