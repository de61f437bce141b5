#include "checkpoint/shared_save.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <new>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/heap.h"
#include "base/os/files.h"
#include "base/os/machine.h"
#include "base/os/whole_file.h"

namespace st {
namespace {

constexpr std::string_view kSignPrefix = "ranks-", kFailedSave = ".failed", kPartFolder = ".part", kFailedPart = "failed";
constexpr double kLookAtOthers = 0.005, kLookAtSlow = 0.05, kHearEvery = 0.25;  // seconds
constexpr std::chrono::milliseconds kBeatEvery{50};
// A rank's sign file holds the count of beats and the progress count; in rank 0's follow the checkpoint, a space, file_bytes and a newline.
constexpr size_t kCountDigits = 16, kBeatDigits = 2 * kCountDigits;
constexpr double kFirstTells = 4;  // deadlines that the others wait longer than rank 0, which knows which rank it waits for
constexpr int64_t kMostText = 1 << 16;
constexpr std::array kKindsInOrder = {TensorKind::parameter, TensorKind::optimizer, TensorKind::host};

/// The file's text; empty if it does not exist.
std::string text_at(const std::string& path, int64_t most = kMostText) {
  try {
    return os::read_file(path, most);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    return {};
  }
}

bool exists(const std::string& path) { return os::kind_of(path) != os::PathKind::none; }

/// A network file system may cache the content of a folder; opening the folder refreshes it.
void look_again(const std::string& folder) {
  try {
    static_cast<void>(os::list_folder(folder));
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
  }
}

void write_text(const std::string& path, const std::string& content) {
  os::write_file_atomically(path, [&](const auto& write) { write(std::as_bytes(std::span(content))); });
}

/// Whether a live rank holds the lock on it.
bool is_in_use(const std::string& sign) {
  try {
    return !os::FileHold::take(sign, os::FileHold::Kind::exclusive).has_value();
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    return false;
  }
}

/// A failure report: "14 1 ", which is the code and the rank that the message names (or -1), then the message.
std::string report_text(const std::exception& why) {
  Code code = dynamic_cast<const std::bad_alloc*>(&why) != nullptr ? Code::out_of_memory : Code::internal;
  int32_t rank = -1;
  if (const auto* error = dynamic_cast<const Error*>(&why)) {
    code = error->code();
    rank = error->place.rank;
  }
  return text(static_cast<int32_t>(code), " ", rank, " ", std::string(why.what()).substr(0, kMostText / 2));
}

/// The manifest of this rank's files alone, in which each piece is a tensor.
Manifest of_pieces(const Manifest& manifest) {
  Manifest part;
  part.step = manifest.step;
  part.files = manifest.files;
  for (const LogicalTensor& tensor : manifest.tensors)
    for (const TensorPiece& piece : tensor.pieces) {
      const bool whole = piece.begin == 0 && piece.end == tensor.shape.elements();
      part.tensors.push_back({piece_name(tensor, piece),
                              tensor.kind,
                              tensor.dtype,
                              whole ? tensor.shape : Shape{piece.end - piece.begin},
                              {{piece.file, 0, piece.end - piece.begin, piece.blocks}},
                              tensor.finite});
    }
  std::ranges::sort(part.tensors, {}, &LogicalTensor::name);
  return part;
}

}  // namespace

bool is_shared_save_file(std::string_view name) { return name.starts_with(kSignPrefix); }

/// One file of the save, of any rank, and the parts of tensors in it.
struct SharedSaveEnd::Shard {
  std::string name;
  TensorKind kind;
  int32_t rank;
  struct TensorRange {
    size_t tensor;
    int64_t begin, end;
  };
  std::vector<TensorRange> parts;
};

/// Hooks into the writer's poll of is_cancelled. Checks there whether the save has failed on another rank, which ends the writing by an
/// error as a cancel does, and counts progress.
class SharedSaveEnd::Listening {
 public:
  Listening(SharedSaveEnd& end, WriteProgress& progress) : progress_(progress), is_cancelled_(std::move(progress.is_cancelled)) {
    progress.is_cancelled = [this, &end] {
      if (const int64_t done = progress_.done; std::exchange(done_, done) != done) ++end.progress_count_;
      end.look_at_others();
      return is_cancelled_ && is_cancelled_();
    };
  }
  ~Listening() { progress_.is_cancelled = std::move(is_cancelled_); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  WriteProgress& progress_;
  int64_t done_ = 0;
  std::function<bool()> is_cancelled_;
};

SharedSaveEnd::SharedSaveEnd(std::shared_ptr<const SharedSave> save, std::string folder, std::string name, Logger log)
    : save_(std::move(save)), folder_(std::move(folder)), name_(std::move(name)), log_(log) {
  constexpr int kTries = 100;
  constexpr std::chrono::milliseconds kHeldByAnother{1};
  os::make_folders(folder_);
  const std::string path = sign_of(save_->rank);
  bool is_made = false;
  for (int i = 0; !hold_; ++i) {  // until it is locked, rank 0 may remove it as a leftover
    require(i < kTries, Code::io, "checkpoint: ", path, " could not be locked in ", kTries,
            " attempts; check that no other job saves there");
    if (!is_made) {
      os::remove_file(path);
      os::OutputFile(path, os::OutputFile::Open::fresh).close();
      is_made = true;
    }
    try {
      if (auto hold = os::FileHold::take(path, os::FileHold::Kind::exclusive))
        hold_.emplace(std::move(*hold));
      else
        std::this_thread::sleep_for(kHeldByAnother);
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
      is_made = false;  // it was removed as a leftover
    }
  }
  beat();
  try {
    heart_ = std::thread([this, heap = Heap::current()] {
      start_in_default_float_mode();
      const HeapScope owners(heap);
      beat_on();
    });
  } catch (const std::system_error& refusal) {
    fail(Code::unavailable, text("checkpoint: the heartbeat thread of a save could not be started (", refusal.what(),
                                 "); raise the limit on threads or processes"));
  }
}

SharedSaveEnd::~SharedSaveEnd() {
  end();
  heart_.join();
}

void SharedSaveEnd::end() noexcept {
  try {
    const std::lock_guard lock(mutex_);  // so that no beat creates it again
    is_over_ = true;
    os::remove_file(sign_of(save_->rank));
  } catch (...) {  // a leftover, which the next save removes
  }
  changed_.notify_all();
  hold_.reset();  // after the removal: a sign that exists unlocked means a rank that ended during the save
}

std::string SharedSaveEnd::sign_of(int32_t rank) const { return text(folder_, "/", kSignPrefix, name_, ".", rank); }

std::string SharedSaveEnd::part_of(const std::string& checkpoint, int32_t rank) const {
  return text(folder_, "/", checkpoint, kPartFolder, "/", kSignPrefix, name_, ".", rank);
}

void SharedSaveEnd::require_one_folder() const {
  const std::string first = save_->text_of_rank_0(folder_);
  std::exception_ptr own;
  try {
    require(exists(sign_of(0)), Code::rank_mismatch,
            "checkpoint: the ranks do not save into one folder: ", save_->names[static_cast<size_t>(save_->rank)], " saves into ", folder_,
            " and does not see there the files of ", save_->names[0], ", which saves into ", first,
            "; give all ranks the same folder on a file system that they share");
  } catch (...) {
    own = std::current_exception();
  }
  save_->agree(own);
}

/// Closes the file each time: a network file system shows the write to other machines only then.
void SharedSaveEnd::beat() {
  const std::lock_guard lock(mutex_);
  if (is_over_) return;
  std::string digits = std::to_string(++beats_);
  digits.resize(kCountDigits, ' ');
  digits += std::to_string(progress_count_);
  digits.resize(kBeatDigits, ' ');
  digits += announced_;
  os::OutputFile sign(sign_of(save_->rank), os::OutputFile::Open::shared);
  sign.write_at(0, std::as_bytes(std::span(digits)));
  sign.close();
}

/// Runs on its own thread, so that this rank is not silent while it waits, even for its disk.
void SharedSaveEnd::beat_on() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kBeatEvery, [&] { return is_over_; })) {
    lock.unlock();
    try {
      beat();
    } catch (const std::exception&) {  // the next beat may succeed; if none does, the others find this rank silent
    }
    lock.lock();
  }
}

