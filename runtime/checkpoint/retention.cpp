#include "checkpoint/retention.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/json.h"

namespace st {
namespace {

using Checkpoints = std::vector<RetainedCheckpoint>;

bool has_metric(const RetainedCheckpoint& checkpoint) { return checkpoint.metric && !std::isnan(*checkpoint.metric); }

/// Indices in `checkpoints` of the best ones.
std::vector<size_t> best_of(const Retention& retention, const Checkpoints& checkpoints) {
  std::vector<size_t> places;
  for (size_t i = 0; i < checkpoints.size(); ++i)
    if (checkpoints[i].valid && has_metric(checkpoints[i])) places.push_back(i);
  // Equally good ones stay in order, newest first. Not by std::stable_sort, which allocates a buffer of its own and generates much code.
  std::ranges::sort(places, [&](size_t a, size_t b) {
    const double of_a = *checkpoints[a].metric, of_b = *checkpoints[b].metric;
    if (of_a == of_b) return a < b;
    return retention.higher_is_better ? of_a > of_b : of_a < of_b;
  });
  places.resize(std::min(places.size(), static_cast<size_t>(std::max<int64_t>(retention.best, 0))));
  return places;
}

std::optional<double> number_of(const Json* value) {
  return value != nullptr && value->is_number() ? std::optional(value->number()) : std::nullopt;
}

std::optional<double> metric_of(const Manifest& manifest, const std::string& key) {
  if (key.empty()) return {};
  const auto found = manifest.metadata.find(key);
  if (found == manifest.metadata.end()) return number_of(manifest.training.find(key));
  try {
    const Json value = parse_json(found->second, key);
    return number_of(&value);
  } catch (const Error&) {
    return {};  // not a number: a text, "nan"
  }
}

/// True also for a host's own buffers, which have no loss.
bool has_loss(const Manifest& manifest) {
  const Json* loss = manifest.training.find("loss");
  return loss == nullptr || !loss->is(Json::Kind::null);
}

/// Digest of the graph of a trainer's checkpoint; "": a host's.
std::string model_of(const Manifest& manifest) {
  const Json* graph = manifest.training.find("graph");
  return graph != nullptr && graph->is(Json::Kind::text) ? graph->text() : "";
}

}  // namespace

RetainedCheckpoint retained(const std::string& name, const Manifest& manifest, const std::string& best) {
  return {.name = name,
          .step = manifest.step,
          .metric = metric_of(manifest, best),
          .finite = manifest.has_finite_weights(),
          .has_loss = has_loss(manifest),
          .model = model_of(manifest)};
}

bool is_of_same_run(const RetainedCheckpoint& checkpoint, const RetainedCheckpoint& newest) {
  if (checkpoint.earlier) return false;
  const bool is_unreadable = !checkpoint.valid && checkpoint.model.empty();
  return is_unreadable || checkpoint.model == newest.model;
}

std::vector<std::string> to_remove(const Retention& retention, const Checkpoints& all) {
  std::vector<std::string> names;
  if (retention.last <= 0) return names;
  Checkpoints checkpoints;
  std::ranges::copy_if(all, std::back_inserter(checkpoints),
                       [&](const auto& checkpoint) { return is_of_same_run(checkpoint, all.front()); });
  const std::vector<size_t> best = best_of(retention, checkpoints);
  const auto is_finite = [](const RetainedCheckpoint& checkpoint) { return checkpoint.valid && checkpoint.finite; };
  const auto is_sound = [&](const RetainedCheckpoint& checkpoint) { return is_finite(checkpoint) && checkpoint.has_loss; };
  const auto finite = std::ranges::find_if(checkpoints, is_finite) - checkpoints.begin();
  const auto sound = std::ranges::find_if(checkpoints, is_sound) - checkpoints.begin();
  int64_t newer = 0;  // valid ones
  for (size_t i = 0; i < checkpoints.size(); ++i) {
    const RetainedCheckpoint& checkpoint = checkpoints[i];
    // A corrupt one stays, too, until `last` valid ones are newer.
    bool stays = newer < retention.last || std::cmp_equal(i, finite) || std::cmp_equal(i, sound);
    if (checkpoint.valid) {
      stays = stays || (retention.every > 0 && checkpoint.step % retention.every == 0) || std::ranges::find(best, i) != best.end();
      ++newer;
    }
    if (!stays) names.push_back(checkpoint.name);
  }
  std::ranges::reverse(names);
  return names;
}

}  // namespace st
