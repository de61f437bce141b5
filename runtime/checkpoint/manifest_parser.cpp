// The reading half of manifest.h, for untrusted text.
#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "checkpoint/corrupt.h"
#include "checkpoint/guarded_line.h"
#include "checkpoint/manifest.h"

namespace st {
namespace {

constexpr size_t kHexDigits = 8;  // of a checksum

/// Reads the text into a manifest and throws at the first member that is wrong. Ignores unknown members, since later writers of the same
/// version may add some.
class ManifestText {
 public:
  ManifestText(std::string_view text, std::string_view file) : file_(file), in_(text, file) {}

  void read() {
    size_t known = 0;
    in_.object([&](std::string_view key) { known += read_member(key) ? 1 : 0; });
    in_.end();
    need(known == 13, "format, version, library, checkpoint, sequence, step, time, host, training, recipe, metadata, files, tensors");
  }
  Manifest take() { return std::move(m_); }
  const std::string& tensor() const { return tensor_; }  // the one being read

 private:
  bool read_member(std::string_view key) {
    if (key == "version") {
      m_.version = small();
      if (m_.version < 1) throw_corrupt(file_, "", text("the format version must be 1 or more, got ", m_.version));
    } else if (key == "library") {
      m_.library = in_.text();
      if (m_.version > kManifestVersion) throw_newer();
    } else if (key == "checkpoint") {
      m_.checkpoint = in_.text();
    } else if (key == "sequence") {
      m_.sequence = count();
    } else if (key == "step") {
      m_.step = count();
    } else if (key == "time") {
      m_.time = in_.text();
    } else if (key == "host") {
      m_.host = in_.text();
    } else if (key == "training") {
      m_.training = read_state(key);
    } else if (key == "recipe") {
      m_.recipe = read_state(key);
    } else if (key == "metadata") {
      read_metadata();
    } else if (key == "files") {
      in_.list([&] { read_file(m_.files.emplace_back()); });
    } else if (key == "tensors") {
      in_.list([&] { read_tensor(m_.tensors.emplace_back()); });
    } else {
      in_.skip();
      return key == "format";  // its value has already been checked
    }
    return true;
  }

  [[noreturn]] void throw_newer() const {
    Error error(Code::unsupported,
                text(file_, ": has format version ", m_.version, ", this library reads versions up to ", kManifestVersion,
                     "; it was written by ScaleTrain ", m_.library, ": use that version or a newer one"));
    error.place.file = file_;
    throw error;
  }

  Json read_state(std::string_view what) {
    const std::string_view json = in_.skip();
    if (std::ssize(json) > kMaxStateBytes)
      throw_corrupt(file_, "", text(what, " must be at most ", kMaxStateBytes, " bytes, got ", json.size()));
    Json state = parse_json(json, text(file_, ": ", what));
    if (!state.is(Json::Kind::object)) throw_corrupt(file_, "", text(what, " must be an object"));
    return state;
  }

  void read_metadata() {
    int64_t bytes = 0;
    in_.object([&](std::string_view key) {
      std::string value = in_.text();
      bytes += std::ssize(key) + std::ssize(value);
      if (bytes > kMaxMetadataBytes) throw_corrupt(file_, "", text("metadata has more than ", kMaxMetadataBytes, " bytes"));
      m_.metadata.emplace(key, std::move(value));
    });
  }

  void read_file(ShardFile& f) {
    size_t known = 0;
    in_.object([&](std::string_view key) {
      ++known;
      if (key == "name") {
        f.name = in_.text();
      } else if (key == "bytes") {
        f.bytes = count();
      } else if (key == "header_bytes") {
        f.header_bytes = count();
      } else if (key == "header_crc32c") {
        f.header_crc = checksum(in_.text());
      } else {
        --known;
        in_.skip();
      }
    });
    need(known == 4, "name, bytes, header_bytes, header_crc32c");
  }

  void read_tensor(LogicalTensor& t) {
    size_t known = 0;
    in_.object([&](std::string_view key) {
      ++known;
      if (key == "name") {
        tensor_ = t.name = in_.text();
      } else if (key == "kind") {
        t.kind = read_kind();
      } else if (key == "dtype") {
        t.dtype = read_dtype();
      } else if (key == "shape") {
        in_.list([&] { read_dim(t.shape); });
      } else if (key == "pieces") {
        in_.list([&] { read_piece(t.pieces.emplace_back()); });
      } else if (key == "finite") {
        --known;
        t.finite = in_.skip() != "false";
      } else {
        --known;
        in_.skip();
      }
    });
    need(known == 5, "name, kind, dtype, shape, pieces");
    tensor_.clear();
  }

  void read_piece(TensorPiece& piece) {
    size_t known = 0;
    in_.object([&](std::string_view key) {
      ++known;
      if (key == "file") {
        piece.file = small();
      } else if (key == "begin") {
        piece.begin = count();
      } else if (key == "end") {
        piece.end = count();
      } else if (key == "crc32c") {
        read_blocks(piece.blocks);
      } else {
        --known;
        in_.skip();
      }
    });
    need(known == 4, "file, begin, end, crc32c in each piece");
  }

  void read_blocks(std::vector<uint32_t>& blocks) {
    const std::string digits = in_.text();
    blocks.reserve((digits.size() + kHexDigits - 1) / kHexDigits);
    for (size_t at = 0; at < digits.size(); at += kHexDigits) blocks.push_back(checksum(std::string_view(digits).substr(at, kHexDigits)));
  }

