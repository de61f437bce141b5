#include "checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/digest.h"
#include "base/error.h"
#include "base/os/files.h"
#include "checkpoint/checkpoint_block.h"
#include "checkpoint/corrupt.h"
#include "checkpoint/shard_check.h"

namespace st {
namespace {

constexpr size_t kOpenFiles = 64;  // stay open (a process has 1024 descriptors by default); further shards are opened for each read
constexpr int64_t kWindow = 4 * kChecksumBlock;

[[noreturn]] void throw_none(const std::string& folder, std::string_view why) {
  Error error(Code::not_found, text(folder, ": ", why));
  error.place.file = folder;
  throw error;
}

os::FileHold hold(const std::string& folder) {
  const std::string manifest = text(folder, "/", kManifestName);
  try {
    if (auto held = os::FileHold::take(manifest, os::FileHold::Kind::shared)) return std::move(*held);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    if (os::kind_of(folder) != os::PathKind::folder) throw_none(folder, "there is no such folder");
    const std::string stranger = os::wrong_kind_at(manifest, os::PathKind::file);
    if (!stranger.empty()) throw_corrupt(manifest, "", text(stranger, " is where a file belongs; put the file back"));
    throw_corrupt(folder, "", text("is not a checkpoint: it has no ", kManifestName, "; a save that was killed leaves such a folder"));
  }
  throw_none(folder, "is being removed; read a newer checkpoint");
}

Manifest read_manifest(const std::string& folder) {
  const os::InputFile file(text(folder, "/", kManifestName));
  if (file.size() > kMaxManifestBytes)
    throw_corrupt(file.path(), "", text("a manifest has at most ", kMaxManifestBytes, " bytes, got ", file.size()));
  std::string all(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(all)));
  return parse_manifest(all, file.path());
}

}  // namespace

CheckpointReader::CheckpointReader(std::string folder, Problems* problems, std::function<bool()> is_cancelled)
    : folder_(std::move(folder)), is_cancelled_(std::move(is_cancelled)), hold_(hold(folder_)), manifest_(read_manifest(folder_)) {
  std::vector<std::vector<PlacedPiece>> pieces(manifest_.files.size());
  std::vector<std::vector<int64_t*>> offsets(manifest_.files.size());
  for (const LogicalTensor& tensor : manifest_.tensors) {
    std::vector<int64_t>& starts = offsets_.emplace_back(tensor.pieces.size(), -1);
    for (size_t p = 0; p < tensor.pieces.size(); ++p) {
      const auto file = static_cast<size_t>(tensor.pieces[p].file);
      pieces[file].push_back({&tensor, &tensor.pieces[p]});
      offsets[file].push_back(&starts[p]);
    }
  }
  for (size_t f = 0; f < manifest_.files.size(); ++f) {
    files_.emplace_back();
    try {
      os::InputFile file = open_shard(f);
      const std::vector<int64_t> found = check_shard(file, manifest_.files[f], pieces[f]);
      for (size_t i = 0; i < found.size(); ++i) *offsets[f][i] = found[i];
      if (f < kOpenFiles) files_.back().emplace(std::move(file));
    } catch (const Error& error) {
      if (problems == nullptr) throw;
      problems->push_back({manifest_.files[f].name, error.place.tensor, -1, error.place.offset, error.message()});
    }
  }
}

void CheckpointReader::require_not_cancelled() const {
  require(!is_cancelled_ || !is_cancelled_(), Code::cancelled, "checkpoint: reading ", folder_, " was cancelled");
}

os::InputFile CheckpointReader::open_shard(size_t file) const {
  const std::string path = text(folder_, "/", manifest_.files[file].name);
  try {
    return os::InputFile(path);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    throw_corrupt(path, "", text("is missing, but ", kManifestName, " lists it; put the file back, or use another checkpoint"));
  }
}

void CheckpointReader::use_file(const TensorPiece& piece, const std::function<void(const os::InputFile&)>& use) const {
  const auto index = static_cast<size_t>(piece.file);
  if (const auto& open = files_[index]) return use(*open);
  use(open_shard(index));
}

const std::vector<int64_t>& CheckpointReader::offsets_of(const LogicalTensor& tensor) const {
  const auto index = &tensor - manifest_.tensors.data();
  assert(index >= 0 && index < std::ssize(manifest_.tensors));
  return offsets_[static_cast<size_t>(index)];
}

