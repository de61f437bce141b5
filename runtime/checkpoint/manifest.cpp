#include "checkpoint/manifest.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/json_line.h"
#include "base/utf8.h"
#include "checkpoint/guarded_line.h"

namespace st {
namespace {

constexpr std::array<std::string_view, 3> kKinds = {"parameter", "optimizer", "host"};

void print_files(std::string& out, const std::vector<ShardFile>& files, bool checksums) {
  std::vector<std::string> items;
  for (const ShardFile& file : files) {
    JsonLine line;
    line.add("name", file.name).add("bytes", file.bytes).add("header_bytes", file.header_bytes);
    if (checksums) line.add("header_crc32c", hex8(file.header_crc));
    items.push_back(line.text());
  }
  out += json_list(items);
}

void print_tensors(std::string& out, const std::vector<LogicalTensor>& tensors, bool checksums) {
  out += '[';
  const char* comma = "";
  for (const LogicalTensor& t : tensors) {
    out += text(std::exchange(comma, ","), "{\"name\":");
    append_json_string(out, t.name);
    out += text(",\"kind\":\"", name_of(t.kind), "\",\"dtype\":\"", safetensors_name(t.dtype), "\",\"shape\":[");
    for (int32_t i = 0; i < t.shape.rank(); ++i) out += text(i == 0 ? "" : ",", t.shape[i]);
    out += t.finite ? "],\"pieces\":[" : "],\"finite\":false,\"pieces\":[";
    const char* between = "";
    for (const TensorPiece& piece : t.pieces) {
      out += text(std::exchange(between, ","), "{\"file\":", piece.file, ",\"begin\":", piece.begin, ",\"end\":", piece.end);
      if (checksums) {
        out += ",\"crc32c\":\"";
        for (const uint32_t crc : piece.blocks) out += hex8(crc);
        out += '"';
      }
      out += '}';
    }
    out += "]}";
  }
  out += ']';
}

std::string state_text(const Json& state, std::string_view what) {
  std::string json = state.is(Json::Kind::object) ? state.dump() : "{}";
  check(std::ssize(json) <= kMaxStateBytes, "checkpoint: ", what, " must be at most ", kMaxStateBytes, " bytes as JSON, got ", json.size(),
        "; save it as a tensor");
  return json;
}

void print_metadata(std::string& out, const Metadata& metadata) {
  const char* comma = "";
  int64_t bytes = 0;
  out += '{';
  for (const auto& [key, value] : metadata) {
    check(utf8_valid_until(key) == key.size() && utf8_valid_until(value) == value.size(), "checkpoint: metadata must be UTF-8, got ", key,
          ": ", value);
    bytes += std::ssize(key) + std::ssize(value);
    out += std::exchange(comma, ",");
    append_json_string(out, key);
    out += ':';
    append_json_string(out, value);
  }
  out += '}';
  check(bytes <= kMaxMetadataBytes, "checkpoint: metadata must be at most ", kMaxMetadataBytes, " bytes, got ", bytes);
}

std::string print_object(const Manifest& m, bool checksums) {
  std::string out = text(kManifestStart, m.version, ",\"library\":");
  append_json_string(out, m.library);
  out += ",\"checkpoint\":";
  append_json_string(out, m.checkpoint);
  out += text(",\"sequence\":", m.sequence, ",\"step\":", m.step, ",\"time\":");
  append_json_string(out, m.time);
  out += ",\"host\":";
  append_json_string(out, m.host);
  out += text(",\"training\":", state_text(m.training, "training"), ",\"recipe\":", state_text(m.recipe, "recipe"), ",\"metadata\":");
  print_metadata(out, m.metadata);
  out += ",\"files\":";
  print_files(out, m.files, checksums);
  out += ",\"tensors\":";
  print_tensors(out, m.tensors, checksums);
  return out + '}';
}

}  // namespace

std::string_view name_of(TensorKind kind) { return kKinds[static_cast<size_t>(kind)]; }

const LogicalTensor* Manifest::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors, name, {}, [](const LogicalTensor& t) -> std::string_view { return t.name; });
  return found == tensors.end() || found->name != name ? nullptr : &*found;
}

int64_t Manifest::bytes() const {
  int64_t sum = 0;
  for (const LogicalTensor& t : tensors) sum += t.bytes();
  return sum;
}

bool Manifest::has_finite_weights() const {
  return std::ranges::all_of(tensors, [](const LogicalTensor& t) { return t.finite || t.kind == TensorKind::optimizer; });
}

std::string piece_name(const LogicalTensor& tensor, const TensorPiece& piece) {
  const bool whole = piece.begin == 0 && piece.end == tensor.shape.elements();
  return whole ? tensor.name : text(tensor.name, "[", piece.begin, ":", piece.end, "]");
}

int64_t block_count(int64_t bytes) { return (bytes + kChecksumBlock - 1) / kChecksumBlock; }

std::string print_manifest(const Manifest& manifest) {
  std::string out = print_object(manifest, true);
  check(std::ssize(out) < kMaxManifestBytes - 64, "checkpoint: the manifest must be below ", kMaxManifestBytes - 64, " bytes, got ",
        out.size(), "; save fewer tensors, or larger ones");
  return guard_line(std::move(out));
}

std::string describe(const Manifest& manifest) { return print_object(manifest, false); }

}  // namespace st
