#include "checkpoint/shared_save.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error_of.h"
#include "base/os/files.h"
#include "base/os/whole_file.h"

namespace st {
namespace {

constexpr std::string_view kSignPrefix = "ranks-", kPartFolder = ".part";
constexpr double kLookAtOthers = 0.005, kLookAtSlow = 0.05;  // seconds
constexpr double kFirstTells = 4;  // deadlines that the others wait longer than rank 0, which knows which rank it waits for
constexpr std::array kKindsInOrder = {TensorKind::parameter, TensorKind::optimizer, TensorKind::host};

/// A network file system may cache the content of a folder; opening the folder refreshes it.
void look_again(const std::string& folder) {
  try {
    static_cast<void>(os::list_folder(folder));
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
  }
}

}  // namespace

bool is_shared_save_file(std::string_view name) { return name.starts_with(kSignPrefix); }

/// One file of the save, of any rank.
struct SharedSaveEnd::Shard {
  std::string name;
  TensorKind kind;
  int32_t rank;
  std::vector<ShardPiece> pieces;  // of save_->tensors, without their bytes
};

SharedSaveEnd::SharedSaveEnd(std::shared_ptr<const SharedSave> save, std::string folder, Logger log)
    : save_(std::move(save)), folder_(std::move(folder)), log_(log) {}

SharedSaveEnd::~SharedSaveEnd() { end(); }

void SharedSaveEnd::end() noexcept {
  try {
    if (sign_) sign_->stop();  // or a beat would create it again
    if (!has_failed_) os::remove_file(path_of_sign(save_->rank));
    for (int32_t rank = 1; has_failed_ && save_->rank == 0 && rank < save_->ranks; ++rank)  // no other rank reads them
      remove_sign_left_at(path_of_sign(rank));
  } catch (...) {  // a leftover, which the next save removes
  }
  if (sign_) sign_->unlock();
}

std::string SharedSaveEnd::path_of_sign(int32_t rank) const { return text(folder_, "/", kSignPrefix, name_, ".", rank); }

std::string SharedSaveEnd::part_of(const std::string& checkpoint, int32_t rank) const {
  return text(folder_, "/", checkpoint, kPartFolder, "/", kSignPrefix, name_, ".", rank);
}

void SharedSaveEnd::begin() {
  const std::string first = save_->text_of_rank_0(text(os::process_id(), "-", static_cast<int64_t>(os::seconds() * 1e6), " ", folder_));
  const size_t space = first.find(' ');
  name_ = first.substr(0, space);
  save_->agree_on([&] {
    os::make_folders(folder_);
    sign_.emplace(path_of_sign(save_->rank));
  });
  save_->agree_on([&] {
    require(os::kind_of(path_of_sign(0)) != os::PathKind::none, Code::rank_mismatch,
            "checkpoint: the ranks do not save into one folder: ", save_->names[static_cast<size_t>(save_->rank)], " saves into ", folder_,
            " and does not see there the files of ", save_->names[0], ", which saves into ", first.substr(space + 1),
            "; give all ranks the same folder on a file system that they share");
  });
}

SignContent SharedSaveEnd::sign_of(int32_t rank) const {
  return read_sign(path_of_sign(rank), rank, save_->names[static_cast<size_t>(rank)]);
}

/// Throws if that rank has failed or ended.
void SharedSaveEnd::require_saving(int32_t rank, const SignContent& sign) const {
  if (sign.failure) throw Error(*sign.failure);
  if (!sign.is_held) fail_for(rank, Code::rank_failed, " ended during the save, or gave it up; its own output says why");
}

void SharedSaveEnd::fail_for(int32_t rank, Code code, const std::string& what) const {
  Error error(code, text("checkpoint: ", save_->names[static_cast<size_t>(rank)], what));
  error.place.rank = rank;
  throw error;
}

void SharedSaveEnd::look_around(const WriteProgress& progress) {
  if (const int64_t done = progress.done; std::exchange(done_, done) != done) sign_->count_progress();
  const double now = os::seconds();
  if (now - looked_ < kLookAtSlow) return;
  looked_ = now;
  next_ = save_->rank == 0 ? (next_ + 1) % save_->ranks : 0;  // rank 0 looks at one after the other
  const SignContent sign = sign_of(next_);
  if (!sign.is_written && !(save_->rank != 0 && sign.is_gone)) require_saving(next_, sign);  // rank 0's is gone after the commit
}

/// Waits until is_so() of the other rank's sign. Throws if that rank has failed, ends, is silent or makes no progress. Rank 0 counts the
/// progress of the ranks it waits for, and the others wait kFirstTells deadlines longer for rank 0: so it can name the rank whose disk
/// hangs before they give up on rank 0.
template <class Condition>
void SharedSaveEnd::await(int32_t other, const WriteProgress& progress, const Condition& is_so) {
  const double start = save_->seconds(), still = (save_->stall_deadlines + (other == 0 ? kFirstTells : 0)) * save_->deadline;
  double heard = start, progressed = start, warn_after = save_->deadline;
  int64_t beats = -1, count = -1;
  sign_->count_progress();
  for (;;) {
    require(!progress.is_cancelled || !progress.is_cancelled(), Code::cancelled, "checkpoint: the save was cancelled");
    const SignContent sign = sign_of(other);
    if (is_so(sign)) return;
    require_saving(other, sign);
    const double now = save_->seconds();
    if (sign.beats > beats) {
      beats = sign.beats;
      heard = now;
    }
    if (sign.progress > count) {
      count = sign.progress;
      progressed = now;
      sign_->count_progress();
    }
    if (now - heard > save_->deadline)
      fail_for(other, Code::timeout,
               text(" has given no sign of life in this save for ", save_->deadline,
                    " s: its process is stopped or its machine hangs; resume or replace it"));
    if (now - progressed > still)
      fail_for(
          other, Code::timeout,
          text(" is alive but has made no progress in this save for ", static_cast<int64_t>(now - progressed), " s; its disk may be hung"));
    if (now - start > warn_after) {
      log_.warning("checkpoint", "waiting for ", save_->names[static_cast<size_t>(other)], ", which is alive and still saving after ",
                   static_cast<int64_t>(now - start), " s; its disk may be slow");
      warn_after *= 4;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(std::clamp((now - start) / 20, kLookAtOthers, kLookAtSlow)));
  }
}

/// All files of the save: by kind, then by rank; each rank's tensors in name order, split into files of file_bytes.
std::vector<SharedSaveEnd::Shard> SharedSaveEnd::shards(int64_t file_bytes) const {
  std::vector<Shard> all;
  for (const TensorKind kind : kKindsInOrder) {
    const size_t before = all.size();
    for (int32_t rank = 0; rank < save_->ranks; ++rank) {
      int64_t left = -1;
      for (size_t t = 0; t < save_->tensors.size(); ++t) {
        const SharedSave::Tensor& tensor = save_->tensors[t];
        if (tensor.kind != kind) continue;
        for (const SharedSave::Range& range : tensor.ranges) {
          if (range.rank != rank) continue;
          const int64_t bytes = (range.end - range.begin) * bytes_of(tensor.dtype);
          if (left < 0 || bytes > left) {
            all.push_back({{}, kind, rank, {}});
            left = file_bytes;
          }
          all.back().pieces.push_back({t, range.begin, range.end, {}, {}});
          left = std::max<int64_t>(left - bytes, 0);
        }
      }
    }
    for (size_t i = before; i < all.size(); ++i) all[i].name = shard_name(kind, i - before, all.size() - before);
  }
  return all;
}

/// Writes this rank's files; returns the manifest of these alone, in which each range is a tensor.
Manifest SharedSaveEnd::write_own(const std::string& folder, std::span<const WrittenTensor> own, const WriteOptions& options,
                                  WriteProgress& progress) {
  std::vector<const WrittenTensor*> of_tensor(save_->tensors.size());
  size_t next = 0;
  int64_t bytes = 0;
  for (size_t t = 0; t < save_->tensors.size(); ++t)
    for (const auto& [rank, begin, end] : save_->tensors[t].ranges) {
      if (rank != save_->rank) continue;
      require(next < own.size() && of_tensor[t] == nullptr, Code::internal, "checkpoint: ", save_->tensors[t].name,
              " has two ranges on this rank, or too few buffers: ", own.size());
      of_tensor[t] = &own[next++];
      bytes += (end - begin) * bytes_of(save_->tensors[t].dtype);
    }
  require(next == own.size(), Code::internal, "checkpoint: got ", own.size(), " ranges of tensors, but this rank has ", next);
  progress.done = 0;
  progress.all = bytes;
  ShardWriter writer(options.bytes_per_second, progress);
  Manifest part;
  for (const Shard& shard : shards(options.file_bytes)) {
    if (shard.rank != save_->rank) continue;
    std::vector<ShardPiece> pieces;
    for (const ShardPiece& piece : shard.pieces) {
      const WrittenTensor& written = *of_tensor[piece.tensor];
      pieces.push_back({part.tensors.size(), 0, piece.end - piece.begin, written.bytes, written.copy});
      part.tensors.push_back(tensor_of(piece));
    }
    write_shard(folder, shard.name, part, pieces, writer);
  }
  std::ranges::sort(part.tensors, {}, &LogicalTensor::name);
  return part;
}

/// As a rank writes it: a tensor with the name and shape of that range.
LogicalTensor SharedSaveEnd::tensor_of(const ShardPiece& piece) const {
  const auto& [name, kind, dtype, shape, ranges] = save_->tensors[piece.tensor];
  const bool is_whole = piece.begin == 0 && piece.end == shape.elements();
  return {piece_name({name, kind, dtype, shape, {}}, {0, piece.begin, piece.end, {}}),
          kind,
          dtype,
          is_whole ? shape : Shape{piece.end - piece.begin},
          {}};
}

/// Waits for that rank's files, then moves them next to rank 0's, where the common manifest expects them.
Manifest SharedSaveEnd::take_over(const std::string& checkpoint, int32_t rank, const WriteProgress& progress) {
  await(rank, progress, [](const SignContent& sign) { return sign.is_written; });
  const std::string from = part_of(checkpoint, rank), last = text(from, "/", kManifestName);
  Manifest part = parse_manifest(os::read_file(last, kMaxManifestBytes), last);
  for (const ShardFile& file : part.files)
    os::rename_file(text(from, "/", file.name), text(folder_, "/", checkpoint, kPartFolder, "/", file.name));
  os::remove_folder(from);
  return part;
}

Manifest SharedSaveEnd::write_all(const std::string& checkpoint, Manifest manifest, std::span<const WrittenTensor> own,
                                  const WriteOptions& options, WriteProgress& progress) {
  const std::string folder = text(folder_, "/", checkpoint, kPartFolder);
  for (int32_t rank = 1; rank < save_->ranks; ++rank) os::make_folder(part_of(checkpoint, rank));
  sign_->say(JsonLine().add("checkpoint", checkpoint).add("file_bytes", options.file_bytes));
  std::vector<Manifest> parts;  // by rank
  parts.push_back(write_own(folder, own, options, progress));
  for (int32_t rank = 1; rank < save_->ranks; ++rank) parts.push_back(take_over(checkpoint, rank, progress));
  for (const auto& [name, kind, dtype, shape, ranges] : save_->tensors) manifest.tensors.push_back({name, kind, dtype, shape, {}});
  std::vector<IndexPlace> places;
  int64_t bytes = 0;
  for (const Shard& shard : shards(options.file_bytes)) {
    const Manifest& part = parts[static_cast<size_t>(shard.rank)];
    const auto found = [&](bool is_so, const std::string& what) {
      require(is_so, Code::rank_mismatch, "checkpoint: ", save_->names[static_cast<size_t>(shard.rank)], " did not write ", what,
              "; all ranks must save the same tensors with the same version of the library");
    };
    const auto file = std::ranges::find(part.files, shard.name, &ShardFile::name);
    found(file != part.files.end(), shard.name);
    for (const ShardPiece& piece : shard.pieces) {
      LogicalTensor& tensor = manifest.tensors[piece.tensor];
      const std::string name = tensor_of(piece).name;
      if (shard.kind == TensorKind::parameter) {
        places.emplace_back(name, shard.name);
        bytes += (piece.end - piece.begin) * bytes_of(tensor.dtype);
      }
      if (piece.begin == piece.end) continue;
      const LogicalTensor* const written = part.find(name);
      found(written != nullptr && written->pieces.size() == 1 && written->pieces[0].file == file - part.files.begin(), name);
      tensor.finite = tensor.finite && written->finite;
      tensor.pieces.push_back({static_cast<int32_t>(manifest.files.size()), piece.begin, piece.end, written->pieces[0].blocks});
    }
    manifest.files.push_back(*file);
  }
  for (LogicalTensor& tensor : manifest.tensors) std::ranges::sort(tensor.pieces, {}, &TensorPiece::begin);
  if (std::ranges::count(manifest.files, true, [](const ShardFile& file) { return file.name.starts_with("model"); }) > 1) {
    ShardWriter writer(0, progress);
    write_index(folder, manifest, places, bytes, writer);
  }
  commit_manifest(folder, manifest);
  return manifest;
}

void SharedSaveEnd::report_failure() noexcept {
  try {
    const Error why = error_of(std::current_exception());
    std::string message = why.message();
    JsonLine said;
    do {
      said.start();
      said.add("code", static_cast<int32_t>(why.code())).add("rank", why.place.rank).add("why", message);
      message.resize(message.size() / 2);
    } while (said.text().size() > RankSign::kMostSaid);
    sign_->say(said);
    has_failed_ = true;
    end();
  } catch (...) {  // a disk error; the others notice that this rank has given up
    return;
  }
}

void SharedSaveEnd::write_part(int64_t step, std::span<const WrittenTensor> own, const WriteOptions& options, WriteProgress& progress) {
  try {
    WriteOptions alike = options;
    std::string checkpoint;
    await(0, progress, [&](const SignContent& first) {
      checkpoint = first.checkpoint;
      alike.file_bytes = first.file_bytes;
      return !checkpoint.empty();
    });
    const std::string folder = part_of(checkpoint, save_->rank), committed = text(folder_, "/", checkpoint);
    Manifest part = write_own(folder, own, alike, progress);
    part.step = step;
    os::sync_folder(folder);
    const std::string content = print_manifest(part);
    os::write_file_atomically(text(folder, "/", kManifestName), [&](const auto& write) { write(std::as_bytes(std::span(content))); });
    sign_->say(JsonLine().add("written", 1));
    await(0, progress, [&](const SignContent& first) {
      if (!first.is_gone) return false;
      look_again(folder_);
      look_again(committed);
      return os::kind_of(text(committed, "/", kManifestName)) != os::PathKind::none;
    });
  } catch (...) {
    if (const SignContent first = sign_of(0); first.failure) throw Error(*first.failure);  // rank 0 knows the first failure
    report_failure();
    throw;
  }
}

}  // namespace st