void SharedSaveEnd::look_at_others() {
  const double now = os::seconds();
  if (now - looked_ < kHearEvery) return;
  looked_ = now;
  if (save_->rank != 0) return throw_if_reported(text(folder_, "/", kSignPrefix, name_, kFailedSave), 0);
  for (int32_t rank = 1; rank < save_->ranks; ++rank) throw_if_reported(text(part_of(checkpoint_, rank), "/", kFailedPart), rank);
}

void SharedSaveEnd::throw_if_reported(const std::string& path, int32_t by) const {
  const std::string report = text_at(path);
  if (report.empty()) return;
  const size_t code = report.find(' '), rank = report.find(' ', code + 1);
  require(rank != std::string::npos, Code::io, "checkpoint: ", path, " is not a valid failure report of a rank; the file is damaged");
  std::string message = report.substr(rank + 1);
  message.erase(message.find_last_not_of(' ') + 1);
  const int64_t named = whole_number(report.substr(code + 1, rank - code - 1), -1);
  const int32_t who = named < save_->ranks ? static_cast<int32_t>(std::max<int64_t>(named, -1)) : -1;
  const int64_t said = whole_number(report.substr(0, code), 0);
  const bool is_one = said > static_cast<int64_t>(Code::ok) && said <= static_cast<int64_t>(Code::internal);
  Error error(is_one ? static_cast<Code>(said) : Code::internal,
              who < 0 ? text("checkpoint: ", save_->names[static_cast<size_t>(by)], ": ", message) : message);
  error.place.rank = who < 0 ? by : who;
  throw error;
}

