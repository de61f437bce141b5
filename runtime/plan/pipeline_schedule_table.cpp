#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "plan/pipeline_schedule.h"
#include "plan/pipeline_schedule_cell.h"

namespace st {
namespace {

char letter_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return 'F';
    case Phase::backward:
      return 'B';
    case Phase::backward_input:
      return 'I';
    case Phase::backward_weight:
      return 'W';
    case Phase::update:
      break;
  }
  return 'U';
}

struct Cell {
  int32_t part = 0;
  Phase phase = Phase::forward;
  int32_t micro_batch = 0;
};

std::optional<Cell> cell_in(std::string_view text) {
  Cell cell;
  const char* const end = text.data() + text.size();
  const auto [letter, bad_part] = std::from_chars(text.data(), end, cell.part);
  if (bad_part != std::errc() || letter == end) return std::nullopt;
  constexpr Phase kPhases[] = {Phase::forward, Phase::backward, Phase::backward_input, Phase::backward_weight};
  const auto* const phase = std::ranges::find(kPhases, *letter, letter_of);
  if (phase == std::end(kPhases)) return std::nullopt;
  cell.phase = *phase;
  const auto [rest, bad_number] = std::from_chars(letter + 1, end, cell.micro_batch);
  const bool holds = bad_number == std::errc() && rest == end && cell.part >= 0 && cell.micro_batch >= 0;
  return holds ? std::optional(cell) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view{} : text.substr(first, last - first + 1);
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (size_t begin = 0;;) {
    const size_t end = line.find(',', begin);
    cells.push_back(trimmed(line.substr(begin, end - begin)));
    if (end == std::string_view::npos) return cells;
    begin = end + 1;
  }
}

}  // namespace

std::string cell_of(const PipelineSchedule& schedule, int32_t stage, const StageAction& action) {
  return text(schedule.part_of(stage, action.chunk), std::string(1, letter_of(action.phase)), action.micro_batch);
}

std::string print_schedule(const PipelineSchedule& schedule) {
  std::string out;
  for (int32_t s = 0; s < schedule.stages; ++s) {
    std::string line;
    for (const StageAction& action : schedule.actions[static_cast<size_t>(s)])
      line += (line.empty() ? "" : ",") + cell_of(schedule, s, action);
    out += line + "\n";
  }
  return out;
}

bool is_schedule_table(std::string_view text) { return text.find(',') != std::string_view::npos; }

PipelineSchedule parse_schedule(std::string_view table) {
  std::vector<std::vector<Cell>> lines;
  int32_t parts = 0, micro_batches = 0;
  for (const std::string_view line : lines_of(table)) {
    if (trimmed(line).empty()) continue;
    auto& cells = lines.emplace_back();
    for (const std::string_view word : cells_of(line)) {
      if (word.empty()) continue;
      const auto cell = cell_in(word);
      check(cell.has_value() && cell->part < 1 << 20 && cell->micro_batch < 1 << 20, "schedule: line ", lines.size(), ", cell \"", word,
            "\": expected a part, F, B, I or W, and a micro-batch, as in 0F0");
      cells.push_back(*cell);
      parts = std::max(parts, cell->part + 1);
      micro_batches = std::max(micro_batches, cell->micro_batch + 1);
    }
  }
  const auto stages = static_cast<int32_t>(lines.size());
  check(stages >= 1 && parts % stages == 0, "schedule: the ", stages, " lines have ", parts,
        " parts; each stage needs a line, and all the same number of parts");
  PipelineSchedule schedule{.stages = stages,
                            .chunks = parts / std::max(1, stages),
                            .micro_batches = micro_batches,
                            .actions = std::vector<std::vector<StageAction>>(lines.size())};
  // With one stage, a loop and a V are the same.
  const auto has_part = [](const std::vector<Cell>& line, int32_t part) {
    return std::ranges::find(line, part, &Cell::part) != line.end();
  };
  if (schedule.chunks == 2 && stages > 1 && has_part(lines[0], parts - 1)) schedule.placement = PipelineSchedule::Placement::v;
  for (int32_t s = 0; s < stages; ++s)
    for (const Cell& cell : lines[static_cast<size_t>(s)]) {
      check(schedule.stage_of(cell.part) == s, "schedule: line ", s + 1, ": part ", cell.part, " belongs to line ",
            schedule.stage_of(cell.part) + 1);
      schedule.actions[static_cast<size_t>(s)].push_back({cell.phase, schedule.chunk_of(cell.part), cell.micro_batch});
    }
  check_schedule(schedule);
  return schedule;
}

}  // namespace st