  TensorKind read_kind() {
    const std::string word = in_.text();
    for (const TensorKind kind : {TensorKind::parameter, TensorKind::optimizer, TensorKind::host})
      if (name_of(kind) == word) return kind;
    throw_corrupt(file_, tensor_, text("kind must be parameter, optimizer or host, got ", word));
  }

  DType read_dtype() {
    const std::string word = in_.text();
    const auto dtype = dtype_of_safetensors(word);
    if (!dtype) throw_corrupt(file_, tensor_, text("unknown dtype ", word));
    return *dtype;
  }

  void read_dim(Shape& shape) {
    if (shape.rank() == kMaxDims) throw_corrupt(file_, tensor_, text("has more than ", kMaxDims, " dimensions"));
    shape.push_back(count());
  }

  uint32_t checksum(std::string_view digits) {
    const auto value = hex8_value(digits);
    if (!value) throw_corrupt(file_, tensor_, text("a checksum must have 8 hexadecimal digits, got ", digits.substr(0, kHexDigits)));
    return *value;
  }

  int64_t count() {
    const int64_t value = in_.whole();
    if (value < 0) throw_corrupt(file_, tensor_, text("numbers must be 0 or more, got ", value));
    return value;
  }

  int32_t small() { return static_cast<int32_t>(std::min<int64_t>(count(), INT32_MAX)); }

  void need(bool all, std::string_view members) const {
    if (!all) throw_corrupt(file_, tensor_, text("needs the members ", members));
  }

  Manifest m_;
  std::string_view file_;
  std::string tensor_;
  JsonCursor in_;
};

void check_file_names(const Manifest& m, std::string_view file) {
  std::set<std::string_view> names;
  for (const ShardFile& f : m.files) {
    // Any other name could lead out of the folder.
    const bool plain = !f.name.empty() && f.name.front() != '.' && f.name != kManifestName && f.name.size() < 256 &&
                       std::ranges::none_of(f.name, [](char c) { return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20; });
    if (!plain) throw_corrupt(file, "", text("a file's name must be a plain file name, got \"", f.name, "\""));
    if (!names.insert(f.name).second) throw_corrupt(file, "", text("the file ", f.name, " is listed twice"));
    if (f.header_bytes > kMaxHeaderBytes + kLengthBytes || (f.is_safetensors() && f.header_bytes < kLengthBytes))
      throw_corrupt(file, "", text(f.name, " cannot have a header of ", f.header_bytes, " bytes"));
    if (f.header_bytes > f.bytes)
      throw_corrupt(file, "", text(f.name, " has ", f.bytes, " bytes, but its header would have ", f.header_bytes));
    if (!f.is_safetensors() && f.header_bytes != f.bytes) throw_corrupt(file, "", text(f.name, " has bytes that no checksum covers"));
  }
}

void check_pieces(const LogicalTensor& t, const Manifest& m, std::string_view file) {
  int64_t bytes = bytes_of(t.dtype);
  // Sizes first: a dimension of 0 must not hide a product that overflows.
  for (const int64_t dim : t.shape)
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(dim, 1), &bytes))
      throw_corrupt(file, t.name, text("shape ", t.shape, " overflows 64 bits"));

  int64_t next = 0;
  for (const TensorPiece& piece : t.pieces) {
    if (std::cmp_greater_equal(piece.file, m.files.size()) || !m.files[static_cast<size_t>(piece.file)].is_safetensors())
      throw_corrupt(file, t.name, text("has a piece in file ", piece.file, ", which is not one of the checkpoint's safetensors files"));
    if (piece.begin != next || piece.end <= piece.begin)
      throw_corrupt(file, t.name,
                    text("has a piece of elements [", piece.begin, ", ", piece.end, ") where a piece from element ", next, " is expected: ",
                         piece.begin < next   ? "pieces overlap"
                         : piece.begin > next ? "one is missing"
                                              : "it is empty"));
    next = piece.end;
    if (next > t.shape.elements()) break;
    if (const int64_t blocks = block_count((piece.end - piece.begin) * bytes_of(t.dtype)); std::ssize(piece.blocks) != blocks)
      throw_corrupt(file, t.name, text("has ", piece.blocks.size(), " checksums for a piece of ", blocks, " blocks"));
  }
  if (next != t.shape.elements()) throw_corrupt(file, t.name, text("has ", t.shape.elements(), " elements, its pieces have ", next));
}

void check_tensors(const Manifest& m, std::string_view file) {
  int64_t bytes = 0;
  const LogicalTensor* before = nullptr;
  for (const LogicalTensor& t : m.tensors) {
    if (before != nullptr && before->name >= t.name)
      throw_corrupt(
          file, t.name,
          before->name == t.name ? "is listed twice" : text("is listed after ", before->name, ", but tensors must be in name order"));
    check_pieces(t, m, file);
    if (__builtin_add_overflow(bytes, t.bytes(), &bytes)) throw_corrupt(file, t.name, "makes the size of all tensors overflow 64 bits");
    before = &t;
  }
}

}  // namespace

Manifest parse_manifest(std::string_view text, std::string_view file) {
  check_guarded_line(text, file);
  if (!text.starts_with(kManifestStart)) throw_corrupt(file, "", "is not the manifest of a ScaleTrain checkpoint");
  ManifestText in(text, file);
  read_or_corrupt(file, in.tensor(), [&] { in.read(); });
  Manifest manifest = in.take();
  check_file_names(manifest, file);
  check_tensors(manifest, file);
  return manifest;
}

}  // namespace st