/// Waits until is_there(), which looks for a file in `folder`. Throws if the other rank ends, is silent or makes no progress. Rank 0 counts
/// the progress of the ranks it waits for, and the others wait kFirstTells deadlines longer for rank 0: so it can name the rank whose disk
/// hangs before they give up on rank 0.
template <class There>
void SharedSaveEnd::await(int32_t other, const std::string& folder, const WriteProgress& progress, const There& is_there) {
  const std::string sign = sign_of(other), &who = save_->names[static_cast<size_t>(other)];
  const auto failed = [&](Code code, std::string message) {
    Error error(code, std::move(message));
    error.place.rank = other;
    throw error;
  };
  const auto look = [&] {
    look_again(folder_);
    look_again(folder);
    return is_there();
  };
  std::string last;
  const double start = save_->seconds(), still = (save_->stall_deadlines + (other == 0 ? kFirstTells : 0)) * save_->deadline;
  double heard = start, progressed = start, looked = start, warn_after = save_->deadline;
  ++progress_count_;
  while (!is_there()) {
    require(!progress.is_cancelled || !progress.is_cancelled(), Code::cancelled, "checkpoint: the save was cancelled");
    const std::string beat = text_at(sign);
    if (!is_in_use(sign)) {
      if (look()) return;
      failed(Code::rank_failed, text("checkpoint: ", who, " ended during the save, or gave it up; its own output says why"));
    }
    const double now = save_->seconds();
    if (beat != last) {
      if (beat.substr(std::min(kCountDigits, beat.size())) != last.substr(std::min(kCountDigits, last.size()))) {
        progressed = now;
        ++progress_count_;
      }
      last = beat;
      heard = now;
    } else if (now - heard > save_->deadline) {
      failed(Code::timeout, text("checkpoint: ", who, " has given no sign of life in this save for ", save_->deadline,
                                 " s: its process is stopped or its machine hangs; resume or replace it"));
    }
    if (now - progressed > still)
      failed(Code::timeout, text("checkpoint: ", who, " is alive but has made no progress in this save for ",
                                 static_cast<int64_t>(now - progressed), " s; its disk may be hung"));
    if (now - start > warn_after) {
      log_.warning("checkpoint", "waiting for ", who, ", which is alive and still saving after ", static_cast<int64_t>(now - start),
                   " s; its disk may be slow");
      warn_after *= 4;
    }
    if (now - looked > kHearEvery) {
      looked = now;
      if (look()) return;
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
          all.back().parts.push_back({t, range.begin, range.end});
          left = std::max<int64_t>(left - bytes, 0);
        }
      }
    }
    for (size_t i = before; i < all.size(); ++i) all[i].name = shard_name(kind, i - before, all.size() - before);
  }
  return all;
}