std::vector<CheckpointReader::Overlap> CheckpointReader::overlaps(const LogicalTensor& tensor, int64_t begin, int64_t end) const {
  st::check(0 <= begin && begin <= end && end <= tensor.shape.elements(), "checkpoint: the range of ", tensor.name, " ", tensor.shape,
            " must be within 0 to ", tensor.shape.elements(), ", got [", begin, ", ", end, ")");
  const int64_t size = st::bytes_of(tensor.dtype);
  std::vector<Overlap> found;
  auto piece = std::ranges::upper_bound(tensor.pieces, begin, {}, &TensorPiece::end);
  for (; piece != tensor.pieces.end() && piece->begin < end; ++piece) {
    const int64_t first = std::max(begin, piece->begin), last = std::min(end, piece->end);
    found.push_back({&*piece, offsets_of(tensor)[static_cast<size_t>(piece - tensor.pieces.begin())], (first - piece->begin) * size,
                     (last - piece->begin) * size, (first - begin) * size});
  }
  return found;
}

std::vector<ReadRange> CheckpointReader::plan(const LogicalTensor& tensor, int64_t begin, int64_t end) const {
  std::vector<ReadRange> ranges;
  for (const Overlap& o : overlaps(tensor, begin, end)) ranges.push_back({o.piece->file, o.offset + o.first, o.last - o.first, o.to});
  return ranges;
}

void CheckpointReader::read(const LogicalTensor& tensor, int64_t begin, int64_t end, std::span<std::byte> out) const {
  st::check(std::ssize(out) == (end - begin) * st::bytes_of(tensor.dtype), "checkpoint: elements [", begin, ", ", end, ") of ", tensor.name,
            " need ", (end - begin) * st::bytes_of(tensor.dtype), " bytes (", tensor.dtype, "), got a buffer of ", out.size());
  if (out.empty()) return;
  std::vector<std::byte> edge;  // a block of which only a part is requested
  for (const Overlap& o : overlaps(tensor, begin, end)) {
    const auto target = out.subspan(static_cast<size_t>(o.to), static_cast<size_t>(o.last - o.first));
    use_file(*o.piece, [&](const os::InputFile& file) {
      for (int64_t block = o.first / kChecksumBlock; block * kChecksumBlock < o.last; ++block) {
        const BlockPlace place{&tensor, o.piece, o.offset, block};
        const int64_t first = std::max(o.first, place.begin()), last = std::min(o.last, place.end());
        const auto wanted = target.subspan(static_cast<size_t>(first - o.first), static_cast<size_t>(last - first));
        if (std::ssize(wanted) == place.bytes()) {
          read_block(file, place, wanted);
          continue;
        }
        edge.resize(static_cast<size_t>(place.bytes()));
        read_block(file, place, edge);
        std::memcpy(wanted.data(), edge.data() + (first - place.begin()), wanted.size());
      }
    });
  }
}

void CheckpointReader::stream(const LogicalTensor& tensor, const WriteBytes& write) const {
  const int64_t step = kWindow / st::bytes_of(tensor.dtype);
  std::vector<std::byte> window;
  for (const TensorPiece& piece : tensor.pieces)
    for (int64_t begin = piece.begin; begin < piece.end; begin += step) {
      const int64_t end = std::min(begin + step, piece.end);
      require_not_cancelled();
      window.resize(static_cast<size_t>((end - begin) * st::bytes_of(tensor.dtype)));
      read(tensor, begin, end, window);
      write(window);
    }
}

std::string CheckpointReader::digest() const {
  // A trainer's state is its parameters and its optimizer state; the other tensors of its checkpoint follow from the run.
  const bool of_host = std::ranges::all_of(manifest_.tensors, [](const LogicalTensor& t) { return t.kind == TensorKind::host; });
  Digest digest;
  for (const LogicalTensor& tensor : manifest_.tensors) {
    if (tensor.kind == TensorKind::host && !of_host) continue;
    digest.update_sized(tensor.name);
    digest.update_sized(st::name_of(tensor.dtype));
    digest.update_sized(text(tensor.shape));
    stream(tensor, [&](std::span<const std::byte> bytes) { digest.update(bytes); });
  }
  return digest.hex();
}

}  // namespace st
