#include "recipe/memory_fixes.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/text.h"

namespace st {
namespace {

bool keeps_mesh(const KeyChanges& changes) {
  return std::ranges::none_of(changes, [](const KeyChange& of) { return of.key == "tensor" || of.key == "stages"; });
}

int64_t rows_of(const Recipe& recipe) { return recipe.batch * recipe.step_micro_batches(); }

class FixSearch {
 public:
  FixSearch(int64_t bytes, int64_t there, const std::function<int64_t(const Recipe&)>& bytes_with)
      : bytes_(bytes), there_(there), bytes_with_(bytes_with) {}

  /// Each change of `from` that saves memory; `keys`: those to try, by the first key that they change, empty: all.
  std::vector<MemoryFix> singles(const Recipe& from, const KeyChanges& before, std::span<const std::string> keys = {}) const {
    std::vector<MemoryFix> fixes;
    for (const KeyChanges& changes : changes_to_try(from)) {
      if (!keeps_mesh(changes)) continue;
      if (!keys.empty() && (std::ranges::find(keys, changes.front().key) == keys.end() || changes_numbers(changes))) continue;
      if (auto fix = tried(from, changes, before)) fixes.push_back(std::move(*fix));
    }
    return fixes;
  }

  /// Adds the change that saves most to the one that does among `all`, until it fits or nothing saves more. Of keys whose change alone
  /// saves little, none is tried again.
  std::optional<MemoryFix> combination(const Recipe& recipe, const std::vector<MemoryFix>& all) const {
    constexpr int kMostChanges = 12;
    std::vector<std::string> keys;
    for (const MemoryFix& fix : all)
      if (fix.saved > bytes_ / 50 && !changes_numbers(fix.changes)) keys.push_back(fix.changes.front().key);
    std::optional<MemoryFix> best = smallest(all);
    for (int count = 1; best && !keys.empty() && !best->fits && count < kMostChanges; ++count) {
      Recipe changed = recipe;
      for (const KeyChange& of : best->changes) changed.set(of.key, of.value);
      auto next = smallest(singles(changed, best->changes, keys));
      if (!next || next->bytes >= best->bytes) break;
      best = std::move(next);
    }
    return best;
  }

 private:
  /// That keeps what a step computes.
  static std::optional<MemoryFix> smallest(std::vector<MemoryFix> fixes) {
    std::erase_if(fixes, [](const MemoryFix& fix) { return changes_numbers(fix.changes); });
    const auto least = std::ranges::min_element(fixes, {}, &MemoryFix::bytes);
    if (least == fixes.end()) return std::nullopt;
    return std::move(*least);
  }

  std::optional<MemoryFix> tried(const Recipe& from, const KeyChanges& changes, const KeyChanges& before) const {
    MemoryFix fix{.changes = before};
    try {
      Recipe changed = from;
      for (const KeyChange& of : changes) changed.set(of.key, of.value);
      fix.bytes = bytes_with_(changed);
      if (rows_of(changed) != rows_of(from)) return std::nullopt;
    } catch (const std::exception&) {
      return std::nullopt;
    }
    add_changes(fix.changes, changes);
    fix.saved = bytes_ - fix.bytes;
    fix.fits = fix.bytes <= there_;
    if (fix.saved <= 0) return std::nullopt;
    return fix;
  }

  const int64_t bytes_, there_;
  const std::function<int64_t(const Recipe&)>& bytes_with_;
};

}  // namespace

std::vector<MemoryFix> memory_fixes(const Recipe& recipe, int64_t bytes, int64_t there,
                                    const std::function<int64_t(const Recipe&)>& bytes_with, size_t most) {
  constexpr int64_t kMostTimes = 64;  // the changes together hardly save more than that
  if (there <= bytes / kMostTimes) return {};
  const FixSearch search(bytes, there, bytes_with);
  const std::vector<MemoryFix> all = search.singles(recipe, {});
  std::vector<MemoryFix> fits;
  std::ranges::copy_if(all, std::back_inserter(fits), &MemoryFix::fits);
  std::ranges::stable_sort(fits, {}, [](const MemoryFix& fix) { return changes_numbers(fix.changes); });
  if (fits.empty() || changes_numbers(fits.front().changes)) {
    auto combined = search.combination(recipe, all);
    if (combined && (combined->fits || fits.empty())) fits.insert(fits.begin(), std::move(*combined));
  }
  if (fits.size() > most) fits.resize(most);
  return fits;
}

std::string text_of(const std::vector<MemoryFix>& fixes, int64_t there) {
  if (fixes.empty()) return "";
  std::string out = fixes.front().fits ? ". Changes of the recipe that fit: " : ". The change of the recipe that comes nearest: ";
  for (const MemoryFix& fix : fixes) {
    if (&fix != &fixes.front()) out += "; ";
    out += text(text_of(fix.changes), ": -", text_of_bytes(fix.saved), changes_numbers(fix.changes) ? " (another training result)" : "");
    if (!fix.fits) out += text(", ", text_of_bytes(fix.bytes - there), " too much");
  }
  return out + ". `scaletrain plan` and st_plan_create also say what they cost in time";
}

}  // namespace st