/// Writes this rank's files; returns the manifest of these alone.
Manifest SharedSaveEnd::write_own(const std::string& folder, Manifest manifest, std::span<const WrittenTensor> own,
                                  const WriteOptions& options, WriteProgress& progress) {
  std::vector<const WrittenTensor*> of_tensor(save_->tensors.size());
  size_t next = 0;
  int64_t bytes = 0;
  for (size_t t = 0; t < save_->tensors.size(); ++t) {
    const SharedSave::Tensor& tensor = save_->tensors[t];
    manifest.tensors.push_back({tensor.name, tensor.kind, tensor.dtype, tensor.shape, {}});
    for (const SharedSave::Range& range : tensor.ranges)
      if (range.rank == save_->rank) {
        require(of_tensor[t] == nullptr, Code::internal, "checkpoint: ", tensor.name,
                " has two ranges on this rank; at most one is allowed");
        if (next < own.size()) of_tensor[t] = &own[next];
        ++next;
        bytes += (range.end - range.begin) * bytes_of(tensor.dtype);
      }
  }
  require(next == own.size(), Code::internal, "checkpoint: got ", own.size(), " ranges of tensors, but this rank has ", next);
  progress.done = 0;
  progress.all = bytes;
  ShardWriter writer(options.bytes_per_second, progress);
  for (const Shard& shard : shards(options.file_bytes)) {
    if (shard.rank != save_->rank) continue;
    std::vector<ShardPiece> pieces;
    for (const auto& [tensor, begin, end] : shard.parts)
      pieces.push_back({tensor, begin, end, of_tensor[tensor]->bytes, of_tensor[tensor]->copy});
    write_shard(folder, shard.name, manifest, pieces, writer);
  }
  return manifest;
}

/// Waits for that rank's manifest, then moves its files next to rank 0's, where the common manifest expects them.
Manifest SharedSaveEnd::take_over(const std::string& checkpoint, int32_t rank, const WriteProgress& progress) {
  const std::string from = part_of(checkpoint, rank), last = text(from, "/", kManifestName);
  await(rank, from, progress, [&] {
    throw_if_reported(text(from, "/", kFailedPart), rank);
    return exists(last);
  });
  Manifest part = parse_manifest(os::read_file(last, kMaxManifestBytes), last);
  for (const ShardFile& file : part.files)
    os::rename_file(text(from, "/", file.name), text(folder_, "/", checkpoint, kPartFolder, "/", file.name));
  return part;
}

Manifest SharedSaveEnd::write_all(const std::string& checkpoint, Manifest manifest, std::span<const WrittenTensor> own,
                                  const WriteOptions& options, WriteProgress& progress) {
  const std::string folder = text(folder_, "/", checkpoint, kPartFolder);
  for (int32_t rank = 1; rank < save_->ranks; ++rank) os::make_folder(part_of(checkpoint, rank));
  checkpoint_ = checkpoint;
  {
    const std::lock_guard lock(mutex_);
    announced_ = text(checkpoint, " ", options.file_bytes, "\n");
  }
  beat();
  const Listening listening(*this, progress);
  Manifest all = write_own(folder, std::move(manifest), own, options, progress);
  std::vector<Manifest> parts;  // by rank
  parts.push_back(of_pieces(all));
  for (int32_t rank = 1; rank < save_->ranks; ++rank) {
    parts.push_back(take_over(checkpoint, rank, progress));
    os::remove_folder(part_of(checkpoint, rank));
  }
  all.files.clear();
  for (LogicalTensor& tensor : all.tensors) tensor.pieces.clear();
  std::vector<IndexPlace> places;
  int64_t bytes = 0;
  for (const Shard& shard : shards(options.file_bytes)) {
    const Manifest& part = parts[static_cast<size_t>(shard.rank)];
    const auto file = std::ranges::find(part.files, shard.name, &ShardFile::name);
    require(file != part.files.end(), Code::rank_mismatch, "checkpoint: ", save_->names[static_cast<size_t>(shard.rank)], " did not write ",
            shard.name, "; all ranks must save the same tensors with the same version of the library");
    for (const auto& [t, begin, end] : shard.parts) {
      LogicalTensor& tensor = all.tensors[t];
      const std::string name = piece_name(tensor, {0, begin, end, {}});
      if (shard.kind == TensorKind::parameter) places.emplace_back(name, shard.name);
      if (shard.kind == TensorKind::parameter) bytes += (end - begin) * bytes_of(tensor.dtype);
      if (begin == end) continue;
      const LogicalTensor* piece = part.find(name);
      require(piece != nullptr && piece->pieces.size() == 1 && part.files[static_cast<size_t>(piece->pieces[0].file)].name == shard.name,
              Code::rank_mismatch, "checkpoint: ", save_->names[static_cast<size_t>(shard.rank)], " did not write ", name, " into ",
              shard.name, "; all ranks must save the same tensors with the same version of the library");
      tensor.finite = tensor.finite && piece->finite;
      tensor.pieces.push_back({static_cast<int32_t>(all.files.size()), begin, end, piece->pieces[0].blocks});
    }
    all.files.push_back(*file);
  }
  if (std::ranges::count(all.files, true, [](const ShardFile& file) { return file.name.starts_with("model"); }) > 1) {
    ShardWriter writer(0, progress);
    write_index(folder, all, places, bytes, writer);
  }
  commit_manifest(folder, all);
  return all;
}

