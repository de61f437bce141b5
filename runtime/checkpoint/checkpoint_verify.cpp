// The part of checkpoint_reader.h that reads all of a checkpoint to verify it.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "checkpoint/checkpoint_block.h"
#include "checkpoint/checkpoint_reader.h"

namespace st {
namespace {

constexpr int64_t kRunBlocks = 16;  // blocks that one worker reads in a row, so that the disk sees long reads

/// Consecutive blocks of one piece.
struct BlockRun {
  BlockPlace first;
  int64_t blocks;
};

}  // namespace

struct CheckpointReader::BadBlock {
  Error error;
  BlockPlace place;
};

/// Reads the blocks of `tensors` on all workers, each with a buffer of one block. Returns the damaged ones, at most `most`, in the order of
/// `tensors`.
std::vector<CheckpointReader::BadBlock> CheckpointReader::read_blocks(std::span<const LogicalTensor* const> tensors, Workers& workers,
                                                                      int64_t most) const {
  std::vector<BlockRun> runs;
  for (const LogicalTensor* tensor : tensors)
    for (size_t p = 0; p < tensor->pieces.size(); ++p) {
      const int64_t offset = offsets_of(*tensor)[p], blocks = std::ssize(tensor->pieces[p].blocks);
      if (offset < 0) continue;  // its shard is damaged, which has been reported
      for (int64_t b = 0; b < blocks; b += kRunBlocks)
        runs.push_back({{tensor, &tensor->pieces[p], offset, b}, std::min(kRunBlocks, blocks - b)});
    }

  const int64_t lanes = std::min<int64_t>(workers.threads(), std::ssize(runs));
  std::vector<std::byte> memory(static_cast<size_t>(lanes * kChecksumBlock));
  std::atomic<int64_t> next{0};
  std::atomic<bool> enough{false};
  std::mutex telling;
  std::vector<BadBlock> bad;
  workers.run(lanes, [&](int64_t lane) {
    const auto mine = std::span(memory).subspan(static_cast<size_t>(lane * kChecksumBlock), kChecksumBlock);
    for (int64_t r = next++; r < std::ssize(runs); r = next++) {
      BlockPlace place = runs[static_cast<size_t>(r)].first;
      for (const int64_t end = place.block + runs[static_cast<size_t>(r)].blocks; place.block < end && !enough; ++place.block) {
        require_not_cancelled();
        try {
          use_file(*place.piece,
                   [&](const os::InputFile& file) { read_block(file, place, mine.first(static_cast<size_t>(place.bytes()))); });
        } catch (const Error& error) {
          const std::lock_guard lock(telling);
          if (std::ssize(bad) < most) bad.push_back({error, place});
          enough = std::ssize(bad) >= most;
        }
      }
    }
  });
  std::ranges::sort(bad, {}, [](const BadBlock& b) { return std::tuple(b.place.tensor, b.place.piece, b.place.block); });
  return bad;
}

void CheckpointReader::check(std::span<const LogicalTensor* const> tensors, Workers& workers) const {
  if (const auto bad = read_blocks(tensors, workers, 1); !bad.empty()) throw Error(bad.front().error);
}

std::vector<CheckpointProblem> CheckpointReader::verify(Workers& workers, int64_t most) const {
  std::vector<const LogicalTensor*> tensors;
  for (const LogicalTensor& tensor : manifest_.tensors) tensors.push_back(&tensor);
  Problems problems;
  for (const auto& [error, place] : read_blocks(tensors, workers, most)) {
    const std::string& file = manifest_.files[static_cast<size_t>(place.piece->file)].name;
    problems.push_back({file, place.tensor->name, place.block, error.place.offset, error.message()});
  }
  return problems;
}

std::vector<CheckpointProblem> CheckpointReader::problems_of(const std::string& folder, Workers& workers, int64_t most,
                                                             std::function<bool()> is_cancelled) {
  Problems problems;
  try {
    const CheckpointReader reader(folder, &problems, std::move(is_cancelled));
    for (CheckpointProblem& problem : reader.verify(workers, most)) problems.push_back(std::move(problem));
  } catch (const Error& error) {
    if (error.code() == Code::not_found || error.code() == Code::cancelled) throw;
    problems.push_back({std::string(kManifestName), error.place.tensor, -1, error.place.offset, error.message()});
  }
  if (std::ssize(problems) > most) problems.resize(static_cast<size_t>(most));
  return problems;
}

}  // namespace st