void SharedSaveEnd::report_failure(const std::exception& why) noexcept {
  try {
    report(text(folder_, "/", kSignPrefix, name_, kFailedSave), why);
  } catch (...) {  // a disk error; the others notice that this rank has given up
    return;
  }
}

/// On a full disk there is still room in this rank's sign file, which is then renamed to `path`.
void SharedSaveEnd::report(const std::string& path, const std::exception& why) {
  constexpr size_t kRoom = 3000;  // fits the first block of a file
  std::string said = report_text(why);
  try {
    return write_text(path, said);
  } catch (const Error&) {
    said.resize(std::min(said.size(), kRoom));
  }
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  said.resize(std::max(said.size(), kBeatDigits + announced_.size()), ' ');
  os::OutputFile sign(sign_of(save_->rank), os::OutputFile::Open::shared);
  sign.write_at(0, std::as_bytes(std::span(said)));
  sign.close();
  os::rename_file(sign_of(save_->rank), path);
}

void SharedSaveEnd::write_part(int64_t step, std::span<const WrittenTensor> own, const WriteOptions& options, WriteProgress& progress) {
  const std::string failed = text(folder_, "/", kSignPrefix, name_, kFailedSave);
  WriteOptions alike = options;
  try {
    await(0, folder_, progress, [&] {
      throw_if_reported(failed, 0);
      const std::string sign = text_at(sign_of(0));
      if (sign.size() <= kBeatDigits || !sign.ends_with('\n')) return false;
      const std::string announced = sign.substr(kBeatDigits, sign.size() - kBeatDigits - 1);
      const size_t space = announced.find(' ');
      alike.file_bytes = space == std::string::npos ? -1 : whole_number(announced.substr(space + 1), -1);
      require(alike.file_bytes >= 0, Code::rank_mismatch, "checkpoint: ", save_->names[0], " announced an invalid save, \"", announced,
              "\"; run one version of the library on all ranks");
      checkpoint_ = announced.substr(0, space);
      return true;
    });
    const std::string folder = part_of(checkpoint_, save_->rank), last = text(folder, "/", kManifestName);
    const Listening listening(*this, progress);
    Manifest manifest;
    manifest.step = step;
    manifest = write_own(folder, std::move(manifest), own, alike, progress);
    os::sync_folder(folder);
    write_text(last, print_manifest(of_pieces(manifest)));
    await(0, text(folder_, "/", checkpoint_), progress, [&] {
      throw_if_reported(failed, 0);
      return !exists(sign_of(0)) && exists(text(folder_, "/", checkpoint_, "/", kManifestName));
    });
  } catch (const std::exception& why) {
    throw_if_reported(failed, 0);  // rank 0 knows the first failure
    try {
      if (!checkpoint_.empty()) report(text(part_of(checkpoint_, save_->rank), "/", kFailedPart), why);
    } catch (...) {  // the folder is gone or the disk fails: rank 0 notices when this rank's sign disappears
    }
    throw;
  }
}

}  // namespace st
